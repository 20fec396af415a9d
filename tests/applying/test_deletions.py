"""Objects are deleted by their UID, and the engine only records it: no stack waits until a node is drained."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from plimsoll.apply import FailureKind, LeaseLostError, UpdateFailedError
from plimsoll.apply.delta import Part, Reviewer
from plimsoll.apply.engine import DeclaredResource, EngineEvent, Program, urn_of
from plimsoll.apply.stacks import Shard
from plimsoll.apply.state import State, declare
from plimsoll.kube import ConnectionFailedError, Kind, RequestError
from plimsoll.model import ObjectKey
from tests.applying.states import (
    STACK,
    FakeCluster,
    FakeLease,
    a_claim,
    a_deployment,
    a_state,
    change,
    deletion,
    live,
)
from tests.applying.test_states import FakeStack, a_keeper, a_shard
from tests.pages import CHECKOUT

DRAINED, KEPT = a_claim("drained"), a_claim("kept")
KEYS = [ObjectKey.of(DRAINED), ObjectKey.of(KEPT)]


class RecordingStack(FakeStack):
    """Its engine records the deletion of every resource that the program does not register, and deletes the object by
    its name if the state says so. A policy pack refuses the names in `refused`; operations of those in `failing`
    fail."""

    by_name: tuple[ObjectKey, ...] = ()
    refused: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    compared: threading.Event | None = None
    """Set when the engine has compared the unchanged resources, before it records a deletion."""

    def update(self, program: Program, on_event: Callable[[EngineEvent], None], _: tuple[Path, ...]) -> None:
        program._on_ready()
        if program._registrations.exception(30) is not None or self.state is None:
            return
        registrations = program._registrations.result()
        refused = [each for each in registrations.first if each.name in self.refused]
        for each in refused:
            on_event(violation(each))
        if refused:
            raise UpdateFailedError("a policy was violated")
        for each in registrations.first:
            metadata = {"urn": urn_of(STACK, each), "op": "update"}
            on_event({"resourcePreEvent": {"metadata": metadata}})
            kind = "resOpFailedEvent" if each.name in self.failing else "resOutputsEvent"
            on_event({kind: {"metadata": metadata}})
        names = {each.name for each in registrations.first}
        names |= {each.name for each in (*registrations.kept, *registrations.delete(names.intersection(self.failing)))}
        assert self.compared is None or self.compared.wait(120)
        gone = [key for key, each in self.state.resources.items() if each.declared.name not in names]
        self.by_name += tuple(gone) if self.state.deletes_objects else ()
        for key in gone:
            deleted = {"urn": self.state.resources[key].urn, "op": "delete"}
            on_event({"resourcePreEvent": {"metadata": deleted}})
            on_event({"resOutputsEvent": {"metadata": deleted}})
        self.replace_state(self.state.edited(gone))

    def check_room(self) -> None:
        """There is room."""


def violation(declared: DeclaredResource) -> EngineEvent:
    return {
        "policyEvent": {
            "resourceUrn": urn_of(STACK, declared),
            "policyName": "names",
            "message": "no such names",
            "enforcementLevel": "mandatory",
        }
    }


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(live(DRAINED), live(KEPT))


@pytest.fixture
def stack() -> RecordingStack:
    return RecordingStack(a_state(live(DRAINED), live(KEPT)))


@pytest.fixture
def shard(stack: RecordingStack, cluster: FakeCluster, tmp_path: Path) -> Iterator[Shard]:
    with closing(a_shard(stack, cluster, tmp_path)) as made:
        yield made


def part(*names: str) -> Part:
    return Part(deletions=[deletion(a_claim(name), f"uid-{name}") for name in names])


def recorded(state: State | None) -> set[str]:
    assert state is not None
    return {key.name for key in state.resources}


def test_the_next_update_does_not_wait_until_what_was_deleted_is_gone(
    shard: Shard, stack: RecordingStack, cluster: FakeCluster
) -> None:
    for key in KEYS:
        assert shard.apply(part(key.name), lambda _: None).result(30).deleted == (key,)
        assert cluster.objects[key]["metadata"]["deletionTimestamp"], "its finalizers keep it"
    shard.call_off().result(30)
    assert recorded(stack.state) == set()


@pytest.mark.parametrize("refusal", [None, RequestError(403, "Forbidden", "a webhook says no")])
def test_a_deletion_does_not_wait_until_the_engine_has_compared_the_rest_of_its_stack(
    stack: RecordingStack, cluster: FakeCluster, tmp_path: Path, refusal: RequestError | None
) -> None:
    """Of 5,000 other resources, it compared 600 a second."""
    stack.compared, cluster.refusal = threading.Event(), refusal
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        try:
            outcome = shard.apply(part("drained"), lambda _: None).result(20)
            before = recorded(stack.state)
        finally:
            stack.compared.set()
        shard.call_off().result(30)
    assert (outcome.deleted == (KEYS[0],), KEYS[0] in outcome.failed) == (refusal is None, refusal is not None)
    assert before == {"drained", "kept"}, "the engine has recorded nothing yet"
    assert recorded(stack.state) == {"kept"} | ({"drained"} if refusal else set())


def test_a_deletion_that_the_cluster_refuses_changes_neither_object_nor_state(
    shard: Shard, stack: RecordingStack, cluster: FakeCluster
) -> None:
    cluster.refusal = RequestError(403, "Forbidden", "a webhook says no")
    outcome = shard.apply(part("drained"), lambda _: None).result(30)
    assert [failure.kind for failure in outcome.failed.values()] == [FailureKind.REFUSED]
    shard.call_off().result(30)
    assert (recorded(stack.state), recorded(shard.state)) == ({"drained", "kept"}, {"drained", "kept"})


def test_nodes_stay_while_a_policy_refuses_the_change_of_their_workload(
    shard: Shard, stack: RecordingStack, cluster: FakeCluster
) -> None:
    """The change removes the pods that are on these nodes; they would wait for others."""
    refused = a_deployment("refused")
    stack.refused = (declare(refused).name,)
    operations = Part(creations=[change(refused)], deletions=part("drained").deletions)
    outcome = shard.apply(operations, lambda _: None).result(30)
    assert {key.name: failure.kind for key, failure in outcome.failed.items()} == {
        "refused": FailureKind.POLICY,
        "drained": FailureKind.NOT_STARTED,
    }
    shard.call_off().result(30)
    assert (cluster.deleted, recorded(stack.state)) == ([], {"drained", "kept"})


def test_nodes_stay_while_the_change_of_their_workload_fails(
    stack: RecordingStack, cluster: FakeCluster, tmp_path: Path
) -> None:
    """Although its dry run has passed: a webhook that the engine's request meets did not answer, for example."""
    workload, others = a_deployment("serve", image="two"), a_claim("others", workspace="other")
    before = [live(each) for each in (DRAINED, KEPT, a_deployment("serve"), others)]
    cluster.objects |= {ObjectKey.of(each): each for each in before}
    stack.state, stack.failing = a_state(*before), (declare(workload).name,)
    operations = Part(
        updates=[change(workload)], deletions=[*part("drained").deletions, deletion(others, "uid-others")]
    )
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        outcome = shard.apply(operations, lambda _: None).result(30)
        shard.call_off().result(30)
    assert set(outcome.failed) == {ObjectKey.of(workload), ObjectKey.of(DRAINED)}
    assert outcome.failed[ObjectKey.of(DRAINED)].kind is FailureKind.NOT_STARTED
    assert (outcome.deleted, cluster.deleted) == ((ObjectKey.of(others),), ["others"])
    assert recorded(stack.state) == {"drained", "kept", "serve"}


def test_nodes_stay_while_the_cluster_refuses_the_change_of_their_workload(cluster: FakeCluster) -> None:
    workload, others = a_deployment("serve", image="two"), a_claim("others", workspace="other")
    cluster.objects |= {ObjectKey.of(each): live(each) for each in (a_deployment("serve"), others)}
    cluster.refusal = RequestError(422, "Invalid", "a field is immutable")
    operations = Part(
        updates=[change(workload)], deletions=[*part("drained").deletions, deletion(others, "uid-others")]
    )
    review = Reviewer(cluster).review(operations, a_state(*cluster.objects.values()))
    assert {key.name: failure.kind for key, failure in review.failed.items()} == {
        "serve": FailureKind.REFUSED,
        "drained": FailureKind.NOT_STARTED,
    }
    assert [key.name for key in review.deletions] == ["others"], "another Workspace's"


def test_a_cluster_that_cannot_be_reached_any_more_keeps_what_it_could_not_delete(
    shard: Shard, stack: RecordingStack, cluster: FakeCluster
) -> None:
    cluster.refusal = ConnectionFailedError("connection refused")
    outcome = shard.apply(part("drained"), lambda _: None).result(30)
    assert [failure.kind for failure in outcome.failed.values()] == [FailureKind.UNREACHABLE]
    shard.call_off().result(30)
    assert recorded(stack.state) == {"drained", "kept"}


def test_an_object_that_took_the_name_after_the_review_is_not_deleted(cluster: FakeCluster) -> None:
    failures = Reviewer(cluster).delete({KEYS[0]: "uid-of-the-one-before", KEYS[1]: "uid-kept"}, FakeLease().require)
    assert {key: failure.kind for key, failure in failures.items()} == {KEYS[0]: FailureKind.CONFLICT}
    assert cluster.deleted == ["kept"]


MANY = [a_claim(f"claim-{number:02}") for number in range(40)]


class TakenOver(FakeCluster):
    """The Lease is lost with the first deletion, as for a process that is suspended there."""

    lease = FakeLease()

    def delete(self, kind: Kind, namespace: str, name: str, uid: str, require: Callable[[], None]) -> None:
        super().delete(kind, namespace, name, uid, require)
        self.lease.usable = False


def test_without_the_lease_no_further_deletion_is_requested(tmp_path: Path) -> None:
    cluster, stack = TakenOver(*map(live, MANY)), RecordingStack(a_state(*map(live, MANY)))
    cluster.lease = FakeLease()
    with closing(a_shard(stack, cluster, tmp_path, cluster.lease)) as shard:
        applied = shard.apply(part(*(each["metadata"]["name"] for each in MANY)), lambda _: None)
        with pytest.raises(LeaseLostError):
            applied.result(30)
    assert 1 <= len(cluster.deleted) <= 16, "what other threads had begun"


def test_without_the_lease_a_stack_is_not_drained_further() -> None:
    cluster, stack = TakenOver(*map(live, MANY)), RecordingStack(a_state(*map(live, MANY)))
    cluster.lease = FakeLease()
    keeper = a_keeper(stack, cluster=cluster, lease=cluster.lease)
    with pytest.raises(LeaseLostError):
        keeper.remove()
    assert 1 <= len(cluster.deleted) <= 16


def test_an_object_that_is_terminating_is_not_deleted_again(tmp_path: Path, stack: RecordingStack) -> None:
    cluster = FakeCluster(live(DRAINED, deleting=True), live(KEPT))
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        assert shard.apply(part("drained"), lambda _: None).result(30).deleted == (KEYS[0],)
    assert cluster.deleted == []


def test_a_state_of_an_older_release_is_changed_before_its_engine_deletes_objects() -> None:
    stack = FakeStack(a_state(live(DRAINED), retainOnDelete=False))
    keeper = a_keeper(stack, live(DRAINED))
    assert keeper.state.deletes_objects
    keeper.recover()
    assert recorded(keeper.state) == {"drained"}
    assert not keeper.state.deletes_objects


def test_a_backup_of_an_older_release_is_changed_before_its_engine_deletes_objects(
    shard: Shard, stack: RecordingStack
) -> None:
    """It takes the place of a damaged state at any time, not only when the writer starts."""
    stack.replace_state(a_state(live(DRAINED), live(KEPT), retainOnDelete=False).deployment)
    assert shard.apply(part("drained"), lambda _: None).result(30).deleted == (KEYS[0],)
    shard.call_off().result(30)
    assert (recorded(stack.state), stack.by_name) == ({"kept"}, ())


def test_every_request_to_delete_has_the_uid_as_a_precondition() -> None:
    """By name alone, an object that took the name would be deleted."""
    sources = {path: path.read_text() for path in (CHECKOUT / "plimsoll").rglob("*.py")}
    deleting = {path.name: "preconditions" in text for path, text in sources.items() if 'request("DELETE"' in text}
    assert deleting == {"objects.py": True, "step_writer.py": True, "demands.py": True}
