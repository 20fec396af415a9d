"""Pods of all classes share a new node if each of them could run there."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.labels import GPU_GROUP
from plimsoll.model.cluster import Pod
from plimsoll.packing import exact_milli
from plimsoll.packing.nodes import FreeNode, NodeShape, PodNeed
from plimsoll.plan.demand import RequestedNode
from tests.builders import a_gpu_node, a_node_pool, a_queue, a_waiting_pod
from tests.demand.plans import on_new, on_nodes, only, planned, refused, requests_of, types
from tests.packing.exact import fewest_gpus_of_nodes

A100 = "p4d.24xlarge"
"""8 x A100 of 40 GiB."""
EIGHT = a_node_pool("pool", (A100,))
TYPE = "node.kubernetes.io/instance-type"


def tenth(name: str, **more: Any) -> Pod:
    return a_waiting_pod(name, gpu_fraction="0.1", **more)


def tolerating(key: str) -> dict[str, Any]:
    return {"tolerations": [{"key": key, "operator": "Exists"}]}


SELECTORS = (
    {"selector": {TYPE: A100}},
    {"selector": {"karpenter.sh/nodepool": "pool"}},
    {"selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}},
    {"affinity": [{"key": TYPE, "operator": "In", "values": [A100, "p5.48xlarge"]}]},
    {"affinity": [{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["4"]}]},
)


@pytest.mark.parametrize(
    "unlike",
    [
        pytest.param([{"queue": f"queue-{n}"} for n in range(5)], id="queues"),
        pytest.param([tolerating(f"needless-{n}") for n in range(5)], id="tolerations"),
        pytest.param(SELECTORS, id="selectors"),
    ],
)
def test_five_classes_share_one_node(unlike: list[dict[str, Any]]) -> None:
    """Half a GPU in total; five nodes of 8 GPUs would be far too much."""
    pods = [tenth(f"pod-{n}", **each) for n, each in enumerate(unlike)]
    plan = planned(*pods, a_node_pool("pool", (A100,), group="karpenter.k8s.aws"))
    assert len(plan.demands) == 5
    (node,) = plan.nodes
    assert node.demands == tuple(sorted(each.name for each in plan.demands))
    assert len(node.held) == 1
    assert [each.gpu_milli for each in plan.demands] == [1600] * 5, "its fifth of the eight GPUs"
    assert not planned(
        *pods, a_node_pool("pool", (A100,), group="karpenter.k8s.aws"), requested=requests_of([node])
    ).nodes


def test_a_queue_counts_its_share_and_not_the_node() -> None:
    """A limit of 0.1 GPU is enough for a share of 0.1 on a node of eight GPUs."""
    queues = [a_queue("root", parent=""), *(a_queue(f"queue-{n}", limit=0.1) for n in range(5))]
    plan = planned(*(tenth(f"pod-{n}", queue=f"queue-{n}") for n in range(5)), *queues, EIGHT)
    assert (len(plan.nodes), refused(plan)) == (1, {})


def test_classes_of_different_products_share_no_node() -> None:
    pods = [tenth(product, selector={"nvidia.com/gpu.product": product}) for product in ("NVIDIA-L4", "NVIDIA-A10G")]
    plan = planned(*pods, a_node_pool("pool", ("g6.xlarge", "g5.xlarge")))
    assert sorted(node.demands for node in plan.nodes) == [(each.name,) for each in plan.demands]


def test_pods_of_different_zones_share_no_node_and_pods_of_any_zone_join_one() -> None:
    zone = "topology.kubernetes.io/zone"
    pods = [tenth("a", selector={zone: "a"}), tenth("b", selector={zone: "b"}), tenth("any")]
    plan = planned(*pods, EIGHT)
    assert sorted(len(node.pods) for node in plan.nodes) == [1, 2]
    assert len({node.requires for node in plan.nodes}) == 2, "each of its zone"
    assert not planned(*pods, EIGHT, requested=requests_of(plan.nodes)).nodes
    elsewhere = planned(tenth("c", selector={zone: "c"}), EIGHT, requested=requests_of(plan.nodes))
    assert len(elsewhere.nodes) == 1, "what is requested is of other zones"
    assert not elsewhere.needed


def test_nodes_of_a_tainted_pool_are_shared_only_by_pods_that_tolerate_it() -> None:
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    tainted = a_node_pool("tainted", (A100,), taints=[taint])
    inside = [
        tenth(f"in-{n}", selector={"karpenter.sh/nodepool": "tainted"}, **tolerating("dedicated")) for n in (1, 2)
    ]
    both = tenth("both", **tolerating("dedicated"))
    plan = planned(*inside, both, tainted)
    assert len(plan.nodes) == 1
    plan = planned(*inside, both, tenth("outside"), tainted, EIGHT)
    assert len(plan.nodes) == 2
    (outside,) = (node for node in plan.nodes if node.node_pool == "pool")
    assert "uid-outside" in outside.pods


def test_103_shares_of_a_twentieth_fit_one_node() -> None:
    """They share six GPUs, so there are six reservation pods in addition, and a node holds 110 pods."""
    pods = [a_waiting_pod(f"pod-{n:03}", gpu_fraction="0.05") for n in range(103)]
    assert types(planned(*pods, EIGHT)) == [A100]


@pytest.mark.parametrize(
    ("count", "annotations", "gpus"),
    [
        pytest.param(16, {"gpu_fraction": "0.0625"}, 1, id="sixteenths"),
        pytest.param(17, {"gpu_fraction": "0.0625"}, 2, id="one more"),
        pytest.param(3, {"gpu_fraction": "0.3333"}, 1, id="0.3333"),
        pytest.param(3, {"gpu_fraction": "0.33334"}, 2, id="more than a third"),
        pytest.param(3, {"gpu_memory": "7600"}, 1, id="thirds of 22800 MiB"),
        pytest.param(3, {"gpu_memory": "7601"}, 2, id="one MiB more"),
        pytest.param(3, {"gpu_fraction": "0.3333333333333333"}, 1, id="a third in 16 digits"),
        pytest.param(3, {"gpu_fraction": "0.3333333333333334"}, 2, id="more than a third in 16 digits"),
        pytest.param(7, {"gpu_fraction": "0.14285714285714285"}, 1, id="a seventh in 17 digits"),
    ],
)
def test_fractions_are_exact(count: int, annotations: dict[str, Any], gpus: int) -> None:
    live = a_gpu_node("live", "NVIDIA-L4", memory=22850, instance_type="g6.xlarge", taints=["full"])
    pods = [a_waiting_pod(f"pod-{n:02}", **annotations) for n in range(count)]
    plan = planned(*pods, live, a_node_pool("pool", ("g6.xlarge",)))
    assert (plan.gpus, refused(plan)) == (gpus, {})


def test_shares_in_mib_of_six_models_of_gpu_are_exact() -> None:
    """Three pods need an L4 together, exactly. The other two share a GPU of any model, of which each has other MiB."""
    models = {
        "g6.xlarge": ("NVIDIA-L4", 22850),
        "g5.xlarge": ("NVIDIA-A10G", 22731),
        "g4dn.xlarge": ("Tesla-T4", 15360),
        "g6e.xlarge": ("NVIDIA-L40S", 46068),
        "p4de.24xlarge": ("NVIDIA-A100-SXM4-80GB", 81920),
        "p5.48xlarge": ("NVIDIA-H100-80GB-HBM3", 81559),
    }
    live = [
        a_gpu_node(f"live-{name}", product, memory=memory, instance_type=name, taints=["full"])
        for name, (product, memory) in models.items()
    ]
    on_l4 = {"nvidia.com/gpu.product": "NVIDIA-L4"}
    pods = [a_waiting_pod(f"third-{n}", gpu_memory="7600", selector=on_l4) for n in range(3)]
    pods += [a_waiting_pod(f"any-{mib}", gpu_memory=mib) for mib in ("13001", "12007")]
    plan = planned(*pods, *live, a_node_pool("pool", tuple(models)))
    assert (plan.gpus, plan.least_gpus, refused(plan)) == (2, 2, {})


SIZES = ("0.1", "0.25", "0.3", "0.3333", "0.5", "0.6", "0.7", "0.9")
POOLS = (
    a_node_pool("l4", ("g6.xlarge", "g6.12xlarge")),
    a_node_pool("a10g", ("g5.xlarge",), taints=[{"key": "dedicated", "effect": "NoSchedule"}]),
)
GPUS = {"g6.xlarge": 1, "g6.12xlarge": 4, "g5.xlarge": 1}
POOL_OF = {"g6.xlarge": "l4", "g6.12xlarge": "l4", "g5.xlarge": "a10g"}


@st.composite
def mixed(draw: st.DrawFn) -> list[Pod]:
    found = []
    for number in range(draw(st.integers(1, 8))):
        where = draw(st.sampled_from(["any", "l4", "a10g", "large"]))
        selector = {"l4": {"karpenter.sh/nodepool": "l4"}, "a10g": {"karpenter.sh/nodepool": "a10g"}}.get(where)
        found.append(
            a_waiting_pod(
                f"pod-{number}",
                queue=draw(st.sampled_from(["", "a", "b"])),
                selector={TYPE: "g6.12xlarge"} if where == "large" else selector,
                **tolerating(draw(st.sampled_from(["needless", "dedicated"])))
                if where != "a10g"
                else tolerating("dedicated"),
                gpu_fraction=draw(st.sampled_from(SIZES)),
                gpu_fraction_num_devices=draw(st.sampled_from(["1", "1", "1", "2"])),
            )
        )
    return found


def _need(pod: Pod, offered: list[NodeShape], free: list[FreeNode]) -> PodNeed:
    """Needs by instance type; those of free nodes are in `free`."""
    able = [each.kind for each in offered if _runs(pod, each.kind)]
    able += ["free"] if not pod.placement.node_selector else []
    digits = pod.annotations["gpu-fraction"][2:]
    return PodNeed(
        pod.uid,
        dict.fromkeys(able, exact_milli(Fraction(int(digits), 10 ** len(digits)))),
        int(pod.annotations["gpu-fraction-num-devices"]),
    )


def _runs(pod: Pod, kind: str) -> bool:
    wanted = dict(pod.placement.node_selector)
    tolerates = any(each.key == "dedicated" for each in pod.placement.tolerations)
    return (
        wanted.get(TYPE, kind) == kind
        and wanted.get("karpenter.sh/nodepool", POOL_OF[kind]) == POOL_OF[kind]
        and (tolerates or POOL_OF[kind] != "a10g")
    )


PRODUCT_OF = {"l4": "NVIDIA-L4", "a10g": "NVIDIA-A10G"}


@settings(max_examples=60, deadline=None)
@given(mixed(), st.integers(0, 2), st.booleans(), st.lists(st.sampled_from(sorted(GPUS)), max_size=2))
def test_no_more_is_requested_than_an_exact_packing_needs(
    pods: list[Pod], gpus: int, partly: bool, coming: list[str]
) -> None:
    """In addition to a free node with this many GPUs, half of the first in use, and requested nodes of these types."""
    objects: list[Any] = [a_gpu_node("free", "NVIDIA-H100", gpus=gpus)] if gpus else []
    gpus_free: tuple[int, ...] = (1000,) * gpus
    if gpus and partly:
        objects.append(a_waiting_pod("there", gpu_fraction="0.5", node="free", phase="Running"))
        gpus_free = (500, *gpus_free[1:])
    requested = [
        RequestedNode(f"request-{n}", (each,), POOL_OF[each], GPUS[each], PRODUCT_OF[POOL_OF[each]])
        for n, each in enumerate(coming)
    ]
    shapes = [NodeShape(name, name, count, 2**40, 2**40) for name, count in GPUS.items()]
    free = [FreeNode("free", "free", gpus_free, 2**40, 2**40)] if gpus else []
    free += [FreeNode(f"request-{n}", each, (1000,) * GPUS[each], 2**40, 2**40) for n, each in enumerate(coming)]
    plan = planned(*pods, *objects, *POOLS, requested=requested)
    needs = [_need(pod, shapes, free) for pod in pods if pod.uid not in refused(plan)]
    fewest = fewest_gpus_of_nodes(needs, shapes, free)
    assert fewest is not None
    assert plan.least_gpus <= fewest
    assert plan.gpus == fewest
    for uid in refused(plan):
        (pod,) = (each for each in pods if each.uid == uid)
        assert fewest_gpus_of_nodes([_need(pod, shapes, free)], shapes, free) is None
    assert on_new(plan) == {uid for node in plan.nodes for uid in node.pods}


def test_a_demand_has_the_place_of_each_pod() -> None:
    requested = requests_of(planned(tenth("first"), EIGHT).nodes)
    nodes = [a_gpu_node("there", "NVIDIA-L4", gpus=1)]
    of_l4 = a_waiting_pod("on-node", gpu_fraction="0.9", selector={"nvidia.com/gpu.product": "NVIDIA-L4"})
    plan = planned(of_l4, *nodes, EIGHT, requested=requested)
    assert only(plan).on_nodes == {"there": ("uid-on-node",)}
    assert plan.needed == set()
    of_a100 = a_waiting_pod("on-requested", gpu_fraction="0.9", gpu_fraction_num_devices="8")
    plan = planned(of_a100, EIGHT, requested=requested)
    assert only(plan).on_requested == {requested[0].name: ("uid-on-requested",)}
    assert only(plan).gpu_milli == 8000


def test_a_gpu_is_shared_by_pods_of_one_scheduler() -> None:
    """TensorFusion cannot use what KAI leaves of a GPU: a pod planned there would wait for ever."""
    node = a_gpu_node("node", "NVIDIA-L4", gpus=1)
    used = a_waiting_pod("used", gpu_fraction="0.5", node="node", reason=None, phase="Running")
    pool = a_node_pool("pool", ("g6.xlarge",))
    kai = a_waiting_pod("kai", gpu_fraction="0.3")
    other = a_waiting_pod("other", gpu_fraction="0.3").model_copy(update={"scheduler_name": "tensor-fusion-scheduler"})
    assert on_nodes(planned(kai, node, used, pool)) == {"uid-kai": "node"}
    assert types(planned(other, node, used, pool)) == ["g6.xlarge"]


def test_a_node_of_two_schedulers_has_only_free_gpus_for_others() -> None:
    kai = a_waiting_pod("kai", gpu_fraction="0.3")
    running = [
        a_waiting_pod(scheduler, gpu_fraction="0.5", node="node", reason=None, phase="Running").model_copy(
            update={"scheduler_name": scheduler, "labels": {GPU_GROUP: scheduler}}
        )
        for scheduler in ("kai-scheduler", "tensor-fusion-scheduler")
    ]
    for gpus, places in ((2, {}), (3, {"uid-kai": "node"})):
        node = a_gpu_node("node", "NVIDIA-L4", gpus=gpus)
        assert on_nodes(planned(kai, node, *running, a_node_pool("pool", ("g6.xlarge",)))) == places
