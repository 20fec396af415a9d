"""States that are truncated, lost or older than the cluster: nothing is lost or created twice, and others work on."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.apply import Applier, ApplySettings, FailureKind
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.applying.capacity import (
    NODE_CLAIM,
    a_claim,
    a_writer,
    checkpoint_path,
    clearing_claims,
    creating,
    deleting,
    names,
    settings_for,
)
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e


@pytest.fixture
def settings(claims_sandbox: Sandbox, tmp_path: Path) -> ApplySettings:
    return settings_for(claims_sandbox, tmp_path, shards=2)


@pytest.fixture
def cluster(claims_sandbox: Sandbox, kube: Callable[..., Kube]) -> Iterator[Kube]:
    yield from clearing_claims(kube(claims_sandbox))


def uids(cluster: Kube) -> dict[str, str]:
    """NodeClaims that are not being deleted: UID by name."""
    found = (each["metadata"] for each in cluster.list(*NODE_CLAIM))
    return {each["name"]: each["uid"] for each in found if "deletionTimestamp" not in each}


def await_end(cluster: Kube, *names: str) -> None:
    """Waits until these NodeClaims are not there, not even deleting."""
    await_condition(
        lambda: not {each["metadata"]["name"] for each in cluster.list(*NODE_CLAIM)} & set(names),
        message="the end of deleted NodeClaims",
    )


def recorded(writer: Applier) -> dict[str, str]:
    return {each.key.name: each.uid for each in writer.resources()}


def state_folder(settings: ApplySettings) -> Path:
    return Path(settings.backend_url.removeprefix("file://"))


@pytest.mark.parametrize("backups", [True, False], ids=["with backups", "without"])
def test_a_truncated_state_is_set_aside_and_rebuilt_while_others_work_on(
    settings: ApplySettings, cluster: Kube, backups: bool
) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("first-0"), a_claim("first-1")))
        writer.apply(creating(a_claim("second-0"), a_claim("second-1")))
        stacks = {each.key.name: each.stack for each in writer.resources()}
    made = uids(cluster)
    path = checkpoint_path(settings, stacks["first-0"])
    path.write_bytes(path.read_bytes()[:700])
    if not backups:
        shutil.rmtree(state_folder(settings) / ".pulumi/history", ignore_errors=True)
        path.with_name(f"{path.name}.bak").unlink(missing_ok=True)

    with a_writer(settings) as writer:
        assert recorded(writer) == uids(cluster) == made
        assert [each.name.partition(".damaged-")[0] for each in path.parent.glob("*.damaged-*")] == [path.name]
        again = writer.apply(creating(a_claim("first-0"), a_claim("third")))
        assert names(again.created) == ["first-0", "third"]
        assert uids(cluster).items() >= made.items(), "nothing is created twice"
        gone = writer.apply(deleting(a_claim("first-1"), uid=made["first-1"]))
        assert names(gone.deleted) == ["first-1"]
        assert set(names(writer.drain())) == {"first-0", "second-0", "second-1", "third"}
    await_end(cluster, *made, "third")


def test_an_older_state_loses_nothing_and_creates_nothing_twice(
    settings: ApplySettings, cluster: Kube, tmp_path: Path
) -> None:
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("old-0"), a_claim("old-1")))
        before = uids(cluster)
    shutil.copytree(state_folder(settings), tmp_path / "backup")
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("new-0"), a_claim("new-1")))
        writer.apply(deleting(a_claim("old-0"), uid=before["old-0"]))
    await_end(cluster, "old-0")
    live = uids(cluster)
    assert live.keys() == {"old-1", "new-0", "new-1"}
    shutil.rmtree(state_folder(settings))
    shutil.copytree(tmp_path / "backup", state_folder(settings))

    with a_writer(settings) as writer:
        assert recorded(writer) == live
        writer.apply(creating(a_claim("new-0"), a_claim("new-1")))
        assert uids(cluster) == live
        writer.drain()


def test_objects_that_an_older_etcd_lacks_leave_the_state_and_those_that_return_are_not_taken_for_others(
    settings: ApplySettings, cluster: Kube
) -> None:
    """An etcd that was restored lacks what was created since, and may have an object of the same name again."""
    with a_writer(settings) as writer:
        writer.apply(creating(a_claim("kept"), a_claim("lost"), a_claim("other")))
        made = uids(cluster)
    for name in ("lost", "other"):
        cluster.delete(*NODE_CLAIM, name)
    await_condition(lambda: uids(cluster).keys() == {"kept"}, message="an older revision")
    stranger = a_claim("other")
    stranger["metadata"]["labels"] = {}
    cluster.apply(stranger)

    with a_writer(settings) as writer:
        assert recorded(writer) == {"kept": made["kept"]}
        outcome = writer.apply(deleting(a_claim("other"), uid=made["other"]))
        assert "other" in uids(cluster), "it has another UID"
        assert not outcome.failed or {each.kind for each in outcome.failed.values()} <= {FailureKind.NOT_OURS}
        assert names(writer.apply(creating(a_claim("lost"))).created) == ["lost"]
        writer.drain()
    assert uids(cluster).keys() == {"other"}


def test_an_admission_that_refuses_half_keeps_the_other_half_and_the_rest_follows_later(
    settings: ApplySettings, cluster: Kube
) -> None:
    kind = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["karpenter.sh"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["nodeclaims"]}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "int(object.metadata.name.substring(5)) % 2 == 0", "message": "odd"}],
    }
    metadata = {"name": "half-of-the-claims"}
    binding = {"policyName": metadata["name"], "validationActions": ["Deny"]}
    cluster.apply({"apiVersion": kind, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": policy})
    cluster.apply(
        {"apiVersion": kind, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": binding}
    )
    plan = creating(*(a_claim(f"half-{number}") for number in range(10)))
    try:
        with a_writer(settings) as writer:
            await_condition(lambda: cluster.refusal(a_claim("half-1")), message="the policy in effect")
            outcome = writer.apply(plan)
            assert names(outcome.created) == [f"half-{number}" for number in range(0, 10, 2)]
            assert {each.kind for each in outcome.failed.values()} == {FailureKind.REFUSED}
            assert recorded(writer) == uids(cluster)
            cluster.delete(kind, "ValidatingAdmissionPolicyBinding", metadata["name"])
            await_condition(lambda: not cluster.refusal(a_claim("half-1")), message="the end of the policy")
            before = uids(cluster)
            writer.apply(plan)
            assert recorded(writer) == uids(cluster)
            assert len(recorded(writer)) == 10
            assert uids(cluster).items() >= before.items()
            writer.drain()
    finally:
        for each in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            cluster.delete(kind, each, metadata["name"])


def test_two_environments_on_one_backend_keep_to_their_own_objects(
    claims_sandbox: Sandbox, settings: ApplySettings, cluster: Kube, tmp_path: Path
) -> None:
    other = settings_for(claims_sandbox, tmp_path / "second", shards=1, backend=settings.backend_url)
    with a_writer(settings) as one, a_writer(other) as two:
        one.apply(creating(a_claim("one")))
        two.apply(creating(a_claim("two", "other")))
        made = uids(cluster)
        assert (recorded(one), recorded(two)) == ({"one": made["one"]}, {"two": made["two"]})
        outcome = two.apply(creating(a_claim("one", "other")))
        assert {each.kind for each in outcome.failed.values()} == {FailureKind.NOT_OURS}
        assert names(two.drain()) == ["two"]
        assert uids(cluster) == {"one": made["one"]}
        one.drain()
