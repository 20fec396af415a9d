"""Allocation of nodes to Workspaces: each node to one, for whole replicas, and stable."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model import Snapshot
from plimsoll.model.api import Workspace, WorkspaceStatus
from plimsoll.plan import validate
from tests.builders import a_node, a_pod, a_snapshot, a_workspace

SELECTORS = [{"pool": "a"}, {"zone": "1"}, {"zone": "2"}]

Allocation = dict[tuple[str, str], tuple[str, ...]]


def allocated(snapshot: Snapshot) -> Allocation:
    return {(each.workspace.namespace, each.workspace.name): each.allocated_nodes for each in validate(snapshot)}


def recorded(snapshot: Snapshot) -> Snapshot:
    """The snapshot after the statuses were written."""
    given_to = allocated(snapshot)

    def with_status(workspace: Workspace) -> Workspace:
        status = WorkspaceStatus.model_validate({"workerNodes": given_to[workspace.key]})
        return workspace.model_copy(update={"status": status})

    return snapshot.model_copy(update={"workspaces": tuple(with_status(each) for each in snapshot.workspaces)})


@st.composite
def siblings(draw: st.DrawFn, partitions: Sequence[Mapping[str, Any] | None] = (None,)) -> Snapshot:
    names = [f"n-{n}" for n in range(draw(st.integers(0, 8)))]
    nodes = [
        a_node(
            name,
            "a",
            more_labels={"zone": draw(st.sampled_from(["1", "2"]))},
            ready=draw(st.sampled_from([True, True, True, False])),
        )
        for name in names
    ]
    workspaces = [
        a_workspace(
            f"ws-{n}",
            created=f"2026-01-01T00:0{draw(st.integers(0, 3))}:00Z",
            per_replica=draw(st.integers(1, 3)),
            replicas=draw(st.integers(0, 3)),
            selector=draw(st.sampled_from(SELECTORS)),
            worker_nodes=draw(st.lists(st.sampled_from([*names, "gone"]), max_size=3)),
            partition=draw(st.sampled_from(partitions)),
        )
        for n in range(draw(st.integers(1, 5)))
    ]
    pods = [
        a_pod(f"p-{n}", draw(st.none() | st.sampled_from(workspaces)), draw(st.sampled_from([*names, ""])), devices=1)
        for n in range(draw(st.integers(0, 4)))
    ]
    return a_snapshot(*nodes, *workspaces, *pods)


@given(siblings())
def test_no_node_is_allocated_to_two_workspaces(snapshot: Snapshot) -> None:
    given_out = Counter(name for names in allocated(snapshot).values() for name in names)
    assert all(times == 1 for times in given_out.values())


@settings(max_examples=150)
@given(siblings([None, {"mode": "accelerator", "count": 1}]))
def test_only_partitioned_workspaces_share_a_node(snapshot: Snapshot) -> None:
    whole = {each.key for each in snapshot.workspaces if each.spec.resource.partition is None}
    owners: dict[str, list[tuple[str, str]]] = {}
    for key, names in allocated(snapshot).items():
        for name in names:
            owners.setdefault(name, []).append(key)
    assert all(len(keys) == 1 or whole.isdisjoint(keys) for keys in owners.values())


def test_a_full_node_of_a_partitioned_workspace_does_not_open_the_next_one_of_a_whole_one() -> None:
    part = {"mode": "accelerator", "count": 1}
    first = a_workspace("first", created="2026-01-01T00:00:00Z", partition=part, worker_nodes=["n-0"])
    whole = a_workspace("whole", created="2026-01-02T00:00:00Z", worker_nodes=["n-1"])
    later = a_workspace("later", created="2026-01-03T00:00:00Z", partition=part)
    found = allocated(a_snapshot(first, whole, later, a_node("n-0"), a_node("n-1")))
    assert found == {("default", "first"): ("n-0",), ("default", "whole"): ("n-1",), ("default", "later"): ()}


@given(siblings())
def test_allocated_nodes_are_usable_and_not_more_than_needed(snapshot: Snapshot) -> None:
    for verdict in validate(snapshot):
        assert set(verdict.allocated_nodes) <= set(verdict.node_names)
        assert len(verdict.allocated_nodes) <= (verdict.target_node_count or 0)


@given(siblings())
def test_recorded_nodes_are_allocated_again(snapshot: Snapshot) -> None:
    once = recorded(snapshot)
    assert allocated(once) == allocated(snapshot)
    assert [each.accepted for each in validate(once)] == [each.accepted for each in validate(snapshot)]


@given(siblings(), st.randoms(use_true_random=False))
def test_the_order_of_inputs_does_not_matter(snapshot: Snapshot, order: random.Random) -> None:
    mixed = snapshot.model_copy(
        update={
            field: tuple(order.sample(getattr(snapshot, field), len(getattr(snapshot, field))))
            for field in ("nodes", "workspaces", "pods")
        }
    )
    assert validate(mixed) == validate(snapshot)


@given(siblings())
def test_free_nodes_complete_replicas(snapshot: Snapshot) -> None:
    running = {(pod.labels.get("plimsoll.dev/workspace"), pod.node_name) for pod in snapshot.pods}
    for verdict in validate(snapshot):
        held = sum((verdict.workspace.name, name) in running for name in verdict.allocated_nodes)
        there = len(verdict.allocated_nodes)
        per_replica = verdict.per_replica_node_count or 1
        assert there == held or there % per_replica == 0 or there == verdict.target_node_count


def test_pods_take_precedence_over_the_status_and_the_status_over_age() -> None:
    old = a_workspace("old", created="2026-01-01T00:00:00Z")
    young = a_workspace("young", created="2026-01-02T00:00:00Z", worker_nodes=["n-0"])
    nodes = [a_node("n-0"), a_node("n-1")]
    assert allocated(a_snapshot(old, young, *nodes)) == {("default", "old"): ("n-1",), ("default", "young"): ("n-0",)}
    pod = a_pod("p", old, "n-0")
    assert allocated(a_snapshot(old, young, *nodes, pod)) == {
        ("default", "old"): ("n-0",),
        ("default", "young"): ("n-1",),
    }


def test_a_new_node_is_allocated_to_the_workspace_that_lacks_one() -> None:
    workspaces = [a_workspace(name) for name in ("a", "b")]
    before = recorded(a_snapshot(*workspaces, a_node("n-1")))
    after = before.model_copy(update={"nodes": (a_node("n-0"), a_node("n-1"))})
    assert allocated(after) == {("default", "a"): ("n-1",), ("default", "b"): ("n-0",)}
