"""`why`: the chain of a pod, a node, a demand, a queue and a namespace, and the changes that are proven to help."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cluster.pods import read_request
from plimsoll.errors import PlimsollError
from plimsoll.explaining import (
    Chain,
    State,
    Step,
    plan_demand,
    why_demand,
    why_namespace,
    why_node,
    why_pod,
    why_queue,
)
from plimsoll.model import Snapshot
from plimsoll.model.api import GPUDemand
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import NODE_POOL, PodGroup, SchedulingShard
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan import validate
from tests.builders import (
    a_gpu_node,
    a_node_pool,
    a_pod,
    a_queue,
    a_snapshot,
    a_waiting_pod,
    an_environment,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOW = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
CREATED = "2026-01-01T00:29:00Z"
L4 = "g6.xlarge"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
AWS = "karpenter.k8s.aws"
QUOTA = {"metadata": {"name": "gpus", "namespace": "team"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}


def environment(**spec: Any) -> Any:
    demand = {"provisioner": "trigger-pod", **spec.pop("demand", {})}
    return an_environment(demand=demand, **spec)


def chain_of(*objects: Any, name: str = "pod", env: Any = None) -> Chain:
    snapshot = a_snapshot(*objects, environment=env or environment())
    return why_pod(plan_demand(snapshot, NOW), "team", name)


def changes(chain: Chain) -> list[str]:
    return [text for remedy in chain.remedies for text in remedy.changes]


def pool(name: str = "l4", *types: str, **more: Any) -> Any:
    return a_node_pool(name, types or (L4,), group=AWS, **more)


def half(**more: Any) -> Any:
    return a_waiting_pod(gpu_fraction="0.5", **more)


def a_queue_of_shard(name: str, shard: str) -> Any:
    return a_queue(name, parent="").model_copy(update={"labels": {NODE_POOL: shard}})


def a_shard(pool: str) -> SchedulingShard:
    return SchedulingShard.read({"metadata": {"name": pool or "default"}, "spec": {"partitionLabelValue": pool}})


def a_group(queue: str, shard: str = "") -> PodGroup:
    """As KAI makes it: without a label for the node pool ''."""
    labels = {NODE_POOL: shard} if shard else {}
    return PodGroup.read(
        {"metadata": {"name": "g", "namespace": "team", "labels": labels}, "spec": {"queue": queue, "minMember": 1}}
    )


BLOCKED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "Limit": (
        (pool(limits={"nvidia.com/gpu": 0}), half()),
        {},
        "NodePool l4: spec.limits[nvidia.com/gpu]: 0 -> 1",
    ),
    "Limit of the Environment": (
        (pool(), half()),
        {"limits": {"gpus": 0}},
        "Environment test: spec.limits.gpus: 0 -> 1",
    ),
    "NoNode, a taint": (
        (pool(taints=[TAINT]), half()),
        {},
        "Pod team/pod: spec.tolerations: (absent) -> also team=a:NoSchedule",
    ),
    "NoNode, a selector": (
        (pool(), half(selector={"nvidia.com/gpu.product": "L4"})),
        {},
        "Pod team/pod: spec.nodeSelector[nvidia.com/gpu.product]: L4 -> NVIDIA-L4",
    ),
    "NotAllowed, access": (
        (pool(), half()),
        {"access": [{"namespaces": ["team"], "gpus": 0}]},
        "Environment test: spec.access[team].gpus: 0 -> 1",
    ),
    "NotAllowed, no entry": (
        (pool(), half()),
        {"access": [{"namespaces": ["other"]}]},
        "Environment test: spec.access: no entry for team -> an entry for team",
    ),
    "Queue": (
        (pool(), half(queue="a"), a_queue("root", parent=""), a_queue("a", limit=0)),
        {},
        "Queue a: spec.resources.gpu.limit: 0 -> 1",
    ),
    "Queue, another one": (
        (pool(), half(queue="typo"), a_queue("root", parent=""), a_queue("a")),
        {},
        "Pod team/pod: metadata.labels[kai.scheduler/queue]: typo -> a",
    ),
    "Queue, of another node pool of KAI": (
        (pool(more_labels={NODE_POOL: "n"}), half(queue="a"), a_queue_of_shard("a", "n")),
        {},
        "Pod team/pod: metadata.labels[kai.scheduler/node-pool]: (absent) -> n",
    ),
    "Queue, of none of KAI's node pools": (
        (pool(), half(queue="a", more_labels={NODE_POOL: "n"}), a_queue("root", parent=""), a_queue("a")),
        {},
        "Pod team/pod: metadata.labels[kai.scheduler/node-pool]: n -> (none)",
    ),
    "NotAllowed, no SchedulingShard": (
        (
            pool(more_labels={NODE_POOL: "n"}),
            half(queue="a", more_labels={NODE_POOL: "n"}),
            a_queue_of_shard("a", "n"),
            a_shard(""),
        ),
        {},
        "SchedulingShard (new): spec.partitionLabelValue: (absent) -> n",
    ),
    "NotAllowed, no SchedulingShard of the nodes without a label": (
        (pool(), half(queue="a"), a_queue("a", parent=""), a_shard("n")),
        {},
        "SchedulingShard (new): spec.partitionLabelValue: (absent) -> (none)",
    ),
    "Queue, a typo in the node pool": (
        (
            pool(more_labels={NODE_POOL: "n"}),
            half(queue="a", more_labels={NODE_POOL: "m"}),
            a_queue_of_shard("a", "n"),
            a_shard("n"),
        ),
        {},
        "Pod team/pod: metadata.labels[kai.scheduler/node-pool]: m -> n",
    ),
    "Queue, a typo in the node pool of a PodGroup": (
        (
            pool(more_labels={NODE_POOL: "n"}),
            half(queue="a", pod_group_name="g"),
            a_group("a", "m"),
            a_queue_of_shard("a", "n"),
            a_shard("n"),
        ),
        {},
        "Pod team/pod, with a new PodGroup: metadata.labels[kai.scheduler/node-pool]: m -> n",
    ),
    "Queue, another one of a PodGroup": (
        (pool(), half(queue="typo", pod_group_name="g"), a_group("typo"), a_queue("root", parent=""), a_queue("a")),
        {},
        "Pod team/pod, with a new PodGroup: metadata.labels[kai.scheduler/queue]: typo -> a",
    ),
    "NotAllowed, no queue where the label alone names it": (
        (pool(), half(scheduler="kai-scheduler"), a_queue("root", parent=""), a_queue("a")),
        {"queueScheduler": "default-scheduler"},
        "Pod team/pod: metadata.labels[kai.scheduler/queue]: (absent) -> a",
    ),
    "TooLarge": (
        (pool(), a_waiting_pod(gpu_memory="30000")),
        {},
        "Pod team/pod: metadata.annotations[gpu-memory]: 30000 -> 23000",
    ),
    "Gang": (
        (
            pool(limits={"nvidia.com/gpu": 1}),
            *(a_waiting_pod(name, gpu_fraction="0.9", pod_group_name="g") for name in ("pod", "other")),
            PodGroup.read({"metadata": {"name": "g", "namespace": "team"}, "spec": {"minMember": 2}}),
        ),
        {},
        "NodePool l4: spec.limits[nvidia.com/gpu]: 1 -> 2",
    ),
}


@pytest.mark.parametrize("case", BLOCKED)
def test_a_blocked_pod_has_its_reason_and_the_least_change_that_helps(case: str) -> None:
    objects, spec, change = BLOCKED[case]
    chain = chain_of(*objects, env=environment(**spec))
    assert chain.blocked
    assert chain.decisive.reason == case.partition(",")[0].partition(" ")[0]
    assert change in changes(chain)
    assert all(remedy.helped >= 1 for remedy in chain.remedies)


def test_a_larger_type_in_the_pool_is_the_cheapest_one_that_is_large_enough() -> None:
    chain = chain_of(pool(), a_waiting_pod(gpu_memory="30000"))
    (of_pool,) = [each for each in chain.remedies if each.touches == "the NodePool"]
    assert of_pool.changes[0].startswith("NodePool l4: requirement node.kubernetes.io/instance-type")
    assert (of_pool.nodes, of_pool.helped) == (1, 1)
    assert of_pool.price is not None and of_pool.price > 0


def test_the_cheapest_change_comes_first_and_then_the_one_that_touches_the_fewest() -> None:
    chain = chain_of(pool(taints=[TAINT]), half(), a_gpu_node("free", "NVIDIA-L4", taints=["other"]))
    prices = [each.price for each in chain.remedies]
    assert prices == sorted(prices, key=lambda price: (price is None, price or 0.0))
    assert "also other:NoSchedule" in chain.remedies[0].changes[0]
    assert chain.remedies[0].nodes == 0


def test_two_changes_are_proven_together_where_none_helps_alone() -> None:
    chain = chain_of(pool(limits={"nvidia.com/gpu": 0}), half(), env=environment(limits={"gpus": 0}))
    assert [len(each.changes) for each in chain.remedies] == [2]
    assert set(changes(chain)) == {
        "Environment test: spec.limits.gpus: 0 -> 1",
        "NodePool l4: spec.limits[nvidia.com/gpu]: 0 -> 1",
    }


def test_more_changes_are_proven_together_where_no_two_help() -> None:
    """Each is needed, and none of the others that might be."""
    settings = {"limits": {"gpus": 0}, "access": [{"namespaces": ["team"], "gpus": 0}]}
    tainted = pool(limits={"nvidia.com/gpu": 0}, taints=[TAINT])
    chain = chain_of(tainted, half(), env=environment(demand={"provisioner": "none"}, **settings))
    assert [set(each.changes) for each in chain.remedies] == [
        {
            "Environment test: spec.access[team].gpus: 0 -> 1",
            "Environment test: spec.demand.provisioner: none -> trigger-pod",
            "Environment test: spec.limits.gpus: 0 -> 1",
            "NodePool l4: spec.limits[nvidia.com/gpu]: 0 -> 1",
            "Pod team/pod: spec.tolerations: (absent) -> also team=a:NoSchedule",
        }
    ]


def test_a_provisioner_is_proposed_beside_what_a_refused_pod_needs() -> None:
    """As where the files have no Environment."""
    chain = chain_of(pool(taints=[TAINT]), half(), env=environment(demand={"provisioner": "none"}))
    assert {
        "Environment test: spec.demand.provisioner: none -> trigger-pod",
        "Pod team/pod: spec.tolerations: (absent) -> also team=a:NoSchedule",
    } in [set(each.changes) for each in chain.remedies]


@pytest.mark.parametrize("group", [(), (a_group("a", "n"),)])
def test_another_node_pool_of_kai_takes_another_queue(group: tuple[PodGroup, ...]) -> None:
    """The queue is of the node pool without a scheduler, and no node has its label."""
    objects = (a_queue_of_shard("a", "n"), a_queue("b", parent=""), a_shard(""), *group)
    labels = {NODE_POOL: "n"}
    chain = chain_of(pool(), half(queue="a", more_labels=labels, pod_group_name="g" if group else ""), *objects)
    assert [len(each.changes) for each in chain.remedies] == [2]
    said = {text.partition(": ")[2] for text in changes(chain)}
    assert said == {
        "metadata.labels[kai.scheduler/node-pool]: n -> (none)",
        "metadata.labels[kai.scheduler/queue]: a -> b",
    }


def test_a_change_that_takes_capacity_from_others_is_none() -> None:
    """The queue's only GPU: another queue for the pod would be one that is full of others who come after it."""
    older = half(priority=60)
    chain = chain_of(
        pool(limits={"nvidia.com/gpu": 1}),
        older,
        *(a_waiting_pod(f"low-{number}", gpu_fraction="0.5") for number in range(2)),
        name="low-1",
    )
    assert all("priority" not in text for text in changes(chain))
    assert "NodePool l4: spec.limits[nvidia.com/gpu]: 1 -> 2" in changes(chain)


def test_two_fields_of_one_object_are_proven_together() -> None:
    chain = chain_of(pool(limits={"nvidia.com/gpu": 0, "nodes": 0}), half())
    assert [set(remedy.changes) for remedy in chain.remedies] == [
        {"NodePool l4: spec.limits[nvidia.com/gpu]: 0 -> 1", "NodePool l4: spec.limits[nodes]: 0 -> 1"}
    ]


def test_two_limits_of_a_namespace_are_proven_together() -> None:
    access = [{"namespaces": ["team"], "gpus": 0, "nodePools": []}]
    chain = chain_of(pool(limits={"nvidia.com/gpu": 9}), half(), env=environment(access=access))
    assert [set(remedy.changes) for remedy in chain.remedies] == [
        {
            "Environment test: spec.access[team].gpus: 0 -> 1",
            "Environment test: spec.access[team].nodePools: (none) -> l4",
        }
    ]


def test_limits_are_tried_together_before_other_changes() -> None:
    access = [{"namespaces": ["team"], "gpus": 1, "nodePools": ["l4"]}]
    chain = chain_of(
        pool(limits={"nvidia.com/gpu": 1, "cpu": "8"}),
        pool("tainted", "p5.48xlarge", taints=[TAINT]),
        a_waiting_pod("first", gpu_fraction="0.9"),
        a_waiting_pod(gpu_fraction="0.9"),
        env=environment(limits={"gpus": 2, "nodes": 3}, access=access),
    )
    assert {
        "Environment test: spec.access[team].gpus: 1 -> 2",
        "NodePool l4: spec.limits[nvidia.com/gpu]: 1 -> 2",
    } in [set(remedy.changes) for remedy in chain.remedies]


def test_where_the_greatest_value_takes_capacity_from_others_a_lesser_one_helps() -> None:
    """With any limit, all pods of the queue would get the GPUs of the NodePool that those of queue b have."""
    first = [a_waiting_pod(f"a-{number}", gpu_fraction="0.9", queue="a", priority=90) for number in range(8)]
    others = [a_waiting_pod(f"b-{number}", gpu_fraction="0.9", queue="b", priority=50) for number in range(2)]
    queues = (a_queue("root", parent=""), a_queue("a", quota=0, limit=0), a_queue("b"))
    chain = chain_of(pool(limits={"nvidia.com/gpu": 3}), *queues, *first, *others, name="a-0")
    assert changes(chain) == ["Queue a: spec.resources.gpu.limit: 0 -> 1"]


def test_without_a_provisioner_the_request_is_the_step_that_is_blocked() -> None:
    chain = chain_of(pool(), half(), env=an_environment())
    assert (chain.decisive.step, chain.decisive.reason) == (Step.ORDER, "NoProvisioner")
    assert changes(chain) == ["Environment test: spec.demand.provisioner: none -> trigger-pod"]
    assert chain.remedies[0].nodes == 1


def test_a_request_that_cannot_be_read_is_its_first_step_and_nothing_is_guessed() -> None:
    chain = chain_of(pool(), a_waiting_pod(gpu_fraction="half"))
    assert (chain.links[0].state, chain.links[0].reason) == (State.BLOCKED, "Unreadable")
    assert chain.remedies == ()


def test_a_pod_with_capacity_on_its_way_waits() -> None:
    chain = chain_of(pool(), half())
    assert not chain.blocked
    assert chain.remedies == ()
    assert [link.step for link in chain.links] == [
        Step.REQUEST, Step.QUEUE, Step.PLACE, Step.ORDER, Step.COST, Step.END
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (a_waiting_pod(gpu_fraction="0.5", scheduler="own"), "NotAllowed"),
        (a_waiting_pod(gpu_fraction="0.5", reason=None), "NotYetUnschedulable"),
    ],
)
def test_a_pod_that_does_not_count_has_the_reason(pod: Any, reason: str) -> None:
    assert chain_of(pool(), pod).decisive.reason == reason


def test_a_request_that_does_not_exist_yet_is_not_told_as_one_that_waits() -> None:
    snapshot = a_snapshot(pool(), half(), environment=environment())
    planned = plan_demand(snapshot, NOW)
    (created,) = (each.manifest for each in planned.creations if each.key.kind == "Pod")
    (order,) = (each for each in why_pod(planned, "team", "pod").links if each.step is Step.ORDER)
    assert created["metadata"]["name"] in order.text and "next round" in order.text
    assert "given up" not in order.text

    trigger = Pod.read({**created, "metadata": {**created["metadata"], "uid": "u", "creationTimestamp": CREATED}})
    requested = snapshot.model_copy(update={"pods": (*snapshot.pods, trigger)})
    chain = why_pod(plan_demand(requested, NOW), "team", "pod")
    (order,) = (each for each in chain.links if each.step is Step.ORDER)
    assert created["metadata"]["name"] in order.text and "given up" in order.text
    assert "next round" not in order.text


def test_a_bound_pod_has_its_node_its_cost_and_what_keeps_it() -> None:
    node = a_gpu_node("n", "NVIDIA-L4", instance_type=L4)
    chain = chain_of(node, a_waiting_pod(gpu_fraction="0.5", node="n"))
    assert [link.step for link in chain.links] == [Step.REQUEST, Step.NODE, Step.COST, Step.END]
    assert "team/pod" in chain.links[-1].text


def test_a_node_has_who_it_is_for_and_who_uses_it() -> None:
    labels = {"plimsoll.dev/demand": "d"}
    snapshot = a_snapshot(a_gpu_node("n", more_labels=labels), a_pod("train", node="n", devices=1))
    chain = why_node(plan_demand(snapshot, NOW), "n")
    assert chain.links[0].text == "for the pods of GPUDemand d"
    assert "others/train" in chain.links[-1].text
    assert read_request(snapshot.pods[0]).held is not None


def test_a_node_without_gpus_has_the_accelerators_that_it_has() -> None:
    node = Node.read({"metadata": {"name": "n"}, "status": {"allocatable": {"habana.ai/gaudi": "8", "cpu": "96"}}})
    containers = [{"name": "main", "resources": {"limits": {"habana.ai/gaudi": "3"}}}]
    spec = {"nodeName": "n", "containers": containers}
    pod = Pod.read({"metadata": {"name": "train", "namespace": "team", "uid": "u"}, "spec": spec})
    used, bare = (why_node(plan_demand(a_snapshot(node, *pods), NOW), "n") for pods in ((pod,), ()))
    (link,) = (each for each in used.links if each.step is Step.NODE)
    assert "8 x habana.ai/gaudi, 5 free" in link.text
    assert any("8 x habana.ai/gaudi, 8 free" in each.text for each in bare.links)


def group(*objects: Any, **spec: Any) -> Snapshot:
    return a_snapshot(*objects, environment=environment(**spec))


def test_a_demand_a_queue_and_a_namespace_count_their_pods_and_have_one_change_for_all() -> None:
    pods = [a_waiting_pod(f"p{number}", gpu_fraction="0.9", queue="a") for number in range(3)]
    queues = (a_queue("root", parent=""), a_queue("a", limit=0))
    planned = plan_demand(group(pool(), *pods, *queues), NOW)
    (demand,) = planned.plan.demands
    for chain in (
        why_demand(planned, demand.name),
        why_queue(planned, "a"),
        why_namespace(planned, "team", validate(planned.view)),
    ):
        assert chain.decisive.reason == "Queue"
        first = chain.remedies[0]
        assert (first.helped, first.changes) == (3, ("Queue a: spec.resources.gpu.limit: 0 -> 3",))


@pytest.mark.parametrize("gpu", [["a list"], "text", None])
def test_a_queue_whose_amounts_are_none_is_no_crash(gpu: Any) -> None:
    """KAI takes an amount that is not there as 0; one that is no number comes from a file."""
    queue = a_queue("a")
    broken = queue.model_copy(update={"spec": {**queue.spec, "resources": {**queue.spec["resources"], "gpu": gpu}}})
    pod = a_waiting_pod("p", gpu_fraction="0.9", queue="a")
    planned = plan_demand(group(pool(), pod, a_queue("root", parent=""), broken), NOW)
    assert why_queue(planned, "a").remedies == why_pod(planned, "team", "p").remedies


def test_what_is_not_known_is_an_error_with_names_that_could_be_meant() -> None:
    planned = plan_demand(group(pool(), half()), NOW)
    asks: list[Callable[[], Chain]] = [
        lambda: why_pod(planned, "team", "podd"),
        lambda: why_node(planned, "none"),
        lambda: why_demand(planned, "none"),
        lambda: why_queue(planned, "none"),
        lambda: why_namespace(planned, "teem", ()),
    ]
    for ask in asks:
        with pytest.raises(PlimsollError) as error:
            ask()
        assert error.value.hint


def test_the_command_says_it_in_text_and_as_a_document() -> None:
    run = ["why", "pod", "train-0", "-f", str(EXAMPLES / "demand")]
    text = CliRunner().invoke(app, run, catch_exceptions=False)
    document = CliRunner().invoke(app, [*run, "-o", "json"], catch_exceptions=False)
    assert (text.exit_code, document.exit_code) == (2, 2)
    found = json.loads(document.stdout)
    assert found["subject"] == "Pod team-a/train-0"
    assert found["reason"] == "NoProvisioner"
    assert found["remedies"][0]["changes"][0] in text.stdout


def test_a_refused_workspace_has_the_change_that_is_accepted() -> None:
    run = ["why", "workspace", "mixed", "-f", str(EXAMPLES / "byo"), "-o", "json"]
    found = json.loads(CliRunner().invoke(app, run, catch_exceptions=False).stdout)["why"]
    assert found["reason"] == "NonUniformNodes"
    texts = [text for each in found["remedies"] for text in each["changes"]]
    assert any("nvidia.com/gpu.product" in text for text in texts)


def test_a_node_claim_of_a_demand_is_for_its_pods_although_no_label_says_so() -> None:
    status = {"phase": "Launching", "nodeClaims": [{"name": "l4-x", "stage": "Launching"}]}
    demand = GPUDemand.read({"metadata": {"name": "d"}, "status": status})
    claim = NodeClaim.read({"metadata": {"name": "l4-x", "labels": {"karpenter.sh/nodepool": "l4"}}})
    planned = plan_demand(group(pool(), claim, demand), NOW)
    with_status = replace(planned, statuses={"d": demand.status})
    assert why_node(with_status, "l4-x").links[0].text == "for the pods of GPUDemand d"
