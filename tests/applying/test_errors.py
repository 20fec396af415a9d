"""The output of the engine becomes typed errors."""

import pytest

from plimsoll.apply import (
    BackendUnreachableError,
    ClusterUnreachableError,
    EngineKilledError,
    FailureKind,
    LockedError,
    LockHolder,
    PassphraseError,
    ProviderMissingError,
    StateFolderFullError,
    StateUnreadableError,
    UpdateFailedError,
    UpdateInterruptedError,
    engine_error,
    object_failure,
)


def test_a_lock_names_its_holder() -> None:
    output = (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        "lock file with `pulumi cancel`.\n"
        "  file:///state/.pulumi/locks/x.json: created by root@node-7 (pid 4711) at 2026-01-01T00:00:00Z"
    )
    error = engine_error("s", output)
    assert isinstance(error, LockedError)
    assert error.holders == (LockHolder("root", "node-7", 4711, "2026-01-01T00:00:00Z"),)
    assert "root@node-7 (pid 4711)" in str(error)


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("error: getting secrets manager: incorrect passphrase", PassphraseError),
        ("error: passphrase must be set with PULUMI_CONFIG_PASSPHRASE", PassphraseError),
        ("error: open /state/x.json: no space left on device", StateFolderFullError),
        ("error: snapshot integrity failure; refusing to use it", StateUnreadableError),
        ("error: could not load plugin for kubernetes provider", ProviderMissingError),
        ("error: Could not attach to plugin at 127.0.0.1:1", ProviderMissingError),
        ("error: dial tcp: lookup bucket.example: no such host", BackendUnreachableError),
        (
            "kubernetes:core/v1:Namespace (x):\n    error: configured Kubernetes cluster is unreachable: unable to "
            "load schema information from the API server: dial tcp one.example:6443: connect: connection refused",
            ClusterUnreachableError,
        ),
        ("    error: the cluster at https://x (context 'y') cannot be reached: no such host", ClusterUnreachableError),
        ("error: update canceled", UpdateInterruptedError),
        ("\n code: -2\n stdout: \n stderr: ", UpdateInterruptedError),
        ("\n code: -9\n stdout: \n stderr: ", EngineKilledError),
        ("error: something new", UpdateFailedError),
    ],
)
def test_engine_output_becomes_typed_errors(output: str, kind: type[Exception]) -> None:
    error = engine_error("capacity-test-0", output)
    assert type(error) is kind
    assert "capacity-test-0" in str(error)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('Apply failed with 1 conflict: conflict with "kubectl"', FailureKind.CONFLICT),
        ("the cluster at https://x cannot be reached: timed out", FailureKind.UNREACHABLE),
        ('NodeClaim "x" is invalid: spec.requirements: Required value', FailureKind.REFUSED),
        ("admission webhook denied the request", FailureKind.REFUSED),
        ('object is being deleted: nodeclaims.karpenter.sh "x" already exists', FailureKind.BEING_DELETED),
        ("the cluster serves no example.com/v1 Widget", FailureKind.NO_SUCH_KIND),
        (
            'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: '
            '.spec.template.spec.containers[name="x"].imagePullPolicy',
            FailureKind.CONFLICT,
        ),
        ('spec.template.spec.restartPolicy: Unsupported value: "Never"', FailureKind.REFUSED),
        ('admission webhook "x" denied the request: violates policy y, conflict, EOF', FailureKind.REFUSED),
        ("ValidatingAdmissionPolicy 'x' with binding 'x' denied request: unreachable", FailureKind.REFUSED),
        ('Put "https://x/apis": EOF', FailureKind.UNREACHABLE),
        ("something new", FailureKind.OTHER),
        ("", FailureKind.OTHER),
    ],
)
def test_diagnostics_of_a_resource_become_typed_failures(message: str, kind: FailureKind) -> None:
    failure = object_failure(message)
    assert failure.kind is kind
    assert failure.message
