"""Pods of KAI get nodes of their node pool only, and none with a queue that their scheduler does not see."""

from typing import Any

import pytest

from plimsoll.cluster.pods import PodChanges
from plimsoll.cluster.queues import NOTHING, QueuedPods, QueueTree, next_gpu, queue_usage
from plimsoll.model.kai import NODE_POOL, PodGroup, Queue, SchedulingShard
from tests.builders import a_gpu_node, a_node_pool, a_queue, a_snapshot, a_waiting_pod, an_environment
from tests.demand.plans import on_nodes, planned, refused, requests_of
from tests.placement.test_pods_among_pods import a_host

WORKERS = {NODE_POOL: "workers"}
POOLS = (a_node_pool("own", ["g6.xlarge"]), a_node_pool("workers", ["g6.xlarge"], more_labels=WORKERS))


def of_shard(name: str, parent: str = "") -> Queue:
    return a_queue(name, parent=parent).model_copy(update={"labels": WORKERS})


QUEUES = (a_queue("q", parent=""), of_shard("w"))


def a_share(name: str, queue: str, labels: dict[str, str] | None = None, **more: Any) -> Any:
    return a_waiting_pod(name, gpu_fraction="0.6", queue=queue, more_labels=labels, **more)


def test_existing_and_new_nodes_of_the_shard() -> None:
    nodes = [a_host("n0"), a_host("n1", more=WORKERS)]
    pods = [a_share("a", "w", WORKERS), a_share("b", "w", WORKERS), a_share("c", "q"), a_share("d", "q")]
    plan = planned(*POOLS, *QUEUES, *nodes, *pods)
    placed = {(uid in ("uid-a", "uid-b"), name) for uid, name in on_nodes(plan).items()}
    assert placed == {(True, "n1"), (False, "n0")}
    assert sorted(node.node_pool for node in plan.nodes) == ["own", "workers"]
    again = planned(*POOLS, *QUEUES, *nodes, *pods, requested=requests_of(plan.nodes))
    assert not again.nodes


def test_a_shard_without_a_node_pool_is_refused() -> None:
    pod = a_share("a", "x", {NODE_POOL: "others"})
    queue = a_queue("x", parent="").model_copy(update={"labels": {NODE_POOL: "others"}})
    assert NODE_POOL in refused(planned(*POOLS, *QUEUES, queue, pod))["uid-a"]


def test_a_queue_of_another_shard_is_refused_by_name() -> None:
    why = refused(planned(*POOLS, *QUEUES, a_share("a", "w"), a_share("b", "q", WORKERS)))
    assert why["uid-a"].startswith("QueueDoesNotExist: Queue w")
    assert why["uid-b"].startswith("QueueDoesNotExist: Queue q")
    nowhere = refused(planned(*POOLS[1:], *QUEUES, a_share("a", "w")))
    assert nowhere["uid-a"].startswith("QueueDoesNotExist: Queue w"), "no node has room for it either"


def test_the_pod_group_decides() -> None:
    group = PodGroup.read(
        {"metadata": {"name": "g", "namespace": "team", "labels": WORKERS}, "spec": {"queue": "w", "minMember": 1}}
    )
    plan = planned(*POOLS, *QUEUES, group, a_share("a", "q", pod_group_name="g"))
    assert [node.node_pool for node in plan.nodes] == ["workers"]


def test_pods_of_other_schedulers_are_of_no_shard() -> None:
    nodes = [a_host("n1", more=WORKERS)]
    pod = a_waiting_pod("a", gpu_fraction="0.6", scheduler="plimsoll")
    environment = an_environment(demand={"schedulers": ["plimsoll"]})
    assert on_nodes(planned(*nodes, pod, environment=environment)) == {"uid-a": "n1"}


def test_a_parent_of_another_shard_is_none() -> None:
    tree = QueueTree([a_queue("top", parent=""), of_shard("below", parent="top"), of_shard("alone")])
    assert tree.broken_at("below") == f"the parent of Queue below, top, has another label {NODE_POOL}"
    assert tree.is_leaf("top")
    assert not tree.broken_at("alone")
    assert [name for name, _ in tree.nested()] == ["alone", "top", "below"]


def test_queues_divide_the_nodes_of_their_shard() -> None:
    """Two GPUs of the shard, three others; of each queue two pods with whole GPUs wait."""
    nodes = [a_host("n0", gpus=3), a_host("n1", gpus=2, more=WORKERS)]
    waiting = [
        a_waiting_pod(f"{queue}{number}", gpus=2, queue=queue, more_labels=labels)
        for queue, labels in (("q", {}), ("w", WORKERS))
        for number in range(2)
    ]
    usage = queue_usage(a_snapshot(a_queue("q", parent=""), of_shard("w"), *nodes, *waiting))
    assert {name: fair.gpu for name, fair in usage.fair.items()} == {"q": 3000, "w": 2000}
    assert {shard: amount.gpu for shard, amount in usage.totals.items()} == {"": 3000, "workers": 2000}
    assert usage.total.gpu == 5000


def test_the_next_gpu_is_one_of_the_shard_of_the_pod() -> None:
    nodes = [a_host("n0", gpus=1), a_host("n1", gpus=1, more=WORKERS)]
    runs = a_waiting_pod("runs", gpus=1, queue="w", more_labels=WORKERS, node="n1", phase="Running")
    waits = a_waiting_pod("waits", gpus=1, queue="w", more_labels=WORKERS)
    alone = next_gpu(queue_usage(a_snapshot(*QUEUES, *nodes, runs, waits)))
    assert alone is not None
    assert not alone.free, "the free GPU is of the other shard"
    assert not alone.victims
    other = a_waiting_pod("other", gpus=1, queue="q")
    following = next_gpu(queue_usage(a_snapshot(*QUEUES, *nodes, runs, waits, other)))
    assert following is not None
    assert (following.pod.pod.name, following.free) == ("other", True)


def test_a_pod_that_the_scheduler_of_its_queue_does_not_see_counts_for_no_queue() -> None:
    nodes = [a_host("n0", gpus=2), a_host("n1", gpus=2, more=WORKERS)]
    lost = a_waiting_pod("lost", gpus=1, queue="w")
    runs = a_waiting_pod("runs", gpus=1, queue="w", node="n1", phase="Running")
    usage = queue_usage(a_snapshot(*QUEUES, *nodes, lost, runs))
    assert (usage.waiting["w"].gpu, usage.allocated["w"].gpu, usage.fair["w"].gpu) == (0, 0, 0)
    assert {shard: amount.gpu for shard, amount in usage.totals.items()} == {"": 2000, "workers": 1000}
    assert next_gpu(usage) is None
    queued = QueuedPods()
    queued.update(a_snapshot(*QUEUES, *nodes, lost, runs))
    assert queued.in_use == {"w"}, "it may not be deleted, as they name it"


def test_a_pending_share_in_mib_counts_by_the_smallest_gpu_of_its_shard() -> None:
    nodes = [a_gpu_node("t4", product="Tesla-T4", memory=15360), a_host("n1", more=WORKERS)]
    pods = [
        a_waiting_pod(name, gpu_memory="7680", queue=queue, more_labels=labels)
        for name, queue, labels in (("a", "q", None), ("b", "w", WORKERS))
    ]
    both, alone = (queue_usage(a_snapshot(*QUEUES, *each, *pods)) for each in (nodes, nodes[1:]))
    assert both.waiting["q"].gpu > both.waiting["w"].gpu == alone.waiting["w"].gpu
    queued = QueuedPods()
    for each in (nodes, nodes[1:], nodes):
        snapshot = a_snapshot(*QUEUES, *each, *pods)
        queued.update(snapshot, PodChanges((), ()))
        assert queued.waiting == {
            name: amount for name, amount in queue_usage(snapshot).waiting.items() if amount != NOTHING
        }


def a_scheduling_shard(pool: str, strategy: str = "") -> SchedulingShard:
    spec = {"partitionLabelValue": pool, "placementStrategy": {"gpu": strategy} if strategy else None}
    return SchedulingShard.read({"metadata": {"name": pool or "default"}, "spec": spec})


@pytest.mark.parametrize(
    ("shards", "placement", "expected"),
    [
        pytest.param({"": "", "workers": "spread"}, {}, {"q": 1, "w": 2}, id="of its nodes"),
        pytest.param({"": "spread", "workers": "binpack"}, {}, {"q": 2, "w": 1}, id="of nodes without the label"),
        pytest.param(
            {"": "", "workers": "spread"}, {"*": "binpack"}, {"q": 1, "w": 1}, id="unless the NodePool has one"
        ),
    ],
)
def test_the_strategy_of_the_scheduling_shard(
    shards: dict[str, str], placement: dict[str, str], expected: dict[str, int]
) -> None:
    hosts = [a_host("n0"), a_host("n1"), a_host("n2", more=WORKERS), a_host("n3", more=WORKERS)]
    pods = [
        a_waiting_pod(f"{queue}{n}", gpu_fraction="0.2", queue=queue, more_labels=labels)
        for queue, labels in (("q", None), ("w", WORKERS))
        for n in range(2)
    ]
    found = [a_scheduling_shard(*each) for each in shards.items()]
    plan = planned(*QUEUES, *found, *hosts, *pods, environment=an_environment(demand={"placement": placement}))
    at = on_nodes(plan)
    used = {queue: {at[f"uid-{queue}{n}"] for n in range(2)} for queue in ("q", "w")}
    assert {queue: len(nodes) for queue, nodes in used.items()} == expected
    assert used["w"] <= {"n2", "n3"}


def test_new_nodes_are_spread_over_as_the_shard_does() -> None:
    def pods(*fractions: str) -> list[Any]:
        return [
            a_waiting_pod(f"p{n}", gpu_fraction=each, queue="w", more_labels=WORKERS)
            for n, each in enumerate(fractions)
        ]

    for strategy, nodes in (("spread", 3), ("binpack", 2)):
        shards = [a_scheduling_shard(""), a_scheduling_shard("workers", strategy)]
        assert len(planned(*POOLS, *QUEUES, *shards, *pods("0.3", "0.3", "0.8")).nodes) == nodes


def test_pods_whose_node_pool_has_no_scheduler_are_refused() -> None:
    hosts = [a_host("n0"), a_host("n1", more=WORKERS)]
    pods = [a_share("a", "q"), a_share("b", "w", WORKERS)]
    plan = planned(*POOLS, *QUEUES, a_scheduling_shard("workers"), *hosts, *pods)
    assert on_nodes(plan) == {"uid-b": "n1"}
    assert "SchedulingShard" in refused(plan)["uid-a"]
    assert not plan.nodes
    everywhere = planned(*POOLS, *QUEUES, *hosts, *pods)
    assert set(on_nodes(everywhere)) == {"uid-a", "uid-b"}, "without SchedulingShards, it is not known"
