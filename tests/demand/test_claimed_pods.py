"""A pod that is being bound either uses its GPUs or waits for some, never both."""

from typing import Any

import pytest

from plimsoll.labels import GPU_GROUP, SELECTED_NODE
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import Queue
from plimsoll.plan.demand import DemandPlanner
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod
from tests.demand.plans import only
from tests.queues.manifests import amounts, queue

POOL = a_node_pool("pool", ("g6.xlarge",))
GROUP = {GPU_GROUP: "g"}
RESERVATION = a_waiting_pod("r", namespace="kai-resource-reservation", gpus=1, node="node", more_labels=GROUP)


def share(name: str, fraction: str, **more: Any) -> Pod:
    return a_waiting_pod(name, gpu_fraction=fraction, **more)


def claimed(name: str, fraction: str, node: str = "node", **more: Any) -> Pod:
    """The labels that our binder writes first."""
    pod = share(name, fraction, more_labels=GROUP, **more)
    return pod.model_copy(update={"annotations": {**pod.annotations, SELECTED_NODE: f"{node}/{pod.uid}"}})


def snapshot(*objects: Any) -> Snapshot:
    return a_snapshot(a_gpu_node(), POOL, *objects)


@pytest.mark.parametrize("reservations", [(), (RESERVATION,)])
def test_a_claimed_pod_requests_nothing_and_uses_its_gpu(reservations: tuple[Pod, ...]) -> None:
    assert DemandPlanner().plan(snapshot(claimed("a", "0.6"), *reservations)).demands == ()
    plan = DemandPlanner().plan(snapshot(claimed("a", "0.6"), share("b", "0.6"), share("c", "0.4"), *reservations))
    assert set(only(plan).pods) == {"uid-b", "uid-c"}
    assert plan.gpus == 1


def test_a_claim_copied_from_another_pod_does_not_count() -> None:
    copy = claimed("a", "0.6").model_copy(update={"name": "copy", "uid": "uid-copy"})
    assert set(only(DemandPlanner().plan(snapshot(copy))).pods) == {"uid-copy"}


def test_a_pod_labelled_by_kai_and_not_bound_yet_is_planned_on_its_group() -> None:
    labelled, running = share("a", "0.6", more_labels=GROUP), share("b", "0.4", node="node", more_labels=GROUP)
    plan = DemandPlanner().plan(snapshot(labelled, running, RESERVATION))
    assert (only(plan).on_nodes, plan.nodes) == ({"node": ("uid-a",)}, ())


def test_nothing_more_is_requested_between_pending_and_bound() -> None:
    planner = DemandPlanner()
    stages: list[tuple[Pod, ...]] = [
        (share("a", "0.6"),),
        (claimed("a", "0.6"),),
        (claimed("a", "0.6"), RESERVATION),
        (share("a", "0.6", node="node", phase="Running", more_labels=GROUP), RESERVATION),
    ]
    for stage in stages:
        assert not planner.plan(snapshot(*stage)).nodes


def test_its_queue_counts_the_claimed_pod() -> None:
    pods = [claimed("a", "0.6", queue="q"), share("b", "0.6", queue="q")]
    limited = Queue.read(queue("q", gpu=amounts(1, 1)))
    assert "OverLimit" in str(only(DemandPlanner().plan(snapshot(limited, *pods))).refused["uid-b"])
