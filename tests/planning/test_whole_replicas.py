"""Replicas that span nodes start completely or not at all, whichever other Workspaces need the nodes."""

import random
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import a_node, a_pod, a_snapshot, a_workload, a_workspace, an_environment
from tests.calls import calls
from tests.planning.cluster import after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def of(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), NOW)


def spanning(name: str, minute: int = 0, per_replica: int = 2, replicas: int = 1, **fields: Any) -> Workspace:
    created = f"2026-01-01T00:{minute:02}:00Z"
    return a_workspace(name, created=created, per_replica=per_replica, replicas=replicas, **fields)


def pool(size: int) -> list[Any]:
    return [a_node(f"n-{number}") for number in range(size)]


def condition_of(snapshot: Snapshot, name: str) -> tuple[str, str, str]:
    verdicts = validate(snapshot)
    [workspace] = [each for each in snapshot.workspaces if each.name == name]
    [verdict] = [each for each in verdicts if each.workspace.name == name]
    status = status_of(workspace, verdict, WorkspaceNodes(snapshot, verdicts), NOW)
    [found] = [each for each in status["conditions"] if each["type"] == "WorkloadReady"]
    return found["status"], found["reason"], found["message"]


def test_on_three_nodes_one_of_two_replicas_of_two_nodes_starts_and_the_other_waits_with_a_reason() -> None:
    older, younger = spanning("older"), spanning("younger", 1)
    snapshot = a_snapshot(younger, older, *pool(3))
    first = of(snapshot)
    assert [each.key.name for each in first.creations] == ["older"]
    running = after(snapshot, first)
    placed = running.model_copy(update={"pods": (a_pod("p-0", older, "n-0"), a_pod("p-1", older, "n-2"))})
    for each in (running, placed):
        assert of(each).empty
    status, reason, message = condition_of(placed, "younger")
    assert (status, reason) == ("False", "WorkloadPending")
    assert message.startswith("1 replica of 1 not started: one requires 2 nodes at once, 1 of its nodes are free")


def test_a_waiting_replica_starts_when_there_is_room() -> None:
    older, younger = spanning("older"), spanning("younger", 1)
    snapshot = a_snapshot(older, younger, *pool(3))
    running = after(snapshot, of(snapshot))
    placed = (a_pod("p-0", older, "n-0"), a_pod("p-1", older, "n-1"))
    grown = running.model_copy(update={"pods": placed, "nodes": tuple(pool(4))})
    assert [each.key.name for each in of(grown).creations] == ["younger"]


def test_pods_of_other_namespaces_with_its_labels_do_not_count_as_placed() -> None:
    """On three nodes, a second replica would start one pod short."""
    older, younger = spanning("older"), spanning("younger", 1)
    running = after(first := a_snapshot(older, younger, *pool(3)), of(first))
    strangers = tuple(a_pod(f"p-{n}", older, f"other-{n}").model_copy(update={"namespace": "b"}) for n in range(2))
    assert of(running.model_copy(update={"pods": strangers})).creations == ()


def test_as_many_whole_replicas_start_as_fit() -> None:
    workspace = spanning("ws", replicas=3)
    snapshot = a_snapshot(workspace, *pool(5))
    [creation] = of(snapshot).creations
    assert creation.manifest["spec"]["replicas"] == 2
    running = after(snapshot, of(snapshot))
    assert of(running).empty
    assert "1 replica of 3 not started" in condition_of(running, "ws")[2]
    [update] = of(running.model_copy(update={"nodes": tuple(pool(6))})).updates
    assert update.manifest["spec"]["replicas"] == 3


def test_no_replica_starts_on_nodes_with_gpu_shares() -> None:
    shares = a_pod("share", None, "n-0", annotations={"gpu-fraction": "0.5"})
    [creation] = of(a_snapshot(spanning("ws", replicas=2), *pool(4), shares)).creations
    assert creation.manifest["spec"]["replicas"] == 1


def test_a_lost_node_stops_no_replica() -> None:
    snapshot = a_snapshot(spanning("ws", replicas=2), *pool(4))
    running = after(snapshot, of(snapshot))
    assert of(running.model_copy(update={"nodes": tuple(pool(3))})).empty


def test_nodes_with_gpu_pods_of_others_are_not_free() -> None:
    other = a_workspace("other", inference=False)
    snapshot = a_snapshot(spanning("ws"), *pool(2), a_pod("p", other, "n-0"))
    assert of(snapshot).empty


def test_pending_pods_of_single_node_replicas_count_first() -> None:
    single = a_workspace("single", created="2025-12-31T00:00:00Z", replicas=2)
    snapshot = a_snapshot(spanning("ws"), single, *pool(3))
    assert [each.key.name for each in of(snapshot).creations] == ["single"]


def test_pods_of_single_node_replicas_use_no_nodes_of_an_older_workspace() -> None:
    single = a_workspace("single", created="2026-01-02T00:00:00Z", replicas=2)
    snapshot = a_snapshot(spanning("ws"), single, *pool(3))
    replicas = {each.key.name: each.manifest["spec"]["replicas"] for each in of(snapshot).creations}
    assert replicas == {"ws": 1, "single": 1}


def test_an_older_workspace_that_does_not_fit_blocks_no_other() -> None:
    big, small = spanning("big", per_replica=3), spanning("small", 1)
    snapshot = a_snapshot(big, small, *pool(3), a_pod("p", a_workspace("x", inference=False), "n-0"))
    assert [each.key.name for each in of(snapshot).creations] == ["small"]


SELECTORS = [{"pool": "a"}, {"zone": "1"}, {"zone": "2"}]


@st.composite
def shared_pools(draw: st.DrawFn) -> Snapshot:
    """Workspaces with overlapping selectors, and nodes."""
    nodes = [
        a_node(f"n-{n}", "a", more_labels={"zone": draw(st.sampled_from(["1", "2"]))})
        for n in range(draw(st.integers(1, 8)))
    ]
    workspaces = [
        spanning(
            f"ws-{n}",
            draw(st.integers(0, 3)),
            per_replica=draw(st.integers(1, 3)),
            replicas=draw(st.integers(1, 3)),
            selector=draw(st.sampled_from(SELECTORS)),
        )
        for n in range(draw(st.integers(1, 4)))
    ]
    return a_snapshot(*nodes, *workspaces, environment=an_environment())


def scheduled(snapshot: Snapshot, chance: random.Random) -> Snapshot:
    """Any scheduler: pods in any order, each on any free node of its Workspace, one after the other."""
    pods = list(snapshot.pods)
    waiting = []
    for workload in snapshot.workloads:
        group = (workload.kind == "LeaderWorkerSet" and sizes[workload.name]) or 1
        [owner] = [each for each in snapshot.workspaces if each.name == workload.name]
        there = sum(pod.labels.get("plimsoll.dev/workspace") == workload.name for pod in pods)
        waiting += [(owner, f"{owner.name}-{number}") for number in range(there, workload.replicas * group)]
    chance.shuffle(waiting)
    for owner, name in waiting:
        taken = {pod.node_name for pod in pods}
        free = [
            node.name
            for node in snapshot.nodes
            if node.name not in taken and owner.spec.resource.label_selector.matches(node.labels)
        ]
        if free:
            pods.append(a_pod(name, owner, chance.choice(free)))
    return snapshot.model_copy(update={"pods": tuple(pods)})


sizes: dict[str, int] = {}
"""Pods of a group by the Workspace's name, from the plan, for the simulated scheduler."""


@given(shared_pools(), st.randoms(use_true_random=False))
def test_no_replica_starts_partially_whatever_the_scheduler_does(snapshot: Snapshot, chance: random.Random) -> None:
    sizes.clear()
    verdicts = validate(snapshot)
    sizes.update({each.workspace.name: each.per_replica_node_count or 1 for each in verdicts})
    for _ in range(4):
        snapshot = after(snapshot, of(snapshot))
        snapshot = scheduled(snapshot, chance)
        for workload in snapshot.workloads:
            if workload.kind == "LeaderWorkerSet":
                placed = sum(pod.labels["plimsoll.dev/workspace"] == workload.name for pod in snapshot.pods)
                assert placed == workload.replicas * sizes[workload.name], f"{workload.name} is there in part"


@given(shared_pools(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(snapshot: Snapshot, chance: random.Random) -> None:
    mixed = snapshot.model_copy(
        update={
            "workspaces": tuple(chance.sample(snapshot.workspaces, len(snapshot.workspaces))),
            "nodes": tuple(chance.sample(snapshot.nodes, len(snapshot.nodes))),
        }
    )
    assert of(mixed) == of(snapshot)


def test_an_existing_group_is_not_counted_twice() -> None:
    workspace = spanning("ws")
    [creation] = of(a_snapshot(workspace, *pool(2))).creations
    there = a_workload(creation.manifest)
    assert of(a_snapshot(workspace, *pool(2), there)).empty
    pods = [a_pod(f"p-{n}", workspace, f"n-{n}") for n in range(2)]
    assert of(a_snapshot(workspace, *pool(2), there, *pods)).empty


def test_the_cost_of_a_workspace_does_not_depend_on_the_number_of_nodes() -> None:
    """Their free nodes were counted for each Workspace, three times."""

    def cost(workspaces: int, nodes: int) -> int:
        snapshot = a_snapshot(*(spanning(f"ws-{number}") for number in range(workspaces)), *pool(nodes))
        verdicts = validate(snapshot)
        return calls(lambda: plan(snapshot, verdicts, NOW))

    def of_ten_more(nodes: int) -> int:
        return cost(20, nodes) - cost(10, nodes)

    assert of_ten_more(150) - of_ten_more(50) < 10 * 100
