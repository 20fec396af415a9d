"""Which queue would get the next GPU, and whose work would be reclaimed for it."""

from typing import Any

import pytest

from plimsoll.cluster.queues import NextGpu, QueueUsage, next_gpu, queue_usage
from plimsoll.labels import QUEUE, SELECTED_NODE
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import Queue
from plimsoll.model.meta import Condition
from tests.builders import a_node, a_snapshot
from tests.queues.manifests import amounts, queue


def a_pod(
    name: str, queue_name: str, gpus: int = 1, node: str = "", *, priority: int = 50, created: str = "", cpu: str = "0",
    labels: dict[str, str] | None = None, namespace: str = "ns",
) -> Pod:  # fmt: skip
    resources = {"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": str(gpus)}}
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": labels or ({QUEUE: queue_name} if queue_name else {}),
        "creationTimestamp": created,
    }
    spec = {
        "schedulerName": "kai-scheduler",
        "nodeName": node,
        "priority": priority,
        "containers": [{"name": "c", "resources": resources}],
    }
    return Pod.read({"metadata": metadata, "spec": spec})


def stands(*objects: Any, gpus: int = 8) -> QueueUsage:
    return queue_usage(a_snapshot(a_node("n", count=gpus), *objects))


def following(*objects: Any, gpus: int = 8) -> tuple[str, bool, list[str]] | None:
    """The next queue, whether GPUs are free, and the names of the victims."""
    found: NextGpu | None = next_gpu(stands(*objects, gpus=gpus))
    return None if found is None else (found.pod.queue, found.free, [each.pod.name for each in found.victims])


def q(name: str, parent: str | None = None, *, priority: int = 100, created: str = "", **gpu: Any) -> Queue:
    read = Queue.read(queue(name, parent, amounts(**gpu) if gpu else None, priority=priority))
    return read.model_copy(update={"creation_timestamp": created})


def test_without_pending_pods_no_queue_is_next() -> None:
    assert following(q("a", quota=4), a_pod("p", "a", node="n")) is None


def test_the_queue_within_its_quota_goes_before_the_one_of_higher_priority() -> None:
    objects = (q("a", quota=4), q("b", quota=0, priority=200), a_pod("p", "a"), a_pod("r", "b"))
    assert following(*objects) == ("a", True, [])


def test_the_quota_of_every_resource_counts() -> None:
    some = {"gpu": amounts(4), "cpu": amounts(0), "memory": amounts(-1)}
    pods = (a_pod("p", "a", cpu="1"), a_pod("r", "b", cpu="1"))
    for resources, first in ((some, "b"), (some | {"cpu": amounts(1000)}, "a")):
        a = Queue.read(queue("a", resources=resources, priority=200))
        assert following(a, q("b", quota=4), *pods) == (first, True, [])


def test_a_queue_is_above_its_fair_share_if_it_is_in_all_resources() -> None:
    """With CPU within its share, the one above its GPUs keeps its place by priority, as in KAI."""
    tree = (q("a", quota=1, weight=0, priority=200), q("b", quota=0))
    pods = (a_pod("x", "a", 2, node="n"), a_pod("p", "a"), a_pod("r", "b"))
    assert following(*tree, *pods) == ("a", True, [])


def test_a_queue_without_a_share_of_what_it_uses_goes_last() -> None:
    nothing = {"gpu": amounts(0, weight=0), "cpu": amounts(-1), "memory": amounts(-1)}
    a = Queue.read(queue("a", resources=nothing))
    held = a_pod("x", "b", 6, node="n")
    assert following(a, q("b", quota=0), held, a_pod("p", "a"), a_pod("r", "b", 2)) == ("b", True, [])


def test_priority_goes_before_the_smaller_share() -> None:
    objects = (
        q("a", quota=4),
        q("b", quota=4, priority=200),
        a_pod("p", "a"),
        a_pod("x", "b", node="n"),
        a_pod("r", "b"),
    )
    assert following(*objects) == ("b", True, [])


def test_the_smaller_dominant_share_goes_first() -> None:
    objects = (q("a", quota=4), q("b", quota=4), a_pod("x", "a", node="n"), a_pod("p", "a"), a_pod("r", "b"))
    assert following(*objects) == ("b", True, [])


def test_the_dominant_share_may_be_another_resource() -> None:
    node = a_node("n", count=8).model_copy(update={"allocatable": {"cpu": "10", "nvidia.com/gpu": "8"}})
    cpus = {"gpu": amounts(4), "cpu": amounts(2000), "memory": amounts(-1)}
    queues = [Queue.read(queue(name, resources=cpus)) for name in ("a", "b")]
    held = (a_pod("x", "a", node="n", cpu="2"), a_pod("y", "b", 2, node="n"))
    found = next_gpu(queue_usage(a_snapshot(node, *queues, *held, a_pod("p", "a"), a_pod("r", "b"))))
    assert found is not None
    assert found.pod.queue == "b"


def test_a_parent_is_compared_before_its_children() -> None:
    tree = (q("a", quota=4), q("a1", "a", quota=4), q("b", quota=4), q("b1", "b", quota=1), q("b2", "b", quota=0))
    objects = (*tree, a_pod("x", "a1", 2, node="n"), a_pod("y", "b1", node="n"), a_pod("p", "a1"), a_pod("r", "b2"))
    assert following(*objects) == ("b2", True, [])


def test_within_a_queue_the_highest_priority_then_the_oldest() -> None:
    pods = (
        a_pod("new", "a", created="2"),
        a_pod("old", "a", created="1"),
        a_pod("urgent", "a", priority=75, created="3"),
    )
    for gone, name in (((), "urgent"), (("urgent",), "old")):
        found = next_gpu(stands(q("a", quota=4), *(pod for pod in pods if pod.name not in gone)))
        assert found is not None
        assert found.pod.pod.name == name


@pytest.mark.parametrize("labels", [{"priorityClassName": "build-preemptible"}, {"serving.knative.dev/service": "s"}])
def test_the_priority_within_a_queue_is_the_one_that_kai_takes(labels: dict[str, str]) -> None:
    urgent = a_pod("urgent", "a", labels=labels | {QUEUE: "a"}, priority=0, created="2")
    pods = (a_pod("old", "a", priority=0, created="1"), urgent)
    found = next_gpu(stands(q("a", quota=4), *pods))
    assert found is not None
    assert found.pod.pod.name == "urgent"


def test_a_pod_that_its_queue_would_not_admit_is_skipped() -> None:
    objects = (q("a", quota=1, limit=1), q("b", quota=0), a_pod("p", "a", 2), a_pod("r", "b"))
    assert following(*objects) == ("b", True, [])


def test_work_over_its_fair_share_is_reclaimed_lowest_priority_and_newest_first() -> None:
    tree = (q("a", quota=2), q("b", quota=2))
    running = (
        a_pod("kept", "b", node="n", created="1"),
        a_pod("kept-2", "b", node="n", created="2"),
        a_pod("urgent", "b", node="n", priority=75, created="4"),
        a_pod("newest", "b", node="n", created="3"),
    )
    assert following(*tree, *running, a_pod("p", "a"), gpus=4) == ("a", False, ["newest"])
    assert following(*tree, *running, a_pod("p", "a", 2), gpus=4) == ("a", False, ["newest", "kept-2"])


def test_larger_pods_are_reclaimed_if_smaller_ones_bring_their_queue_to_its_share() -> None:
    """Without the newest, b is at its share, and the large one may not go; without the large one, it is below."""
    tree = (q("a", quota=2), q("b", quota=2))
    running = (a_pod("large", "b", 2, node="n", created="1"), a_pod("newest", "b", node="n", created="2"))
    assert following(*tree, *running, a_pod("p", "a", 2), gpus=3) == ("a", False, ["large"])


def test_non_preemptible_work_is_not_reclaimed() -> None:
    tree = (q("a", quota=2), q("b", quota=2))
    running = [a_pod(f"r{number}", "b", node="n", priority=125) for number in range(4)]
    assert following(*tree, *running, a_pod("p", "a"), gpus=4) == ("a", False, [])


def test_no_queue_reclaims_beyond_its_fair_share() -> None:
    tree = (q("a", quota=2), q("b", quota=2))
    running = (*(a_pod(f"a{number}", "a", node="n") for number in range(2)), a_pod("b", "b", 2, node="n"))
    assert following(*tree, *running, a_pod("p", "a"), gpus=4) == ("a", False, [])


def test_parents_reclaim_from_each_other() -> None:
    tree = (q("a", quota=2), q("a1", "a", quota=2), q("b", quota=2), q("b1", "b", quota=2))
    running = [a_pod(f"r{number}", "b1", node="n", created=str(number)) for number in range(4)]
    assert following(*tree, *running, a_pod("p", "a1"), gpus=4) == ("a1", False, ["r3"])


def test_a_queue_without_a_root_has_no_share_and_causes_no_error() -> None:
    objects = (
        q("a", quota=4),
        q("lost", "gone", quota=4),
        a_pod("p", "a"),
        a_pod("x", "lost"),
        a_pod("y", "lost", node="n"),
    )
    found = stands(*objects)
    assert set(found.fair) == {"a"}
    assert following(*objects) == ("a", True, [])


def test_pods_without_a_queue_reduce_the_total_and_reservations_count_once() -> None:
    reservation = a_pod("g", "", node="n", namespace="kai-resource-reservation", labels={"runai-gpu-group": "g"})
    found = stands(q("a", quota=-1), a_pod("other", "", 3, node="n"), reservation, a_pod("p", "a", 9))
    assert found.total.gpu == 5000
    assert found.fair["a"].gpu == 5000
    assert found.waiting["a"].gpu == 9000


@pytest.mark.parametrize("state", [{"ready": False}, {"cordoned": True}, {"deleting": True}])
def test_pods_on_nodes_that_do_not_count_reduce_no_other_node(state: dict[str, Any]) -> None:
    found = stands(q("a", quota=-1), a_node("away", count=8, **state), a_pod("other", "", 3, node="away"))
    assert found.total.gpu == 8000


@pytest.mark.parametrize("kind", ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"])
@pytest.mark.parametrize(("status", "gpus"), [("True", 8000), ("Unknown", 8000), ("False", 12000)])
def test_nodes_on_which_kai_does_not_schedule_do_not_count(kind: str, status: str, gpus: int) -> None:
    node = a_node("away", count=4)
    conditions = (*(node.conditions or ()), Condition.model_validate({"type": kind, "status": status}))
    assert stands(q("a", quota=-1), node.model_copy(update={"conditions": conditions})).total.gpu == gpus


def test_a_pod_that_is_being_bound_uses_its_queue() -> None:
    pod = a_pod("one", "team", gpus=2)
    binding = pod.model_copy(update={"uid": "u", "annotations": {SELECTED_NODE: "n/u"}})
    assert (
        stands(q("team"), binding).allocated["team"]
        == stands(q("team"), a_pod("one", "team", gpus=2, node="n")).allocated["team"]
    )
    assert following(q("team"), binding) is None
