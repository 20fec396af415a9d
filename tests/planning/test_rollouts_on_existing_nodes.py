"""Rollouts with Surge where existing nodes match: a free one is used, and a paid one goes."""

from typing import Any

import pytest

from plimsoll.labels import GIVEN_UP, MOVED
from plimsoll.model import Change, Plan, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node, Pod
from plimsoll.plan import validate
from tests.builders import NC24, a_node, a_pod, a_snapshot, an_environment
from tests.planning.cluster import after, launched
from tests.planning.test_rollouts import a_ready, of_kind, planned, rolling, wanting, with_pods


def selecting(replicas: int = 1, image: str = "own:1", max_surge: int = 1, **fields: Any) -> Workspace:
    """A Workspace on the existing nodes of `pool: a`."""
    return wanting(replicas, image, max_surge, **{"selector": {"pool": "a"}, "instance_type": None, **fields})


def existing(nodes: int, *workspaces: Workspace) -> Snapshot:
    return a_snapshot(*workspaces, *(a_node(f"n-{number}") for number in range(nodes)), environment=an_environment())


def running(snapshot: Snapshot, *pods: Pod) -> Snapshot:
    """Every Workspace has its workload, and these pods."""
    return with_pods(after(snapshot, planned(snapshot)), *pods)


def on(node: str, workspace: str = "ws", status: str = "True") -> Pod:
    ready = a_ready(f"{workspace}-on-{node}", node, status)
    return a_pod(ready.name, selecting(name=workspace), node=node).model_copy(update={"conditions": ready.conditions})


def declared(found: Plan, name: str = "ws") -> dict[str, Any]:
    [change] = [each for each in (*found.creations, *found.updates) if each.key.name == name]
    spec: dict[str, Any] = change.manifest["spec"]
    return spec


def pace(found: Plan, name: str = "ws") -> tuple[bool, int, int]:
    """Whether it is held, how many pods it has more than replicas, and how many fewer."""
    spec = declared(found, name)
    rollout = spec["strategy"]["rollingUpdate"]
    return spec["paused"], rollout["maxSurge"], rollout["maxUnavailable"]


def with_image(snapshot: Snapshot, image: str, *names: str) -> Snapshot:
    """The Workspaces of these names have another image."""
    changed = [
        selecting(each.replicas, image, each.surge, name=each.name, created=each.creation_timestamp)
        if each.name in names
        else each
        for each in snapshot.workspaces
    ]
    return snapshot.model_copy(update={"workspaces": tuple(changed)})


def status(snapshot: Snapshot, name: str, **fields: Any) -> Snapshot:
    workloads = [each.model_copy(update=fields) if each.name == name else each for each in snapshot.workloads]
    return snapshot.model_copy(update={"workloads": tuple(workloads)})


def test_with_a_free_node_the_new_replica_starts_there_and_the_old_one_serves() -> None:
    snapshot = running(existing(2, selecting()), on("n-0"))
    changed = with_image(snapshot, "own:2", "ws")
    found = planned(changed)
    assert pace(found) == (False, 1, 0)
    begun = rolling(after(changed, found), pods=2, updated=1)
    both = with_pods(begun, on("n-0"), on("n-1", status="False"))
    [verdict] = validate(both)
    assert verdict.allocated_nodes == ("n-0", "n-1")
    assert planned(both).empty
    done = with_pods(rolling(begun, pods=1, updated=1), on("n-1"))
    [verdict] = validate(done)
    assert verdict.allocated_nodes == ("n-1",), "the node of the old pod is free again"
    assert planned(done).empty


def test_without_a_free_node_the_rollout_is_held_while_the_old_replica_serves() -> None:
    snapshot = running(existing(1, selecting()), on("n-0"))
    [verdict] = validate(snapshot)
    assert verdict.surge == 0
    assert any("no node is free" in each for each in verdict.warnings)
    changed = with_image(snapshot, "own:2", "ws")
    found = planned(changed)
    assert pace(found)[0]
    held = rolling(after(changed, found), pods=1, updated=0)
    assert planned(held).empty
    another = held.model_copy(update={"nodes": (*held.nodes, a_node("n-1"))})
    assert pace(planned(another)) == (False, 1, 0), "it starts when a node is free"
    [verdict] = validate(another)
    assert not verdict.warnings


def test_without_a_free_node_pods_that_do_not_serve_are_replaced_in_place() -> None:
    snapshot = running(existing(1, selecting()), on("n-0", status="False"))
    assert pace(planned(with_image(snapshot, "own:2", "ws"))) == (False, 0, 1)


def test_a_held_workload_whose_pods_fail_is_replaced_in_place() -> None:
    changed = with_image(running(existing(1, selecting()), on("n-0")), "own:2", "ws")
    held = rolling(after(changed, planned(changed)), pods=1, updated=0)
    assert pace(planned(with_pods(held, on("n-0", status="False")))) == (False, 0, 1)


def test_a_new_workload_is_not_held() -> None:
    """A Deployment that is paused creates no first pod."""
    assert not pace(planned(existing(1, selecting())))[0]


def test_no_more_new_pods_than_free_nodes() -> None:
    snapshot = running(existing(6, selecting(4, max_surge=3)), *(on(f"n-{number}") for number in range(4)))
    assert pace(planned(with_image(snapshot, "own:2", "ws"))) == (False, 2, 0)


def test_one_free_node_is_for_one_of_two_rollouts() -> None:
    first = selecting(name="one", created="2026-01-01T00:00:00Z")
    second = selecting(name="two", created="2026-01-02T00:00:00Z")
    snapshot = running(existing(3, first, second), on("n-0", "one"), on("n-1", "two"))
    changed = with_image(snapshot, "own:2", "two")
    found = planned(changed)
    assert pace(found, "two")[0], "the older one may begin, too"
    begun = status(after(changed, found), "two", pods=1, updated_replicas=0)
    assert pace(planned(begun), "two") == (False, 1, 0), "one that has begun comes first"
    both = with_image(status(after(begun, planned(begun)), "two", pods=2, updated_replicas=1), "own:2", "one")
    taken = with_pods(both, on("n-0", "one"), on("n-1", "two"), on("n-2", "two", "False"))
    assert pace(planned(taken), "one")[0]


def test_a_replica_of_another_workspace_comes_before_a_rollout() -> None:
    snapshot = running(existing(2, selecting()), on("n-0"))
    other = selecting(name="new", created="2026-01-03T00:00:00Z")
    changed = with_image(snapshot.model_copy(update={"workspaces": (*snapshot.workspaces, other)}), "own:2", "ws")
    found = planned(changed)
    assert [verdict.accepted for verdict in found.verdicts] == [True, True]
    assert pace(found, "ws")[0]


def test_parts_of_a_node_are_counted_as_pods() -> None:
    parted = selecting(2, partition={"mode": "accelerator", "count": 1})
    node = a_node("n-0", count=4, allocatable=4)
    snapshot = a_snapshot(parted, node, environment=an_environment())
    [verdict] = validate(snapshot)
    assert (verdict.surge, verdict.target_node_count) == (1, 1)
    limited = parted.spec.resource.model_copy(update={"node_count_limit": 1})
    within = parted.model_copy(update={"spec": parted.spec.model_copy(update={"resource": limited})})
    [verdict] = validate(snapshot.model_copy(update={"workspaces": (within,)}))
    assert verdict.accepted, "a third pod fits the node"


def test_a_rollout_that_stalls_is_told_and_not_given_up() -> None:
    """No node was created for it."""
    changed = with_image(running(existing(2, selecting()), on("n-0")), "own:2", "ws")
    stalled = rolling(after(changed, planned(changed)), pods=2, updated=1, stalled=True)
    found = planned(with_pods(stalled, on("n-0"), on("n-1", status="False")))
    assert found.empty
    assert any("deadline of the rollout" in each for each in found.warnings)
    assert not any(GIVEN_UP in each.annotations for each in stalled.workloads)


def test_max_surge_without_surge_is_told() -> None:
    workspace = selecting()
    inference = workspace.spec.inference
    assert inference is not None
    rollout = inference.rollout.model_copy(update={"strategy": "Recreate", "max_surge": 2})
    spec = workspace.spec.model_copy(update={"inference": inference.model_copy(update={"rollout": rollout})})
    [verdict] = validate(existing(1, workspace.model_copy(update={"spec": spec})))
    assert verdict.accepted
    assert any("maxSurge" in each for each in verdict.warnings)


# With node auto-provisioning


def owned(*nodes: Node, **fields: Any) -> Snapshot:
    """One replica is on the existing node, beside other nodes of its type."""
    workspace = wanting(selector={"pool": "a"}, **fields)
    snapshot = a_snapshot(workspace, a_typed("e-0"), *nodes, environment=an_environment(nap=True))
    return with_pods(after(snapshot, planned(snapshot)), a_ready("old", "e-0"))


def a_typed(name: str) -> Node:
    return a_node(name, instance_type=NC24, allocatable=1)


def changed(snapshot: Snapshot) -> Snapshot:
    """With another image, of which no pod is there yet."""
    workspace = wanting(selector={"pool": "a"}, image="own:2")
    snapshot = snapshot.model_copy(update={"workspaces": (workspace,)})
    return rolling(after(snapshot, planned(snapshot)), pods=1, updated=0)


def test_no_node_is_bought_for_a_rollout_while_an_existing_one_is_free() -> None:
    snapshot = owned(a_typed("e-1"))
    assert not snapshot.node_claims
    assert not planned(changed(snapshot)).creations


@pytest.fixture
def moved_away() -> Snapshot:
    """After a rollout, the pod is on the node that was bought for it, and the existing one is free."""
    snapshot = changed(owned())
    snapshot = launched(after(snapshot, planned(snapshot)))
    [claim] = snapshot.node_claims
    return with_pods(rolling(snapshot, pods=1, updated=1), a_ready("new", claim.node_name))


def settled(snapshot: Snapshot) -> Snapshot:
    [workload] = snapshot.workloads
    return snapshot.model_copy(update={"workloads": (workload.model_copy(update={"ready_replicas": 1}),)})


def test_after_a_rollout_the_pod_moves_back_and_the_paid_node_goes(moved_away: Snapshot) -> None:
    [claim] = moved_away.node_claims
    assert planned(moved_away).empty, "it is not Ready yet"
    snapshot = settled(moved_away)
    found = planned(snapshot)
    [update] = found.updates
    assert isinstance(update, Change)
    assert update.manifest["spec"]["template"]["metadata"]["annotations"][MOVED]
    assert not found.deletions
    assert not found.creations
    snapshot = after(snapshot, found)
    assert planned(settled(rolling(snapshot, pods=1, updated=1))).empty, "the Deployment has not begun"
    both = with_pods(
        rolling(snapshot, pods=2, updated=1), a_ready("new", claim.node_name), a_ready("back", "e-0", "False")
    )
    assert planned(both).empty
    back = settled(with_pods(rolling(snapshot, pods=1, updated=1), a_ready("back", "e-0")))
    found = planned(back)
    assert of_kind(found.deletions, "NodeClaim") == [claim.name]
    assert not found.updates
    assert planned(after(back, found)).empty


def test_pods_do_not_move_while_replicas_change(moved_away: Snapshot) -> None:
    [workload] = settled(moved_away).workloads
    more = workload.model_copy(update={"pods": 2, "ready_replicas": 2, "replicas": 2})
    assert not [
        each
        for each in planned(moved_away.model_copy(update={"workloads": (more,)})).updates
        if MOVED in each.manifest["metadata"]["annotations"]
    ]


def test_the_move_is_no_part_of_recreate(moved_away: Snapshot) -> None:
    """It keeps what was declared, so that no other rollout starts."""
    found = planned(settled(moved_away))
    snapshot = settled(rolling(after(settled(moved_away), found), pods=1, updated=1))
    workspace = wanting(selector={"pool": "a"}, image="own:2")
    inference = workspace.spec.inference
    assert inference is not None
    rollout = inference.rollout.model_copy(update={"strategy": "Recreate"})
    spec = workspace.spec.model_copy(update={"inference": inference.model_copy(update={"rollout": rollout})})
    [before] = found.updates
    [update] = planned(
        snapshot.model_copy(update={"workspaces": (workspace.model_copy(update={"spec": spec}),)})
    ).updates
    assert update.manifest["spec"]["template"] == before.manifest["spec"]["template"]
