"""The finalizer of a Workspace: set with its capacity, and removed when the capacity is gone, in every case."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.labels import CAPACITY_FINALIZER, ENVIRONMENT
from plimsoll.model import InvalidObject, Plan, Snapshot
from plimsoll.plan import plan, validate
from plimsoll.report import finalizing
from tests.builders import NC24, a_claim, a_node, a_node_pool, a_snapshot, a_workspace
from tests.planning.cluster import after

NOW = datetime(2026, 1, 1, 2, 5, tzinfo=UTC)
"""Five minutes after the builders' deletions of Workspaces."""
MUCH_LATER = datetime(2026, 1, 1, 2, 11, tzinfo=UTC)


def carrying(**fields: Any) -> Any:
    workspace = a_workspace(**({"instance_type": NC24, "uid": "u"} | fields))
    return workspace.model_copy(update={"finalizers": ("other.example/kept", CAPACITY_FINALIZER)})


def changes(snapshot: Snapshot, found: Plan | None = None, now: datetime = NOW, failures: Any = ()) -> list[bool]:
    return [each.wanted for each in finalizing(snapshot, found or Plan(), failures, now)]


def test_the_finalizer_is_set_when_an_instance_is_launched() -> None:
    snapshot = a_snapshot(a_workspace(instance_type=NC24, uid="u", selector={}), nap=True)
    found = plan(snapshot, validate(snapshot), NOW)
    assert changes(snapshot, found) == []
    made = after(snapshot, found)
    assert changes(made) == [], "an order that nobody has taken is no capacity"
    [claim] = made.node_claims
    launched = made.model_copy(update={"node_claims": (claim.model_copy(update={"provider_id": "aws:///i-1"}),)})
    assert changes(launched) == [True]
    for cluster in (launched, made):
        assert changes(cluster.model_copy(update={"workspaces": (carrying(),)})) == []


def test_the_finalizer_is_set_when_a_workload_is_created() -> None:
    snapshot = a_snapshot(a_workspace(uid="u", template={"spec": {"containers": [{"name": "c"}]}}), a_node("n"))
    found = plan(snapshot, validate(snapshot), NOW)
    assert changes(snapshot, found) == [True]
    assert changes(snapshot, found, failures={found.creations[0].key}) == []


def test_without_capacity_the_finalizer_is_removed() -> None:
    assert changes(a_snapshot(carrying(), nap=True)) == [False]


@pytest.mark.parametrize("left", [a_claim("c", uid="u"), a_claim("c", uid="u", deleting=True), a_claim("c")])
def test_a_deleted_workspace_waits_for_its_objects(left: Any) -> None:
    assert changes(a_snapshot(carrying(deleting=True), left, nap=True)) == []
    assert changes(a_snapshot(carrying(deleting=True), nap=True)) == [False]


def test_objects_of_an_earlier_workspace_of_the_same_name_are_not_awaited() -> None:
    assert changes(a_snapshot(carrying(deleting=True), a_claim("c", uid="older"), nap=True)) == [False]


def test_its_node_pool_is_awaited() -> None:
    owned = a_claim("c", uid="u").labels
    pool = a_node_pool("own").model_copy(update={"labels": owned})
    assert changes(a_snapshot(carrying(deleting=True), pool, nap=True)) == []


def test_the_finalizer_is_never_set_on_a_deleted_workspace() -> None:
    gone = a_workspace(uid="u", instance_type=NC24, deleting=True)
    assert changes(a_snapshot(gone, a_claim("c", uid="u"), nap=True)) == []


def test_the_finalizer_is_removed_if_nothing_completes_the_deletions() -> None:
    stuck = a_snapshot(carrying(deleting=True), a_claim("c", uid="u", deleting=True), nap=True)
    assert changes(stuck, now=MUCH_LATER) == [False]
    living = a_snapshot(carrying(deleting=True), a_claim("c", uid="u"), nap=True)
    assert changes(living, now=MUCH_LATER) == [], "its deletion has not even begun"


def test_the_finalizer_is_removed_from_refused_workspaces_and_without_an_environment() -> None:
    assert changes(a_snapshot(carrying(deleting=True, instance_type="nonesuch"), nap=True)) == [False]
    claim = a_claim("c", uid="u")
    foreign = claim.model_copy(update={"labels": claim.labels | {ENVIRONMENT: "gone"}})
    assert changes(a_snapshot(carrying(deleting=True), foreign, nap=True)) == [False]


def test_the_finalizer_is_removed_from_an_invalid_workspace() -> None:
    unread = InvalidObject(
        ref=a_workspace(uid="u").ref,
        message="spec.resorce: unknown field",
        deletion_timestamp="2026-01-01T02:00:00Z",
        finalizers=(CAPACITY_FINALIZER,),
    )
    claim = a_claim("c", uid="u")
    snapshot = a_snapshot(claim, nap=True).model_copy(update={"invalid_workspaces": (unread,)})
    found = plan(snapshot, validate(snapshot), NOW)
    assert [each.key.name for each in found.deletions] == ["c"]
    assert changes(snapshot) == []
    assert changes(snapshot.model_copy(update={"node_claims": ()})) == [False]
