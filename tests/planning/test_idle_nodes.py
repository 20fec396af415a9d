"""Scaled to 0 replicas: nodes stay for a while, and replicas that come back start on them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node, a_snapshot, a_workspace, an_environment
from tests.planning.cluster import after, launched, round_of

NOW = datetime(2026, 1, 3, tzinfo=UTC)
LATER = NOW + timedelta(seconds=599)
END = NOW + timedelta(seconds=600)


def wanting(replicas: int, idle: int | None = None) -> Workspace:
    workspace = a_workspace(replicas=replicas, selector={}, uid="u", instance_type=NC24)
    resource = workspace.spec.resource.model_copy(update={"idle_seconds": idle})
    return workspace.model_copy(update={"spec": workspace.spec.model_copy(update={"resource": resource})})


def scaled(snapshot: Snapshot, replicas: int, idle: int | None = None) -> Snapshot:
    """As the scale subresource changes it."""
    [before] = snapshot.workspaces
    workspace = wanting(replicas, idle).model_copy(update={"status": before.status})
    return snapshot.model_copy(update={"workspaces": (workspace,)})


def serving(replicas: int = 2, idle: int | None = None, most: int | None = 600, **spec: Any) -> Snapshot:
    """Its nodes and its workload are there."""
    settings = {} if most is None else {"nodeClaims": {"idleSeconds": most}}
    snapshot = a_snapshot(wanting(replicas, idle), environment=an_environment(nap=True, **settings, **spec))
    snapshot = launched(after(snapshot, planned(snapshot)))
    return after(snapshot, planned(snapshot))


def planned(snapshot: Snapshot, now: datetime = NOW) -> Plan:
    return plan(snapshot, validate(snapshot), now)


def gone(found: Plan) -> int:
    return sum(each.key.kind == "NodeClaim" for each in found.deletions)


def condition(snapshot: Snapshot, kind: str) -> str:
    [workspace] = snapshot.workspaces
    return next(each.message for each in workspace.status.conditions if each.type == kind)


def test_nodes_stay_for_the_time_that_the_environment_sets_and_then_go() -> None:
    found, snapshot = round_of(scaled(serving(), 0), NOW)
    assert not gone(found)
    assert found.next_deadline == END
    [workload] = [each.manifest for each in found.updates]
    assert workload["spec"]["replicas"] == 0
    snapshot = after(snapshot, found)
    assert snapshot.workspaces[0].status.provisioning.idle_since == "2026-01-03T00:00:00Z"
    assert planned(snapshot, LATER).empty
    found = planned(snapshot, END)
    assert gone(found) == 2
    _, snapshot = round_of(after(snapshot, found), END)
    assert not snapshot.workspaces[0].status.provisioning.idle_since


def test_status_says_until_when_nodes_stay_and_what_they_cost() -> None:
    _, snapshot = round_of(scaled(serving(), 0), NOW)
    assert "2 nodes" in condition(snapshot, "NodeClaimsReady")
    assert "2026-01-03T00:10:00Z" in condition(snapshot, "NodeClaimsReady")
    _, snapshot = round_of(scaled(serving(catalog={"prices": {NC24: 3.5}}), 0), NOW)
    assert "7 an hour" in condition(snapshot, "NodeClaimsReady")


def test_replicas_that_come_back_start_on_the_nodes_that_stayed() -> None:
    found, snapshot = round_of(scaled(serving(), 0), NOW)
    _, snapshot = round_of(scaled(after(snapshot, found), 2), LATER)
    found, again = round_of(snapshot, LATER)
    assert not found.creations
    assert [each.manifest["spec"]["replicas"] for each in found.updates] == [2]
    assert not again.workspaces[0].status.provisioning.idle_since


def test_a_second_pause_has_its_own_time() -> None:
    found, snapshot = round_of(scaled(serving(), 0), NOW)
    found, snapshot = round_of(scaled(after(snapshot, found), 2), LATER)
    found, snapshot = round_of(scaled(after(snapshot, found), 0), LATER)
    assert found.next_deadline == LATER + timedelta(seconds=600)
    assert not gone(planned(snapshot, END))


@pytest.mark.parametrize(("most", "idle"), [(None, None), (None, 600), (600, 0), (0, None)])
def test_nodes_go_at_once_unless_both_allow_them_to_stay(most: int | None, idle: int | None) -> None:
    assert gone(planned(scaled(serving(idle=idle, most=most), 0, idle))) == 2


def test_a_workspace_sets_less_time_and_more_is_told() -> None:
    found, _ = round_of(scaled(serving(idle=60), 0, 60), NOW)
    assert found.next_deadline == NOW + timedelta(seconds=60)
    found, _ = round_of(scaled(serving(idle=6000), 0, 6000), NOW)
    assert found.next_deadline == END
    assert any("idleSeconds" in each for each in found.verdicts[0].warnings)


def test_fewer_replicas_than_before_release_nodes_at_once() -> None:
    assert gone(planned(scaled(serving(), 1))) == 1


def test_a_node_that_is_lost_meanwhile_is_not_bought_again() -> None:
    found, snapshot = round_of(scaled(serving(), 0), NOW)
    snapshot = after(snapshot, found)
    one = snapshot.model_copy(update={"node_claims": snapshot.node_claims[:1]})
    assert planned(one, LATER).empty
    lacking = [each.model_copy(update={"conditions": ()}) for each in snapshot.node_claims]
    late = snapshot.model_copy(update={"node_claims": tuple(lacking)})
    assert not planned(late, LATER).creations


def test_nodes_that_stay_count_against_limits() -> None:
    _, snapshot = round_of(scaled(serving(limits={"nodes": 2}), 0), NOW)
    other = a_workspace("other", replicas=1, selector={}, instance_type=NC24, created="2026-01-02T00:00:00Z")
    both = snapshot.model_copy(update={"workspaces": (*snapshot.workspaces, other)})
    assert not validate(both)[0].accepted


def test_nodes_of_a_deleted_workspace_do_not_stay() -> None:
    snapshot = serving()
    assert gone(planned(snapshot.model_copy(update={"workspaces": ()}))) == 2


def test_a_static_node_pool_keeps_its_replicas() -> None:
    snapshot = serving(provisioner="static-nodepool")
    found, _ = round_of(scaled(snapshot, 0), NOW)
    assert not [each for each in found.updates if each.key.kind == "NodePool"]
    assert found.next_deadline == END
    [workspace] = scaled(snapshot, 0).workspaces
    record = workspace.status.provisioning.model_copy(update={"idle_since": "2026-01-03T00:00:00Z"})
    status = workspace.status.model_copy(update={"provisioning": record})
    ended = snapshot.model_copy(update={"workspaces": (workspace.model_copy(update={"status": status}),)})
    [update] = [each for each in planned(ended, END).updates if each.key.kind == "NodePool"]
    assert update.manifest["spec"]["replicas"] == 0


def test_existing_nodes_are_not_kept() -> None:
    workspace = a_workspace(replicas=0)
    found, snapshot = round_of(a_snapshot(workspace, a_node()), NOW)
    assert found.empty
    assert not snapshot.workspaces[0].status.provisioning.idle_since
