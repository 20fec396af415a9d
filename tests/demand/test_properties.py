"""What every plan of demand keeps, whatever the cluster holds."""

from collections import Counter
from collections.abc import Iterable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.cluster import Node, Pod
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.demand import Demand, DemandPlanner, Promise, demands
from plimsoll.plan.requests import NodeRequest
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod

TYPES = {"g6.xlarge": 1, "g6.12xlarge": 4, "g5.xlarge": 1, "g5.48xlarge": 8}
PRODUCTS = ("NVIDIA-L4", "NVIDIA-A10G")
MEMORY = 23028
"""MiB that both report, but for six of the L4."""
POOL = a_node_pool("pool", TYPES)


@st.composite
def pods(draw: st.DrawFn, most: int = 14) -> list[Pod]:
    found = []
    for number in range(draw(st.integers(0, most))):
        asked = draw(
            st.sampled_from([{"gpu_fraction": f"0.{n}"} for n in (1, 2, 25, 3, 4, 5, 6, 7, 9)])
            | st.sampled_from([{"gpu_memory": "2000"}, {"gpu_memory": "13000"}])
        )
        devices = draw(st.sampled_from(["1", "1", "1", "2", "4"]))
        product = draw(st.sampled_from([None, *PRODUCTS]))
        found.append(
            a_waiting_pod(
                f"pod-{number:02}",
                selector={"nvidia.com/gpu.product": product} if product else None,
                queue=draw(st.sampled_from(["", "team-a"])),
                cpu=draw(st.sampled_from(["", "500m", "3"])),
                more_labels=draw(st.sampled_from([None, None, {"jobset.sigs.k8s.io/jobset-name": "set"}])),
                **asked,
                gpu_fraction_num_devices=devices,
            )
        )
    return found


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    return [
        a_gpu_node(f"node-{number}", draw(st.sampled_from(PRODUCTS)), gpus=draw(st.integers(1, 4)), memory=MEMORY)
        for number in range(draw(st.integers(0, 3)))
    ]


def milli_of(pod: Pod) -> int:
    fraction = pod.annotations.get("gpu-fraction")
    return round(float(fraction) * 1000) if fraction else -(-int(pod.annotations["gpu-memory"]) * 1000 // MEMORY)


def promises_of(found: Iterable[Demand]) -> list[Promise]:
    """What a provisioner asks for."""
    return [
        NodeRequest.of(node).requested_node(f"{demand.name}-{number}", demand.name)
        for demand in found
        for number, node in enumerate(demand.nodes)
    ]


def places(demand: Demand) -> Counter[str]:
    """How often each pod stands somewhere."""
    lists = [node.pods for node in demand.nodes] + [*demand.on_nodes.values(), *demand.on_promises.values()]
    return Counter(uid for uids in lists for uid in uids)


def check(found: Iterable[Demand], given_pods: Iterable[Pod], free: Mapping[str, int]) -> None:
    by_uid = {pod.uid: pod for pod in given_pods}
    on_nodes: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for demand in found:
        seen.update(demand.pods.keys())
        placed = places(demand)
        assert set(placed) | set(demand.refused) == set(demand.pods)
        assert not set(placed) & set(demand.refused)
        assert set(placed.values()) <= {1}
        assert demand.packing.least <= demand.packing.gpus
        for pod in (by_uid[uid] for uid in demand.pods):
            assert DemandClass(pod.placement, demand.of.queue, pod.scheduler_name) == demand.of
        for node in demand.nodes:
            assert node.gpus == TYPES[node.instance_type]
            assert 0 < len(node.held) <= node.gpus
            for held in node.held:
                assert sum(milli_of(by_uid[uid]) for uid in held) <= 1000
            counted = Counter(uid for held in node.held for uid in held)
            for uid in node.pods:
                assert counted[uid] == int(by_uid[uid].annotations["gpu-fraction-num-devices"])
                wanted = dict(by_uid[uid].placement.node_selector).get("nvidia.com/gpu.product")
                assert wanted is None or wanted.endswith(node.kind.split()[-1].split("-")[-1])
        for name, uids in demand.on_nodes.items():
            on_nodes[name] += sum(
                milli_of(by_uid[uid]) * int(by_uid[uid].annotations["gpu-fraction-num-devices"]) for uid in uids
            )
    assert seen == Counter(dict.fromkeys(by_uid, 1))
    for name, milli in on_nodes.items():
        assert milli <= free[name]


@settings(max_examples=60, deadline=None)
@given(pods(), nodes())
def test_every_pod_has_one_place_or_a_reason_and_no_gpu_is_over_full(found: list[Pod], there: list[Node]) -> None:
    planned = demands(a_snapshot(*found, *there, POOL))
    check(planned, found, {node.name: 1000 * int(node.allocatable["nvidia.com/gpu"]) for node in there})


@settings(max_examples=40, deadline=None)
@given(pods(), nodes(), st.randoms(use_true_random=False))
def test_order_does_not_matter(found: list[Pod], there: list[Node], random: st.DataObject) -> None:
    shuffled = [*found, *there]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    planned = demands(a_snapshot(*found, *there, POOL))
    again = demands(a_snapshot(*shuffled, POOL))
    assert planned == again


@settings(max_examples=60, deadline=None)
@given(pods(), nodes())
def test_what_is_promised_is_not_asked_for_again(found: list[Pod], there: list[Node]) -> None:
    snapshot = a_snapshot(*found, *there, POOL)
    planned = demands(snapshot)
    promises = promises_of(planned)
    again = demands(snapshot, promises)
    assert not [node for demand in again for node in demand.nodes]
    assert {name for demand in again for name in demand.on_promises} == {promise.name for promise in promises}
    # Not where each is: what is promised is filled first where classes want the same existing GPUs.
    for first, second in zip(planned, again, strict=True):
        assert (first.refused, places(first)) == (second.refused, places(second))


@settings(max_examples=60, deadline=None)
@given(pods(), nodes(), st.data())
def test_nothing_is_asked_for_while_its_nodes_come(found: list[Pod], there: list[Node], data: st.DataObject) -> None:
    planner = DemandPlanner()
    promises = promises_of(planner.demands(a_snapshot(*found, *there, POOL)))
    come = [promise for promise in promises if data.draw(st.booleans(), label=f"{promise.name} has come")]
    new = [
        a_gpu_node(
            f"new-{promise.name}",
            promise.kind,
            gpus=promise.gpus,
            memory=MEMORY,
            instance_type=promise.instance_types[0],
            more_labels={"karpenter.sh/nodepool": promise.node_pool},
        )
        for promise in come
    ]
    coming = [promise for promise in promises if promise not in come]
    came = {f"new-{promise.name}": promise.demand for promise in come}
    snapshot = a_snapshot(*found, *there, *new, POOL)
    again = planner.demands(snapshot, coming, came=came)
    assert not [node for demand in again for node in demand.nodes]
    used = {name for demand in again for name in (*demand.on_nodes, *demand.on_promises)}
    assert used >= {*came, *(promise.name for promise in coming)}
    assert not [node for demand in demands(snapshot, coming, came=came) for node in demand.nodes]


@settings(max_examples=25, deadline=None)
@given(pods(), nodes(), pods(4))
def test_a_planner_that_remembers_refuses_whom_a_new_one_does_and_asks_for_no_more_again(
    found: list[Pod], there: list[Node], more: list[Pod]
) -> None:
    planner = DemandPlanner()
    free = {node.name: 1000 * int(node.allocatable["nvidia.com/gpu"]) for node in there}
    others = [pod.model_copy(update={"uid": f"more-{pod.uid}"}) for pod in more]
    for given_pods in (found, [*found, *others], found, others):
        snapshot = a_snapshot(*given_pods, *there, POOL)
        remembered, anew = planner.demands(snapshot), demands(snapshot)
        check(remembered, given_pods, free)
        assert {uid for each in remembered for uid in each.refused} == {uid for each in anew for uid in each.refused}
        for each in remembered:
            assert each.packing.least <= each.packing.gpus
        again = planner.demands(snapshot)
        check(again, given_pods, free)
        assert sum(each.gpus for each in again) <= sum(each.gpus for each in remembered)
