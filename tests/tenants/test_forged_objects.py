"""Objects that a tenant labels as Plimsoll's: nothing is planned for them, and they take nothing from others."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.apply import FailureKind
from plimsoll.apply.delta import Part, Reviewer
from plimsoll.labels import SHARD, WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID
from plimsoll.model import ObjectKey, Plan, RefusedOperation, Snapshot
from plimsoll.model.cluster import Workload
from plimsoll.plan import plan, validate
from plimsoll.plan.owned import Ownership
from tests.applying.states import STACK, FakeCluster, a_deployment, a_state, deletion, live
from tests.builders import NC24, a_claim, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def a_forgery(name: str, namespace: str = "team-b", kind: str = "Deployment", **more: str) -> Workload:
    labels = {WORKSPACE: "gone", WORKSPACE_NAMESPACE: namespace, **more}
    return Workload.read(
        {
            "apiVersion": "v1" if kind == "Service" else "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels},
            "spec": {"replicas": 0},
        }
    )


def seen(*objects: Any, recorded: frozenset[str] = frozenset(), **environment: Any) -> Snapshot:
    found = a_snapshot(*objects, environment=an_environment(**({"nap": True} | environment)))
    return found.model_copy(update={"recorded": recorded})


def planned(snapshot: Snapshot, refused: dict[ObjectKey, RefusedOperation] | None = None) -> Plan:
    return plan(snapshot, validate(snapshot), NOW, refused=refused)


def test_forged_labels_do_not_keep_the_nodes_of_others_from_being_deleted() -> None:
    claims = [a_claim(f"left-{number}", ("team-a", "gone")) for number in range(3)]
    found = planned(seen(*(a_forgery(f"a{number:03}") for number in range(50)), *claims))
    assert {each.key.name for each in found.deletions} == {"left-0", "left-1", "left-2"}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Service"])
@pytest.mark.parametrize("more", [{}, {SHARD: STACK}, {SHARD: STACK, WORKSPACE_UID: "uid-ws"}])
def test_labels_alone_make_no_object_of_a_namespace_ours(kind: str, more: dict[str, str]) -> None:
    forged = a_forgery("forged", kind=kind, **more)
    assert planned(seen(forged)).empty
    own = Ownership(seen(forged))
    assert not (own.workloads or own.services or own.orphans)
    recorded = Ownership(seen(forged, recorded=frozenset({"uid-forged"})))
    assert [each.name for each in recorded.orphans] == ["forged"], "what the state records is deleted"


def test_the_name_of_a_workload_that_somebody_else_took_is_not_scaled_or_deleted() -> None:
    workspace = a_workspace("gone", namespace="team-b", instance_type=NC24, replicas=0)
    assert planned(seen(workspace, a_forgery("gone"))).empty


def test_without_a_state_labels_say_what_is_ours() -> None:
    snapshot = seen(a_forgery("left")).model_copy(update={"recorded": None})
    assert [each.key.name for each in planned(snapshot).deletions] == ["left"]


@pytest.mark.parametrize("uid", ["uid-serve", "uid-of-another"])
def test_the_applier_deletes_what_its_state_records_by_uid(uid: str) -> None:
    ours = a_deployment("serve")
    there = live(ours, uid=uid)  # with the label of the stack
    gone = deletion(ours, uid)
    review = Reviewer(FakeCluster(there)).review(Part(deletions=[gone]), a_state(live(ours)))
    if uid == "uid-serve":
        assert review.deletions == {gone.key: "uid-serve"}
    else:
        assert review.failed[gone.key].kind is FailureKind.NOT_OURS
        assert not review.has_work
    unrecorded = Reviewer(FakeCluster(there)).review(Part(deletions=[gone]), a_state())
    assert unrecorded.failed[gone.key].kind is FailureKind.NOT_OURS


@given(
    due=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 12), min_size=1),
    cap=st.integers(1, 40),
)
def test_namespaces_share_the_deletions_of_a_round(due: dict[str, int], cap: int) -> None:
    """By an independent rule: one more for a namespace only if nobody with fewer still waits."""
    claims = [a_claim(f"{team}-{number}", (team, "gone")) for team, many in due.items() for number in range(many)]
    found = planned(seen(*claims, limits={"deletionsPerTick": cap}))
    got = Counter(each.owner.namespace for each in found.deletions)
    assert got.total() == min(cap, sum(due.values()))
    for team, many in due.items():
        if got[team] < many:
            assert max(got.values()) <= got[team] + 1


def test_a_refused_operation_takes_nothing_of_the_limit_and_has_a_next_attempt() -> None:
    claims = [a_claim(f"left-{number}", ("team-a", "gone")) for number in range(3)]
    snapshot = seen(*claims, limits={"deletionsPerTick": 2})
    first, second = planned(snapshot).deletions
    until = NOW.replace(minute=6)
    refused = {each.key: RefusedOperation(each, until) for each in (first, second)}
    found = planned(snapshot, refused)
    assert [each.key.name for each in found.deletions] == ["left-2"]
    assert found.waiting == (first.key, second.key)
    assert found.next_deadline == until


def test_an_operation_with_other_content_is_tried_at_once() -> None:
    workspace = a_workspace("ws", instance_type=NC24)
    [creation] = planned(seen(workspace)).creations
    refused = {creation.key: RefusedOperation(creation, NOW.replace(minute=6))}
    assert planned(seen(workspace), refused).empty
    changed = a_workspace("ws", instance_type=NC24, selector={"pool": "b"})
    assert [each.key for each in planned(seen(changed), refused).creations] == [creation.key]
