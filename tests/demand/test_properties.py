"""Properties of every demand plan, for any cluster."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.cluster.pools import allocatable_cpu_milli
from plimsoll.model.cluster import Node, Pod
from plimsoll.packing import Milli, exact_milli
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.demand import Demand, DemandPlan, DemandPlanner, RequestedNode
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod
from tests.demand.plans import refused, requests_of

TYPES = {"g6.xlarge": 1, "g6.12xlarge": 4, "g5.xlarge": 1, "g5.48xlarge": 8}
VCPUS = {"g6.xlarge": 4, "g6.12xlarge": 48, "g5.xlarge": 4, "g5.48xlarge": 192}
PRODUCTS = ("NVIDIA-L4", "NVIDIA-A10G")
MEMORY = 23028
"""MiB that both report, but for six of the L4."""
SHARED_MEMORY = 23000
"""Whole hundreds of it."""
POOL = a_node_pool("pool", TYPES)
SCHEDULERS = ("kai-scheduler", "kai-scheduler", "tensor-fusion-scheduler")
TOLERATIONS = ((), ({"key": "needless", "operator": "Exists"},))


@st.composite
def pods(draw: st.DrawFn, most: int = 14) -> list[Pod]:
    found = []
    for number in range(draw(st.integers(0, most))):
        asked: dict[str, Any] = draw(
            st.sampled_from([{"gpu_fraction": f"0.{n}"} for n in (1, 2, 25, 3, 3333, 4, 5, 6, 7, 9)])
            | st.sampled_from([{"gpu_memory": "2000"}, {"gpu_memory": "13000"}])
        )
        devices = draw(st.sampled_from(["1", "1", "1", "2", "4"]))
        product = draw(st.sampled_from([None, *PRODUCTS]))
        found.append(
            a_waiting_pod(
                f"pod-{number:02}",
                selector={"nvidia.com/gpu.product": product} if product else None,
                tolerations=draw(st.sampled_from(TOLERATIONS)),
                queue=draw(st.sampled_from(["", "team-a"])),
                scheduler=draw(st.sampled_from(SCHEDULERS)),
                cpu=draw(st.sampled_from(["", "500m", "3"])),
                more_labels=draw(st.sampled_from([None, None, {"jobset.sigs.k8s.io/jobset-name": "set"}])),
                **asked,
                gpu_fraction_num_devices=devices,
            )
        )
    return found


MANY_PODS = [
    a_waiting_pod(
        f"pod-{number:02}",
        selector={"nvidia.com/gpu.product": PRODUCTS[number % 2]} if number % 3 else None,
        queue="team-a" if number % 4 else "",
        scheduler=SCHEDULERS[number % 3],
        cpu=("", "500m", "3")[number % 3],
        gpu_fraction=("0.3", "0.6", "0.25", "0.9")[number % 4],
        gpu_fraction_num_devices=("1", "1", "2")[number % 3],
    )
    for number in range(14)
]


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    return [
        a_gpu_node(f"node-{number}", draw(st.sampled_from(PRODUCTS)), gpus=draw(st.integers(1, 4)), memory=MEMORY)
        for number in range(draw(st.integers(0, 3)))
    ]


def cpu_of(instance_type: str) -> str:
    """The CPU that is allocatable on a node of this type."""
    return f"{allocatable_cpu_milli(VCPUS[instance_type] * 1000)}m"


def milli_of(pod: Pod) -> Milli:
    """Exact thousandths of one of its GPUs."""
    fraction = pod.annotations.get("gpu-fraction")
    if fraction:
        digits = fraction.partition(".")[2]
        return exact_milli(int(digits), 10 ** len(digits))
    return exact_milli(int(pod.annotations["gpu-memory"]), SHARED_MEMORY)


def devices_of(pod: Pod) -> int:
    return int(pod.annotations["gpu-fraction-num-devices"])


def places(demand: Demand) -> Counter[str]:
    """How often each pod has a place or waits."""
    lists = [demand.on_new, demand.awaiting, demand.in_grace, *demand.on_nodes.values(), *demand.on_requested.values()]
    return Counter(uid for uids in lists for uid in uids)


def check(
    plan: DemandPlan,
    given_pods: Iterable[Pod],
    free: Mapping[str, Milli],
    requested: Iterable[RequestedNode] = (),
) -> None:
    """Each pod has one place, no node is overcommitted, and one scheduler's pods share its GPUs. `free` are thousandths
    of GPUs by node."""
    by_uid = {pod.uid: pod for pod in given_pods}
    gpus = {node.name: node.gpus for node in requested}
    there: defaultdict[str, Milli] = defaultdict(int)
    schedulers = defaultdict[str, set[str]](set, {node.name: {node.scheduler} - {""} for node in requested})
    seen: Counter[str] = Counter()
    on_new: dict[str, tuple[int, str]] = {}
    for demand in plan.demands:
        seen.update(demand.pods.keys())
        placed = places(demand)
        assert set(placed) | set(demand.refused) == set(demand.pods)
        assert not set(placed) & set(demand.refused)
        assert set(placed.values()) <= {1}
        on_new |= {uid: (number, demand.name) for uid, number in demand.on_new.items()}
        for pod in (by_uid[uid] for uid in demand.pods):
            assert DemandClass(pod.placement, demand.demand_class.queue, pod.scheduler_name) == demand.demand_class
        for name, uids in (*demand.on_nodes.items(), *demand.on_requested.items()):
            there[name] += sum(milli_of(by_uid[uid]) * devices_of(by_uid[uid]) for uid in uids)
            schedulers[name].add(demand.demand_class.scheduler)
    assert seen == Counter(dict.fromkeys(by_uid, 1))
    for name, milli in there.items():
        assert milli <= (1000 * gpus[name] if name in gpus else free[name])
    assert all(len(names) == 1 for names in schedulers.values() if names)
    for number, node in enumerate(plan.nodes):
        assert {by_uid[uid].scheduler_name for uid in node.pods} == {node.scheduler}
        assert node.gpus == TYPES[node.instance_type]
        assert 0 < len(node.held) <= node.gpus
        for held in node.held:
            assert sum(milli_of(by_uid[uid]) for uid in held) <= 1000
        counted = Counter(uid for held in node.held for uid in held)
        for uid in node.pods:
            assert counted[uid] == devices_of(by_uid[uid])
            assert on_new.pop(uid)[0] == number
            wanted = dict(by_uid[uid].placement.node_selector).get("nvidia.com/gpu.product")
            assert wanted is None or wanted.endswith(node.kind.split()[-1].split("-")[-1])
    assert not on_new
    for demand in plan.demands:
        for number in set(demand.on_new.values()):
            assert demand.name in plan.nodes[number].demands
        if not demand.awaiting:
            new = sum(plan.nodes[number].gpus for number in set(demand.on_new.values()))
            assert demand.least_gpus <= new + sum(gpus[name] for name in demand.on_requested), "a bound that holds"
    if not any(demand.awaiting for demand in plan.demands):
        assert plan.least_requested_gpus <= plan.gpus + sum(gpus.values())
    assert plan.lower_bound <= plan.least_gpus + 1e-6
    assert plan.needed <= gpus.keys()


def free_of(there: Iterable[Node]) -> dict[str, Milli]:
    return {node.name: 1000 * int(node.allocatable["nvidia.com/gpu"]) for node in there}


@given(pods(), nodes())
def test_every_pod_has_one_place_or_a_reason_and_no_gpu_is_overcommitted(found: list[Pod], there: list[Node]) -> None:
    plan = DemandPlanner().plan(a_snapshot(*found, *there, POOL))
    check(plan, found, free_of(there))
    assert plan.least_gpus <= plan.gpus


@given(pods(8), nodes(), st.randoms(use_true_random=False))
@example(MANY_PODS, [], Random(0))
def test_the_order_of_the_input_does_not_matter(found: list[Pod], there: list[Node], random: Random) -> None:
    shuffled = [*found, *there]
    random.shuffle(shuffled)
    assert DemandPlanner().plan(a_snapshot(*found, *there, POOL)) == DemandPlanner().plan(a_snapshot(*shuffled, POOL))


@given(pods(8), nodes())
@example(MANY_PODS, [])
def test_what_is_requested_is_not_requested_again(found: list[Pod], there: list[Node]) -> None:
    snapshot = a_snapshot(*found, *there, POOL)
    plan = DemandPlanner().plan(snapshot)
    requested = requests_of(plan.nodes)
    again = DemandPlanner().plan(snapshot, requested)
    check(again, found, free_of(there), requested)
    assert not again.nodes
    assert again.needed == {node.name for node in requested}
    assert refused(again) == refused(plan)


@given(pods(), nodes(), st.data())
def test_nothing_is_requested_while_requested_nodes_register(
    found: list[Pod], there: list[Node], data: st.DataObject
) -> None:
    requested = requests_of(DemandPlanner().plan(a_snapshot(*found, *there, POOL)).nodes)
    come = [node for node in requested if data.draw(st.booleans(), label=f"{node.name} has come")]
    new = [
        a_gpu_node(
            f"new-{node.name}",
            node.kind,
            gpus=node.gpus,
            memory=MEMORY,
            cpu=cpu_of(node.instance_types[0]),
            instance_type=node.instance_types[0],
            more_labels={"karpenter.sh/nodepool": node.node_pool},
        )
        for node in come
    ]
    coming = [node for node in requested if node not in come]
    snapshot = a_snapshot(*found, *there, *new, POOL)
    again = DemandPlanner().plan(snapshot, coming)
    check(again, found, free_of([*there, *new]), coming)
    assert not again.nodes
    assert again.needed == {node.name for node in coming}


@settings(max_examples=15)
@given(pods(8), nodes(), pods(4), st.booleans())
@example(MANY_PODS, [], MANY_PODS[:4], True)
def test_a_planner_with_caches_has_the_same_plan_as_a_new_one(
    found: list[Pod], there: list[Node], more: list[Pod], request: bool
) -> None:
    """Cached results of earlier plans change nothing."""
    planner = DemandPlanner()
    others = [pod.model_copy(update={"uid": f"more-{pod.uid}"}) for pod in more]
    requested: list[RequestedNode] = []
    for given_pods in (found, [*found, *others], found, others):
        snapshot = a_snapshot(*given_pods, *there, POOL)
        plan = planner.plan(snapshot, requested)
        assert plan == DemandPlanner().plan(snapshot, requested)
        check(plan, given_pods, free_of(there), requested)
        if request:
            kept = [node for node in requested if node.name in plan.needed]
            requested = [*kept, *requests_of(plan.nodes, f"round-{len(requested)}")]
