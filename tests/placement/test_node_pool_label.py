"""`nodePoolLabelKey` of the Environment: KAI's node pools are read from the label with this key, and from no other."""

import re
from typing import Any

import pytest

from plimsoll.cluster.queues import QueueTree, check_queues, next_gpu, queue_usage
from plimsoll.components.specs import environment_definition
from plimsoll.cost import Prices
from plimsoll.errors import InvalidObjectError
from plimsoll.labels import is_label_key
from plimsoll.model import Snapshot
from plimsoll.model.kai import NODE_POOL, NodePoolLabel, PodGroup, SchedulingShard
from plimsoll.plan.demand import DemandPlanner
from plimsoll.ui.view import NodeRows
from tests.builders import a_node_pool, a_queue, a_snapshot, a_waiting_pod, an_environment
from tests.demand.plans import on_nodes, planned, refused
from tests.placement.test_pods_among_pods import a_host
from tests.queues.manifests import pod, queue

KEY = "example.com/pool"
ENVIRONMENT = an_environment(nodePoolLabelKey=KEY)
OTHERS = {NODE_POOL: "others"}
"""KAI's default, which means nothing here."""
WORKERS = {KEY: "workers", **OTHERS}


def objects(labels: dict[str, str] = WORKERS) -> tuple[Any, ...]:
    pools = (a_node_pool("own", ["g6.xlarge"], more_labels=OTHERS), a_node_pool("w", ["g6.xlarge"], more_labels=labels))
    queues = (
        a_queue("q", parent="").model_copy(update={"labels": OTHERS}),
        a_queue("w", parent="").model_copy(update={"labels": labels}),
    )
    return (*pools, *queues, a_host("n0", more=OTHERS), a_host("n1", more=labels))


def shares(count: int = 1, labels: dict[str, str] = WORKERS) -> list[Any]:
    return [
        a_waiting_pod(f"{queue}{number}", gpu_fraction="0.6", queue=queue, more_labels=of_pod)
        for queue, of_pod in (("q", OTHERS), ("w", labels))
        for number in range(count)
    ]


def test_existing_and_new_nodes() -> None:
    plan = planned(*objects(), *shares(2), environment=ENVIRONMENT)
    placed = {(name.removeprefix("uid-")[0], node) for name, node in on_nodes(plan).items()}
    assert placed == {("q", "n0"), ("w", "n1")}
    assert sorted(node.node_pool for node in plan.nodes) == ["own", "w"]


def test_pod_groups_and_queues_are_compared_by_it() -> None:
    group = PodGroup.read(
        {"metadata": {"name": "g", "namespace": "team", "labels": WORKERS}, "spec": {"queue": "w", "minMember": 1}}
    )
    grouped = a_waiting_pod("grouped", gpu_fraction="0.6", queue="q", pod_group_name="g")
    lost = a_waiting_pod("lost", gpu_fraction="0.6", queue="w", more_labels={NODE_POOL: "workers"})
    plan = planned(*objects(), group, grouped, lost, environment=ENVIRONMENT)
    assert on_nodes(plan) == {"uid-grouped": "n1"}
    assert f"Queue w has {KEY}=workers, and the pod no label {KEY}" in refused(plan)["uid-lost"]


def test_scheduling_shards_and_their_strategy() -> None:
    shards = [
        SchedulingShard.read(
            {"metadata": {"name": name}, "spec": {"partitionLabelValue": name, "placementStrategy": {"gpu": "spread"}}}
        )
        for name in ("workers", "others")
    ]
    hosts = [a_host("n2", more=WORKERS)]
    small = [a_waiting_pod(f"s{n}", gpu_fraction="0.2", queue="w", more_labels=WORKERS) for n in range(2)]
    plan = planned(*objects(), *hosts, *shards, *shares(), *small, environment=ENVIRONMENT)
    assert {on_nodes(plan)[f"uid-s{n}"] for n in range(2)} == {"n1", "n2"}
    assert f"no label {KEY}" in refused(plan)["uid-q0"], "no shard serves nodes without the label"


def test_queues_divide_the_nodes_with_it() -> None:
    waiting = [
        a_waiting_pod(f"{name}{number}", gpus=1, queue=name, more_labels=labels)
        for name, labels in (("q", OTHERS), ("w", WORKERS))
        for number in range(2)
    ]
    usage = queue_usage(a_snapshot(*objects(), a_host("n2", gpus=2, more=WORKERS), *waiting, environment=ENVIRONMENT))
    assert {shard: amount.gpu for shard, amount in usage.totals.items()} == {"": 1000, "workers": 3000}
    assert {name: fair.gpu for name, fair in usage.fair.items()} == {"q": 1000, "w": 2000}
    following = next_gpu(usage)
    assert following is not None
    assert following.pod.queue == "q"


def test_the_queue_of_a_project() -> None:
    labels = {"project": "team", KEY: "a", NODE_POOL: "b"}
    assert NodePoolLabel(KEY).queue_in(labels) == "team-a"
    assert NodePoolLabel().queue_in(labels) == "team-b"
    assert NodePoolLabel("").queue_in(labels) == "team"


def test_a_row_of_the_pages() -> None:
    def rows(snapshot: Snapshot) -> dict[str, str]:
        return {row.name: row.shard for row in kept.update(snapshot, prices)}

    kept, prices = NodeRows(), Prices({})
    given = objects()
    assert rows(a_snapshot(*given, environment=ENVIRONMENT)) == {"n0": "", "n1": "workers"}
    assert rows(a_snapshot(*given)) == {"n0": "others", "n1": "others"}


def test_a_tree_and_its_checks() -> None:
    below = a_queue("w", parent="top").model_copy(update={"labels": WORKERS})
    tree = QueueTree([a_queue("top", parent=""), below], NodePoolLabel(KEY))
    assert tree.broken_at("w") == f"the parent of Queue w, top, has another label {KEY}"
    manifests = [{**queue("w"), "metadata": {"name": "w", "labels": WORKERS}}, pod("p", "w")]
    assert [each.rule for each in check_queues(manifests, label=NodePoolLabel(KEY))] == ["queue-other-node-pool"]


@pytest.mark.parametrize("key", ["not a key", "a/b/c", "-x"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidObjectError, match="nodePoolLabelKey"):
        an_environment(nodePoolLabelKey=key)


@pytest.mark.parametrize(
    "key", ["", "pool", "kai.scheduler/node-pool", "a b", "a/b/c", "-x", "/x", "A.example/x", "x/"]
)
def test_the_cluster_refuses_the_same_keys(key: str) -> None:
    schema = environment_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    pattern = schema["properties"]["spec"]["properties"]["nodePoolLabelKey"]["pattern"]
    assert (re.search(pattern, key) is not None) == (not key or is_label_key(key))


def test_without_a_key_there_are_no_node_pools() -> None:
    shard = SchedulingShard.read({"metadata": {"name": "a"}, "spec": {"partitionLabelValue": "a"}})
    everything = an_environment(nodePoolLabelKey="")
    assert len(on_nodes(planned(*objects(), shard, *shares(), environment=everything))) == 2


def test_a_planner_takes_up_another_key() -> None:
    """The same objects after the Environment changes, as a planner that saw none of it plans them."""
    planner, given = DemandPlanner(), (*objects(), *shares(2))
    group = PodGroup.read({"metadata": {"name": "g", "namespace": "team", "labels": WORKERS}, "spec": {"queue": "w"}})
    for environment in (an_environment(), ENVIRONMENT, an_environment(nodePoolLabelKey=""), ENVIRONMENT):
        snapshot = a_snapshot(*given, group, environment=environment)
        again, fresh = (each.plan(snapshot) for each in (planner, DemandPlanner()))
        assert on_nodes(again) == on_nodes(fresh)
        assert refused(again) == refused(fresh)
        assert [each.node_pool for each in again.nodes] == [each.node_pool for each in fresh.nodes]
