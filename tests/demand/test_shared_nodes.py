"""Pods of all classes share a new node if each of them could run there."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cluster.queues import priority_of
from plimsoll.labels import GPU_GROUP
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import PodGroup, Queue
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
KAI, TENSOR_FUSION = "kai-scheduler", "tensor-fusion-scheduler"
L4 = a_node_pool("pool", ("g6.xlarge",))
"""One L4 each."""


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
    nodes = [Node.read({"metadata": {"name": f"node-{each}", "labels": {zone: each}}}) for each in "abc"]
    plan = planned(*pods, *nodes, EIGHT)
    assert sorted(len(node.pods) for node in plan.nodes) == [1, 2]
    assert len({node.requires for node in plan.nodes}) == 2, "each of its zone"
    assert not planned(*pods, *nodes, EIGHT, requested=requests_of(plan.nodes)).nodes
    elsewhere = planned(tenth("c", selector={zone: "c"}), *nodes, EIGHT, requested=requests_of(plan.nodes))
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


WHERE = {
    "l4": {"karpenter.sh/nodepool": "l4"},
    "a10g": {"karpenter.sh/nodepool": "a10g"},
    "large": {TYPE: "g6.12xlarge"},
    "nowhere": {"karpenter.sh/nodepool": "nowhere"},
}
"""Node selectors; `any` has none."""


def a_mixed_pod(draw: st.DrawFn, name: str, where: str, queue: str, **more: Any) -> Pod:
    return a_waiting_pod(
        name,
        queue=queue,
        selector=WHERE.get(where),
        **tolerating("dedicated" if where == "a10g" else draw(st.sampled_from(["needless", "dedicated"]))),
        gpu_fraction=draw(st.sampled_from(SIZES)),
        gpu_fraction_num_devices=draw(st.sampled_from(["1", "1", "1", "2"])),
        **more,
    )


SCHEDULERS = st.sampled_from([KAI, KAI, TENSOR_FUSION])


@st.composite
def mixed(draw: st.DrawFn) -> list[Pod]:
    where, queue = st.sampled_from(["any", "l4", "a10g", "large"]), st.sampled_from(["", "a", "b"])
    return [
        a_mixed_pod(draw, f"pod-{n}", draw(where), draw(queue), scheduler=draw(SCHEDULERS))
        for n in range(draw(st.integers(1, 8)))
    ]


def _need(pod: Pod, offered: list[NodeShape], free: list[FreeNode]) -> PodNeed:
    """Needs by instance type; those of free nodes are in `free`."""
    able = [each.kind for each in offered if _runs(pod, each.kind)]
    able += ["free"] if not pod.placement.node_selector else []
    digits = pod.annotations["gpu-fraction"][2:]
    return PodNeed(
        pod.uid,
        dict.fromkeys(able, exact_milli(Fraction(int(digits), 10 ** len(digits)))),
        int(pod.annotations["gpu-fraction-num-devices"]),
        scheduler=pod.scheduler_name,
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
SHAPES = [NodeShape(name, name, count, 2**40, 2**40) for name, count in GPUS.items()]
COMING = st.lists(st.tuples(st.sampled_from(sorted(GPUS)), st.just("") | SCHEDULERS), max_size=2)
"""The types of requested nodes, and the schedulers that they were requested for; empty: not known."""


@settings(max_examples=60)
@given(mixed(), st.integers(0, 2), st.just("") | SCHEDULERS, COMING)
def test_no_more_is_requested_than_an_exact_packing_needs(
    pods: list[Pod], gpus: int, user: str, coming: list[tuple[str, str]]
) -> None:
    """In addition to a free node with this many GPUs, half of the first in use by a pod of the scheduler `user`, and
    requested nodes of these types."""
    there = a_waiting_pod("there", gpu_fraction="0.5", scheduler=user, node="free", phase="Running") if user else None
    there = there if gpus else None
    objects, requested, free = _around(gpus, there, coming)
    plan = planned(*pods, *objects, *POOLS, requested=requested)
    needs = [_need(pod, SHAPES, free) for pod in pods if pod.uid not in refused(plan)]
    fewest = fewest_gpus_of_nodes(needs, SHAPES, free)
    assert fewest is not None
    assert plan.least_gpus <= fewest
    assert plan.gpus == fewest
    for uid in refused(plan):
        (pod,) = (each for each in pods if each.uid == uid)
        assert fewest_gpus_of_nodes([_need(pod, SHAPES, free)], SHAPES, free) is None
    assert on_new(plan) == {uid for node in plan.nodes for uid in node.pods}


def _around(
    gpus: int, there: Pod | None, coming: list[tuple[str, str]]
) -> tuple[list[Any], list[RequestedNode], list[FreeNode]]:
    """The objects and requests of a free node with this many GPUs, `there` on the first of them, and of requested nodes
    of these types; and what they leave free."""
    objects = [a_gpu_node("free", "NVIDIA-H100", gpus=gpus)] if gpus else []
    requested = [
        RequestedNode(f"request-{n}", (each,), POOL_OF[each], GPUS[each], PRODUCT_OF[POOL_OF[each]], scheduler=of)
        for n, (each, of) in enumerate(coming)
    ]
    devices = ((500 if there else 1000), *[1000] * (gpus - 1))
    of_there = there.scheduler_name if there else ""
    free = [FreeNode("free", "free", devices, 2**40, 2**40, scheduler=of_there)] if gpus else []
    free += [
        FreeNode(f"request-{n}", each, (1000,) * GPUS[each], 2**40, 2**40, scheduler=of)
        for n, (each, of) in enumerate(coming)
    ]
    return [*objects, *([there] if there else [])], requested, free


LEAVES = ("default-queue", "a", "b")


@dataclass(frozen=True)
class Rules:
    """What may start, as drawn: amounts of GPUs by queue, None where unlimited."""

    least: Mapping[str, int | None]
    """The minimum of each gang; None: it has no PodGroup."""
    limits: Mapping[str, Fraction | None]
    """Of `root`, the parent, and of the queues that exist; empty in a cluster without Queues."""
    quotas: Mapping[str, Fraction | None]
    without_cpu: Collection[str]
    """Queues that admit no CPU."""

    @property
    def objects(self) -> list[PodGroup | Queue]:
        groups = [
            PodGroup.read({"metadata": {"name": name, "namespace": "team"}, "spec": {"minMember": least}})
            for name, least in self.least.items()
            if least is not None
        ]
        return [*groups, *map(self._queue, self.limits)]

    def _queue(self, name: str) -> Queue:
        limit, quota = self.limits[name], self.quotas[name]
        of_gpu = {
            "limit": -1.0 if limit is None else float(limit),
            "quota": -1.0 if quota is None else float(quota),
        }
        unlimited = {"quota": -1, "limit": -1}
        resources = {"gpu": of_gpu, "memory": unlimited} | ({} if name in self.without_cpu else {"cpu": unlimited})
        parent = "" if name == "root" else "root"
        return Queue.read({"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": resources}})

    def starting(self, pods: Sequence[Pod], able: Collection[str], there: Pod | None) -> set[str]:
        """UIDs of the pods that start. Of all sets that may start, the one with the first pod in order, of these the
        one with the second, and so on."""
        in_order = sorted(pods, key=lambda pod: (-priority_of(pod), pod.creation_timestamp, pod.uid))
        running = [there] if there else []
        required = dict[str, set[str]]()
        for name, least in self.least.items():
            known = [pod for pod in in_order if _gang_of(pod) == name]
            others = sum(_gang_of(pod) == name for pod in running)
            everyone = len(known) + others
            count = max(0, min(everyone if least is None else least, everyone) - others)
            first = [pod.uid for pod in known if pod.uid in able][:count]
            required[name] = set(first) if len(first) == count else {"too few"}
        for bits in product((True, False), repeat=len(in_order)):
            chosen = [pod for pod, starts in zip(in_order, bits, strict=True) if starts]
            uids = {pod.uid for pod in chosen}
            if (
                uids <= set(able)
                and all(required.get(_gang_of(pod), uids) <= uids for pod in chosen)
                and self._admits(chosen, running)
            ):
                return uids
        raise AssertionError("no pod at all may always start")

    def _admits(self, chosen: Sequence[Pod], running: Sequence[Pod]) -> bool:
        if not self.limits:
            return True
        queues = [_queue_of(pod) for pod in chosen]
        if not self.limits.keys() >= set(queues):
            return False
        for name in {"root", *queues}:
            above = {name} if name != "root" else self.limits.keys()
            inside = [pod for pod in chosen if _queue_of(pod) in above]
            beside = [pod for pod in running if _queue_of(pod) in above]
            limit, quota = self.limits[name], self.quotas[name]
            firm = [pod for pod in (*inside, *beside) if pod.priority >= 100]
            if (
                (limit is not None and inside and sum(map(_gpus, (*inside, *beside))) > limit)
                or (quota is not None and any(pod in inside for pod in firm) and sum(map(_gpus, firm)) > quota)
                or (name in self.without_cpu and any(pod.host.cpu_milli for pod in inside))
            ):
                return False
        return True


def _gang_of(pod: Pod) -> str:
    return pod.annotations.get("pod-group-name", "")


def _queue_of(pod: Pod) -> str:
    return pod.labels.get("kai.scheduler/queue", "default-queue")


def _gpus(pod: Pod) -> Fraction:
    return Fraction(pod.annotations["gpu-fraction"]) * int(pod.annotations.get("gpu-fraction-num-devices", "1"))


GANGS = ("one", "two")
AMOUNTS = st.sampled_from([None, None, None, None, *(Fraction(n, 2) for n in (3, 2, 1, 4, 5, 6, 7, 0))])


def _least(members: int) -> st.SearchStrategy[int | None]:
    return st.sampled_from([None, 2, 2, 3, members, members + 1]).filter(lambda least: least != 1)


@st.composite
def gangs_in_queues(draw: st.DrawFn) -> tuple[list[Pod], Pod | None, Rules]:
    """Waiting pods, a running pod, and what may start. The pods of a gang are of one queue and priority, as in KAI."""
    queue = st.sampled_from(["", "a", "a", "b"])
    priority = st.sampled_from([0, 0, 50, 125])
    of_gang = {name: (draw(queue), draw(priority)) for name in GANGS}
    pods = []
    for number in range(draw(st.sampled_from([8, 7, 6, 5, 4, 2]))):
        gang = draw(st.sampled_from(["", "one", "one", "two"]))
        where = draw(st.sampled_from(["any", "any", "any", "l4", "l4", "a10g", "large", "nowhere"]))
        own_queue, own_priority = of_gang[gang] if gang else (draw(queue), draw(priority))
        more: dict[str, Any] = {"pod_group_name": gang} if gang else {}
        cpu = draw(st.sampled_from(["", "", "1m"]))
        pod = a_mixed_pod(draw, f"pod-{number}", where, own_queue, priority=own_priority, cpu=cpu, **more)
        created = f"2026-01-01T00:0{draw(st.integers(0, 4))}:00Z"
        pods.append(pod.model_copy(update={"creation_timestamp": created}))
    there = None
    if draw(st.booleans()):
        gang = draw(st.sampled_from(["", *GANGS]))
        own_queue, own_priority = of_gang[gang] if gang else (draw(queue), 0)
        more = {"pod_group_name": gang} if gang else {}
        there = a_waiting_pod(
            "there", queue=own_queue, priority=own_priority, node="free", phase="Running", gpu_fraction="0.5", **more
        )
    members = Counter(map(_gang_of, pods))
    least = {name: draw(_least(members[name])) for name in GANGS if members[name]}
    names = ["root", *draw(st.sampled_from([LEAVES] * 5 + [LEAVES[:2]]))] if draw(st.integers(0, 4)) else []
    limits, quotas = ({name: draw(AMOUNTS) for name in names} for _ in range(2))
    without_cpu = draw(st.sets(st.sampled_from(names), max_size=1)) if names and not draw(st.integers(0, 4)) else set()
    return pods, there, Rules(least, limits, quotas, without_cpu)


@given(gangs_in_queues(), st.integers(0, 2), COMING)
def test_what_may_start_of_gangs_and_queues_gets_the_fewest_gpus_and_nothing_else_does(
    found: tuple[list[Pod], Pod | None, Rules], gpus: int, coming: list[tuple[str, str]]
) -> None:
    """As above, with gangs, priorities and Queues."""
    pods, there, rules = found
    there = there if gpus else None
    objects, requested, free = _around(gpus, there, coming)
    needs = {pod.uid: _need(pod, SHAPES, free) for pod in pods}
    able = {uid for uid, need in needs.items() if fewest_gpus_of_nodes([need], SHAPES, free) is not None}
    starting = rules.starting(pods, able, there)
    plan = planned(*pods, *objects, *rules.objects, *POOLS, requested=requested)
    assert needs.keys() - refused(plan).keys() == starting
    fewest = fewest_gpus_of_nodes([needs[uid] for uid in sorted(starting)], SHAPES, free)
    assert fewest is not None
    assert plan.least_gpus <= fewest
    assert plan.gpus == fewest


def test_a_pod_beyond_the_minimum_of_its_gang_comes_after_older_pods() -> None:
    """The limit of the queue is three pods."""
    created = {"gang-0": 0, "gang-1": 0, "single": 1, "gang-2": 2}
    pods = [
        tenth(name, **({"pod_group_name": "gang"} if name != "single" else {})).model_copy(
            update={"creation_timestamp": f"2026-01-01T00:0{minute}:00Z"}
        )
        for name, minute in created.items()
    ]
    group = PodGroup.read({"metadata": {"name": "gang", "namespace": "team"}, "spec": {"minMember": 2}})
    queues = [a_queue("root", parent=""), a_queue("default-queue", limit=0.3)]
    assert refused(planned(*pods, group, *queues, EIGHT)).keys() == {"uid-gang-2"}


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
    other = a_waiting_pod("other", gpu_fraction="0.3", scheduler=TENSOR_FUSION)
    assert on_nodes(planned(kai, node, used, pool)) == {"uid-kai": "node"}
    assert types(planned(other, node, used, pool)) == ["g6.xlarge"]


def test_a_node_of_two_schedulers_has_only_free_gpus_for_others() -> None:
    kai = a_waiting_pod("kai", gpu_fraction="0.3")
    running = [
        a_waiting_pod(
            scheduler,
            gpu_fraction="0.5",
            scheduler=scheduler,
            node="node",
            phase="Running",
            more_labels={GPU_GROUP: scheduler},
        )
        for scheduler in (KAI, TENSOR_FUSION)
    ]
    for gpus, places in ((2, {}), (3, {"uid-kai": "node"})):
        node = a_gpu_node("node", "NVIDIA-L4", gpus=gpus)
        assert on_nodes(planned(kai, node, *running, a_node_pool("pool", ("g6.xlarge",)))) == places


def test_pods_of_different_schedulers_are_planned_onto_different_new_nodes() -> None:
    """Once a pod is bound, its GPU serves its scheduler only: the pod of another would ask for a node again."""
    pods = [tenth(f"{scheduler}-{n}", scheduler=scheduler) for scheduler in (KAI, TENSOR_FUSION) for n in range(3)]
    plan = planned(*pods, L4)
    assert sorted((node.scheduler, len(node.pods)) for node in plan.nodes) == [(KAI, 3), (TENSOR_FUSION, 3)]
    assert (plan.least_gpus, plan.least_requested_gpus) == (2, 1)
    requested = requests_of(plan.nodes)
    again = planned(*pods, L4, requested=requested)
    assert types(again) == []
    assert again.needed == {node.name for node in requested}


def test_a_node_without_shares_is_planned_for_one_scheduler() -> None:
    pods = [tenth(scheduler, scheduler=scheduler) for scheduler in (KAI, TENSOR_FUSION)]
    plan = planned(*pods, a_gpu_node("node", "NVIDIA-L4", gpus=4), L4)
    assert (len(on_nodes(plan)), types(plan)) == (1, ["g6.xlarge"])
    two = [a_gpu_node(name, "NVIDIA-L4", gpus=4) for name in ("a", "b")]
    assert set(on_nodes(planned(*pods, *two, L4)).values()) == {"a", "b"}


def test_a_requested_node_serves_the_scheduler_that_it_was_requested_for() -> None:
    requested = requests_of(planned(tenth("gone"), L4).nodes)
    kai, other = tenth("kai"), tenth("other", scheduler=TENSOR_FUSION)
    assert types(planned(kai, L4, requested=requested)) == []
    assert types(planned(other, L4, requested=requested)) == ["g6.xlarge"]
    unknown = [replace(node, scheduler="") for node in requested]
    assert types(planned(other, L4, requested=unknown)) == []
    assert types(planned(kai, other, L4, requested=unknown)) == ["g6.xlarge"]


def test_pods_with_whole_gpus_use_nodes_of_any_scheduler() -> None:
    """KAI's pod cannot use the other GPU, which a pod of kube-scheduler gets."""
    used = a_waiting_pod("used", gpu_fraction="0.5", scheduler=TENSOR_FUSION, node="node", phase="Running")
    whole = a_waiting_pod("whole", gpus=1, scheduler="default-scheduler")
    half = a_waiting_pod("half", gpu_fraction="0.6", scheduler=TENSOR_FUSION)
    node = a_gpu_node("node", "NVIDIA-L4", gpus=2)
    assert types(planned(tenth("kai"), node, used, L4)) == ["g6.xlarge"]
    assert on_nodes(planned(half, node, used, L4)) == {"uid-half": "node"}
    assert types(planned(half, whole, node, used, L4)) == ["g6.xlarge"]


@pytest.mark.parametrize(("slots", "places"), [(2, {}), (3, {"uid-share": "node"})])
def test_the_slot_of_a_pod_with_a_whole_gpu_is_taken_for_pods_that_share(slots: int, places: dict[str, str]) -> None:
    """A pod that shares a GPU of its own needs two slots, one for its reservation pod."""
    node = a_gpu_node("node", "NVIDIA-L4", gpus=2)
    node = node.model_copy(update={"allocatable": {**node.allocatable, "pods": str(slots)}})
    whole, share = a_waiting_pod("whole", gpus=1), a_waiting_pod("share", gpu_fraction="0.5")
    plan = planned(whole, share, node, a_node_pool("pool", ("g6.xlarge",)))
    assert on_nodes(plan) == places
    assert len(plan.nodes) == (0 if places else 1)
