"""Plans that cannot be applied raise a clear error before anything is changed."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.apply import (
    Applier,
    ApplySettings,
    BackendUnreachableError,
    ClusterUnreachableError,
    EngineMissingError,
    FailureKind,
    LeaseSettings,
    NamespaceMissingError,
    PassphraseError,
    PlanMismatchError,
    ProviderMissingError,
    StateFolderFullError,
)
from plimsoll.kube import Connection, ConnectionFailedError
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox import path as sandbox_path
from tests.awaiting import await_condition
from tests.e2e.applying.capacity import (
    NODE_CLAIM,
    a_claim,
    a_deployment,
    a_writer,
    both,
    checkpoint,
    checkpoint_path,
    creating,
    deleting,
    key_of,
    names,
    settings_for,
    updating,
)
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e


@pytest.fixture
def settings(claims_sandbox: Sandbox, tmp_path: Path) -> ApplySettings:
    return settings_for(claims_sandbox, tmp_path, shards=1)


@pytest.fixture
def cluster(claims_sandbox: Sandbox, kube: Callable[..., Kube]) -> Kube:
    return kube(claims_sandbox)


def refused(settings: ApplySettings) -> pytest.ExceptionInfo[Exception]:
    with pytest.raises(Exception) as caught, a_writer(settings):
        pass
    return caught


def test_no_passphrase_file(settings: ApplySettings) -> None:
    caught = refused(settings.model_copy(update={"passphrase_file": settings.work_folder / "none"}))
    assert caught.type is PassphraseError
    assert "--passphrase-file" in str(caught.value)


def test_a_wrong_passphrase(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("sealed-0")))
    assert settings.passphrase_file is not None
    settings.passphrase_file.write_text("open barley")

    with a_writer(settings) as writer, pytest.raises(PassphraseError) as caught:
        writer.apply(creating(a_claim("sealed-1")))

    assert "barley" not in str(caught.value)
    assert cluster.get(*NODE_CLAIM, "sealed-1") is None


def test_no_pulumi(settings: ApplySettings) -> None:
    caught = refused(settings.model_copy(update={"pulumi": Path("/nowhere/pulumi")}))
    assert caught.type is EngineMissingError
    assert "/nowhere/pulumi" in str(caught.value)


def test_a_plugin_that_is_not_installed_and_cannot_be_downloaded(
    settings: ApplySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")  # the cluster
    caught = refused(settings.model_copy(update={"pulumi_home": tmp_path / "empty"}))
    assert caught.type is ProviderMissingError
    assert "pulumi plugin install resource kubernetes" in str(caught.value)


def test_a_backend_that_cannot_be_written(settings: ApplySettings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    caught = refused(settings.model_copy(update={"backend": f"file://{tmp_path / 'file' / 'state'}"}))
    assert caught.type is BackendUnreachableError


def test_no_namespace_for_the_lease(settings: ApplySettings) -> None:
    caught = refused(settings.model_copy(update={"lease": LeaseSettings(namespace="nowhere")}))
    assert caught.type is NamespaceMissingError
    assert "foundation" in str(caught.value)


def test_an_unreachable_cluster(settings: ApplySettings, tmp_path: Path) -> None:
    assert settings.kubeconfig is not None
    broken = tmp_path / "kubeconfig"
    text = settings.kubeconfig.read_text()
    broken.write_text("".join(_elsewhere(line) for line in text.splitlines(keepends=True)))
    caught = refused(settings.model_copy(update={"kubeconfig": broken}))
    assert caught.type is ConnectionFailedError
    assert "127.0.0.1:9" in str(caught.value)


def _elsewhere(line: str) -> str:
    head, colon, _ = line.partition("server:")
    return f"{head}{colon} https://127.0.0.1:9\n" if colon else line


def test_a_cluster_that_becomes_unreachable_during_a_pre_started_update(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        await_condition(lambda: writer.pre_started)
        writer._stacks._reviewer._objects.connection.server = "https://127.0.0.1:9"  # the review's connection alone

        with pytest.raises(ClusterUnreachableError, match="nothing was changed"):
            writer.apply(creating(a_claim("away-0")))
    assert cluster.get(*NODE_CLAIM, "away-0") is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_for_the_state(settings: ApplySettings, cluster: Kube, small_disk: Path) -> None:
    with a_writer(settings.model_copy(update={"backend": f"file://{small_disk}"})) as writer:
        writer.apply(creating(a_claim("full-0")))
        (small_disk / "ballast").write_bytes(os.urandom(5 * 1024 * 1024))

        with pytest.raises(StateFolderFullError, match="nothing was changed"):
            writer.apply(creating(a_claim("full-1")))

        assert cluster.get(*NODE_CLAIM, "full-1") is None
        (small_disk / "ballast").unlink()
        assert names(writer.apply(creating(a_claim("full-1"))).created) == ["full-1"]
        writer.drain()


def test_plans_that_an_update_must_not_execute(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("plan-0")))
        with pytest.raises(PlanMismatchError, match="NodeClaim plan-0"):
            writer.apply(updating(a_claim("plan-0", instance_type="other")))
        with pytest.raises(PlanMismatchError, match="two operations"):
            writer.apply(both(creating(a_claim("plan-0")), deleting(a_claim("plan-0"), uid="x")))
        assert cluster.get(*NODE_CLAIM, "plan-0") is not None
        writer.drain()


def test_a_resource_of_another_owner_in_the_stack_is_not_deleted(settings: ApplySettings, cluster: Kube) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("host-0")))
        await_condition(lambda: writer.pre_started)
        stack = writer.resources()[0].stack
    marked = checkpoint(settings, stack)
    marked["resources"].append(
        {
            "urn": f"urn:pulumi:{stack}::plimsoll::custom:index:Guest::guest",
            "custom": False,
            "type": "custom:index:Guest",
        }
    )
    _replace_state(settings, stack, marked)

    with a_writer(settings) as writer:
        with pytest.raises(PlanMismatchError, match="guest"):
            writer.apply(creating(a_claim("host-1")))
        assert cluster.get(*NODE_CLAIM, "host-1") is None


def _replace_state(settings: ApplySettings, stack: str, deployment: dict[str, object]) -> None:
    path = checkpoint_path(settings, stack)
    content = json.loads(path.read_text())
    content["checkpoint"]["latest"] = deployment
    path.write_text(json.dumps(content))


def test_a_policy_violation_fails_its_object(
    claims_sandbox: Sandbox, tmp_path: Path, cluster: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (pack / "__main__.py").write_text(_PACK)
    monkeypatch.setenv("PATH", sandbox_path(claims_sandbox.folder, "bin-policy"))
    settings = settings_for(claims_sandbox, tmp_path, shards=1, policy_packs=(pack,))
    with a_writer(settings) as writer:
        assert names(writer.apply(creating(a_claim("policy-good"))).created) == ["policy-good"]
        outcome = writer.apply(creating(a_claim("policy-bad")))
        assert outcome.created == ()
        failure = outcome.failed[key_of(a_claim("policy-bad"))]
        assert failure.kind is FailureKind.POLICY
        assert "no bad names" in failure.message
        assert cluster.get(*NODE_CLAIM, "policy-bad") is None

        good = cluster.get(*NODE_CLAIM, "policy-good")
        assert good is not None
        releasing = deleting(a_claim("policy-good"), uid=good["metadata"]["uid"])
        outcome = writer.apply(both(creating(a_claim("policy-bad")), releasing))
        assert set(outcome.failed) == {key_of(a_claim("policy-bad")), key_of(a_claim("policy-good"))}
        assert cluster.get(*NODE_CLAIM, "policy-good") == good, "a policy refused a change of the same update"

        assert names(writer.apply(releasing).deleted) == ["policy-good"]
        writer.drain()


_PACK = """
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

def validate(args, report_violation):
    if args.props.get("metadata", {}).get("name", "").endswith("bad"):
        report_violation("no bad names")

PolicyPack("names", policies=[ResourceValidationPolicy(
    name="names", description="names", enforcement_level=EnforcementLevel.MANDATORY, validate=validate)])
"""


def test_a_workload_of_an_undefined_kind_fails(settings: ApplySettings) -> None:
    odd = a_deployment("odd") | {"apiVersion": "example.com/v1", "kind": "Widget"}
    with a_writer(settings) as writer:
        outcome = writer.apply(creating(odd, a_claim("even-0")))
        assert outcome.failed[key_of(odd)].kind is FailureKind.NO_SUCH_KIND
        assert names(outcome.created) == ["even-0"]
        writer.drain()


def test_reading_needs_no_lease(settings: ApplySettings) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("read-0")))
        await_condition(lambda: writer.pre_started)
        assert settings.kubeconfig is not None
        reader = Applier(settings, Connection.open(settings.kubeconfig))
        assert [each.key.name for each in reader.resources()] == ["read-0"]
        writer.drain()
