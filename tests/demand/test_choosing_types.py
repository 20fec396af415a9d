"""The choice of instance types: preferences of pods first, then the fewest GPUs, then the price; surplus GPUs are
limited."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.labels import NODEPOOL
from plimsoll.model.cluster import Pod
from tests.builders import a_gpu_node, a_node, a_node_pool, a_waiting_pod, an_environment
from tests.demand.plans import on_new, on_nodes, only, planned, refused, requests_of, types

TYPE = "node.kubernetes.io/instance-type"
L4, L4_4, A10G, A100 = "g6.xlarge", "g6.12xlarge", "g5.xlarge", "p4d.24xlarge"
L4_8 = "g6.48xlarge"


def preferring(name: str, *weighted: tuple[int, str], fraction: str = "0.5", devices: int = 1) -> Pod:
    """A pod that prefers instance types with these weights."""
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": TYPE, "operator": "In", "values": [each]}]}}
        for weight, each in weighted
    ]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "annotations": {
                "gpu-fraction": fraction,
                **({"gpu-fraction-num-devices": str(devices)} if devices > 1 else {}),
            },
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}},
            "containers": [{"name": "main"}],
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }
    return Pod.read(manifest)


POOL = a_node_pool("pool", (L4, A10G, A100))


def test_the_preferred_type_with_the_highest_weight_is_chosen() -> None:
    assert types(planned(preferring("pod", (10, A10G), (20, A100)), POOL)) == [A100]
    assert types(planned(preferring("pod", (20, A10G), (10, A100)), POOL)) == [A10G]


def test_a_preference_excludes_no_type() -> None:
    pod = preferring("pod", (20, "no-such-type"), (10, A10G))
    assert types(planned(pod, POOL)) == [A10G]
    assert types(planned(pod, POOL, blocked=[(A10G, "pool")])) == [L4]
    assert types(planned(pod, a_node_pool("pool", (L4,)))) == [L4]


def test_the_next_type_serves_pods_beyond_the_limit_of_the_first() -> None:
    pods = [preferring(f"pod-{n}", (10, A10G), fraction="0.9") for n in range(3)]
    first = a_node_pool("first", (A10G,), limits={"nvidia.com/gpu": 1})
    assert types(planned(*pods, first, a_node_pool("second", (L4,)))) == [A10G, L4, L4]


def test_free_and_requested_nodes_come_before_preferred_ones() -> None:
    pod = preferring("pod", (10, A10G))
    there = a_gpu_node("there", "NVIDIA-L4", gpus=1)
    assert on_nodes(planned(pod, there, POOL)) == {"uid-pod": "there"}
    requested = requests_of(planned(a_waiting_pod("other", gpu_fraction="0.1", selector={TYPE: L4}), POOL).nodes)
    plan = planned(pod, POOL, requested=requested)
    assert (plan.nodes, plan.needed) == ((), frozenset({requested[0].name}))


def test_a_repeated_plan_with_preferences_requests_nothing() -> None:
    pods = [preferring(f"pod-{n}", (10, A10G), (20, A100), fraction="0.7") for n in range(4)]
    plan = planned(*pods, POOL)
    again = planned(*pods, POOL, requested=requests_of(plan.nodes))
    assert not again.nodes
    assert len(again.needed) == len(plan.nodes)


def test_no_node_is_requested_for_pods_that_fit_one_that_others_need() -> None:
    """A preferred type and the weight of a NodePool count only among nodes that nobody else needs."""
    others = a_waiting_pod("others", gpu_fraction="0.5", gpu_fraction_num_devices="3")
    assert types(planned(preferring("pod", (10, A10G)), others, a_node_pool("pool", (A10G, L4_4)))) == [L4_4]
    heavy, light = a_node_pool("heavy", (A10G,), weight=10), a_node_pool("light", (L4_4,))
    assert types(planned(a_waiting_pod("pod", gpu_fraction="0.5"), others, heavy, light)) == [L4_4]
    assert types(planned(a_waiting_pod("pod", gpu_fraction="0.5"), heavy, light)) == [A10G]


@given(
    pods=st.lists(
        st.tuples(
            st.integers(1, 9), st.integers(1, 3), st.lists(st.sampled_from((L4, L4_4, A10G)), max_size=2, unique=True)
        ),
        min_size=2,
        max_size=7,
    ),
    weights=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_a_repeated_plan_withdraws_nothing_whatever_is_preferred(
    pods: list[tuple[int, int, list[str]]], weights: tuple[int, int]
) -> None:
    pools = a_node_pool("one", (L4, A10G), weight=weights[0]), a_node_pool("two", (L4_4,), weight=weights[1])
    waiting = [
        preferring(f"pod-{n}", *enumerate(wanted, 1), fraction=f"0.{size}", devices=devices)
        for n, (size, devices, wanted) in enumerate(pods)
    ]
    plan = planned(*waiting, *pools)
    assert plan.gpus >= plan.least_gpus
    requested = requests_of(plan.nodes)
    again = planned(*waiting, *pools, requested=requested)
    assert not again.nodes
    assert again.needed == {each.name for each in requested}


def test_shares_in_mib_choose_by_gpus_and_then_by_price() -> None:
    """Two shares of 20000 MiB fit one GPU of either type, however much of it is left."""
    small, large = "Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5"
    pool = a_node_pool("pool", (small, large))
    pods = [a_waiting_pod(f"pod-{n}", gpu_memory="20000") for n in range(2)]
    for cheap, dear in ((small, large), (large, small)):
        environment = an_environment(catalog={"prices": {cheap: 3.0, dear: 30.0}})
        assert types(planned(*pods, pool, environment=environment)) == [cheap]


def test_shares_in_mib_choose_by_gpus_and_then_by_gpu_memory_without_prices() -> None:
    """As Workspaces do. Each type has eight GPUs, and takes one to five of the shares on each."""
    types_of_eight = ("p4d.24xlarge", "p4de.24xlarge", "p5e.48xlarge")
    for pods, chosen in ((8, 0), (9, 1), (17, 2)):
        waiting = (a_waiting_pod(f"pod-{n:02}", gpu_memory="28000") for n in range(pods))
        (node,) = planned(*waiting, a_node_pool("pool", types_of_eight)).nodes
        assert node.instance_type == types_of_eight[chosen]
        assert node.alternatives == types_of_eight[chosen + 1 :]


def test_of_equal_types_the_least_cpu_and_memory_that_hold_the_pods_are_chosen() -> None:
    pool = a_node_pool("pool", ("g6.16xlarge", "g6.8xlarge", "g6.xlarge"))
    for cpu, chosen in (("1", "g6.xlarge"), ("20", "g6.8xlarge"), ("40", "g6.16xlarge")):
        assert types(planned(a_waiting_pod("pod", gpu_fraction="0.5", cpu=cpu), pool)) == [chosen]


def test_a_price_of_an_unknown_type_is_a_warning_and_one_of_live_nodes_counts() -> None:
    """Without NodePools the types are those of live nodes."""
    pod = a_waiting_pod(gpu_fraction="0.5")
    full = [a_waiting_pod(f"full-{name}", gpus=1, node=name, reason=None, phase="Running") for name in ("one", "two")]
    nodes = [
        a_gpu_node("one", "NVIDIA-L4", instance_type="own.a"),
        a_gpu_node("two", "NVIDIA-L4", instance_type="own.b"),
    ]
    for cheap, dear in (("own.a", "own.b"), ("own.b", "own.a")):
        environment = an_environment(catalog={"prices": {cheap: 1.0, dear: 2.0, "gone.large": 3.0}})
        plan = planned(pod, *full, *nodes, environment=environment)
        assert types(plan) == [cheap]
        (warning,) = only(plan).warnings
        assert "gone.large" in warning


@pytest.mark.parametrize(("surplus", "bought"), [(0, []), (2, []), (3, [L4_4]), (7, [L4_4])])
def test_surplus_beyond_a_blocked_small_type_is_bounded(surplus: int, bought: list[str]) -> None:
    """Half a GPU does not lead to a node of four GPUs unless `surplusGpus` allows it."""
    environment = an_environment(demand={"surplusGpus": surplus})
    pool = a_node_pool("pool", (L4, L4_4))
    pod = a_waiting_pod(gpu_fraction="0.5")
    plan = planned(pod, pool, blocked=[(L4, "pool")], environment=environment)
    assert types(plan) == bought
    if not bought:
        assert "spec.demand.surplusGpus" in refused(plan)["uid-pod"]


def test_limits_refuse_no_pod_that_fits_a_type_that_it_prefers_less() -> None:
    several = a_waiting_pod("several", priority=10, gpu_fraction="0.1", gpu_fraction_num_devices="2")
    others = [preferring(f"other-{n}", (1, L4), fraction="0.9") for n in range(2)]
    plan = planned(several, *others, a_node_pool("pool", (L4, L4_4), limits={"nvidia.com/gpu": 4}))
    assert (types(plan), refused(plan)) == ([L4_4], {})


@given(
    pods=st.lists(
        st.tuples(st.integers(1, 9), st.lists(st.sampled_from((L4, L4_4, A10G)), unique=True)), min_size=1, max_size=7
    ),
    gpus=st.integers(1, 7),
)
def test_preferences_do_not_change_which_pods_limits_leave_out(pods: list[tuple[int, list[str]]], gpus: int) -> None:
    pool = a_node_pool("pool", (L4, L4_4, A10G), limits={"nvidia.com/gpu": gpus})
    fractions = [(f"pod-{n}", f"0.{size}", tuple(enumerate(wanted, 1))) for n, (size, wanted) in enumerate(pods)]
    plan = planned(*(preferring(name, *weighted, fraction=size) for name, size, weighted in fractions), pool)
    without = planned(*(preferring(name, fraction=size) for name, size, _ in fractions), pool)
    assert set(refused(plan)) == set(refused(without))
    assert plan.gpus <= gpus


def test_only_pods_that_need_the_blocked_type_are_refused_for_surplus() -> None:
    """On one node of four GPUs all would have a place, and without the first the others fit the small type that is
    left."""
    bound = a_waiting_pod("bound", gpu_fraction="0.6", selector={"karpenter.sh/nodepool": "pool"})
    others = [a_waiting_pod(f"other-{n}", gpu_fraction="0.6") for n in range(2)]
    plan = planned(
        bound, *others, a_node_pool("pool", (L4, L4_4)), a_node_pool("small", (A10G,)), blocked=[(L4, "pool")]
    )
    assert (types(plan), set(refused(plan))) == ([A10G, A10G], {"uid-bound"})


def test_pods_that_would_fill_one_larger_node_together_are_no_surplus() -> None:
    """Nine pods on nodes of eight and four GPUs leave some of both unused, eight fill one node or two."""
    pods = [a_waiting_pod(f"pod-{n}", gpu_fraction="0.9", priority=-n) for n in range(9)]
    for others in ((L4_4, L4_8), (L4_8,)):
        plan = planned(*pods, a_node_pool("pool", (L4, *others)), blocked=[(L4, "pool")])
        assert (len(on_new(plan)), set(refused(plan))) == (8, {"uid-pod-8"})


def test_the_same_pods_are_refused_for_surplus_once_the_others_have_a_requested_node() -> None:
    pods = [a_waiting_pod(f"pod-{n}", gpu_fraction="0.6", priority=n) for n in range(6)]
    pool = a_node_pool("pool", (L4, L4_4))
    before = planned(*pods, pool, blocked=[(L4, "pool")])
    after = planned(*pods, pool, blocked=[(L4, "pool")], requested=requests_of(before.nodes))
    assert set(refused(before)) == set(refused(after)) == {"uid-pod-0", "uid-pod-1"}


def test_surplus_is_what_exceeds_the_different_types_that_pods_need() -> None:
    """Each pod of the larger node could use another small type, both of which are skipped."""
    pool, blocked = a_node_pool("pool", (L4, A10G, L4_4)), [(L4, "pool"), (A10G, "pool")]
    pods = [
        a_waiting_pod(small, gpu_fraction="0.5", affinity=[{"key": TYPE, "operator": "In", "values": [small, L4_4]}])
        for small in (L4, A10G)
    ]
    assert types(planned(*pods, pool, blocked=blocked)) == []
    surplus = an_environment(demand={"surplusGpus": 2})
    assert types(planned(*pods, pool, blocked=blocked, environment=surplus)) == [L4_4]


def test_the_smallest_available_type_is_no_surplus() -> None:
    pod = a_waiting_pod(gpu_fraction="0.5")
    assert types(planned(pod, a_node_pool("pool", (A100,)))) == [A100]
    large = a_waiting_pod("large", gpu_fraction="0.5", gpu_fraction_num_devices="4")
    pool = a_node_pool("pool", (L4, L4_4))
    assert types(planned(large, pool, blocked=[(L4, "pool")])) == [L4_4]


def test_pods_that_fill_a_larger_node_are_no_surplus() -> None:
    pods = [a_waiting_pod(f"pod-{n}", gpu_fraction="0.9") for n in range(4)]
    plan = planned(*pods, a_node_pool("pool", (L4, L4_4)), blocked=[(L4, "pool")])
    assert (types(plan), len(on_new(plan))) == ([L4_4], 4)


@pytest.mark.parametrize(("pods", "bought"), [(3, 0), (4, 4), (5, 4), (7, 4), (8, 8), (12, 12)])
def test_surplus_refuses_no_more_pods_than_it_must(pods: int, bought: int) -> None:
    """Each needs a GPU of its own. Nodes of four and of eight GPUs are left, which must be full; the first pods go."""
    several = [a_waiting_pod(f"pod-{n:02}", gpu_fraction="0.9", priority=50 - n) for n in range(pods)]
    plan = planned(*several, a_node_pool("pool", (L4, L4_4, "p4d.24xlarge")), blocked=[(L4, "pool")])
    assert sum(node.gpus for node in plan.nodes) == bought
    assert sorted(refused(plan)) == [f"uid-pod-{n:02}" for n in range(bought, pods)]


HALF = a_waiting_pod("half", gpu_fraction="0.5")


def test_a_skipped_type_that_is_not_what_pods_prefer_refuses_none_for_surplus() -> None:
    """The nodes of a NodePool with a higher weight and those that pods prefer may be larger than the skipped ones."""
    heavy, light, other = (
        a_node_pool("heavy", (A100,), weight=10),
        a_node_pool("light", (L4,)),
        a_node_pool("other", (A10G,)),
    )
    for blocked in ([], [(A10G, "other")], [(L4, "light"), (A10G, "other")]):
        assert types(planned(HALF, heavy, light, other, blocked=blocked)) == [A100]
    pod = preferring("pod", (1, A100))
    assert types(planned(pod, POOL, blocked=[(L4, "pool"), (A10G, "pool")])) == [A100]


def test_a_skipped_small_type_that_pods_prefer_keeps_a_larger_one_from_being_requested() -> None:
    """A type that is small enough is requested instead, although the pods prefer it less."""
    heavy = a_node_pool("heavy", (A10G, A100), weight=10)
    blocked = [(A10G, "heavy")]
    assert set(refused(planned(HALF, heavy, blocked=blocked))) == {"uid-half"}
    assert types(planned(HALF, heavy, a_node_pool("light", (L4,)), blocked=blocked)) == [L4]
    assert set(refused(planned(HALF, heavy, a_node_pool("light", (L4_4,)), blocked=blocked))) == {"uid-half"}
    surplus = an_environment(demand={"surplusGpus": 3})
    plan = planned(HALF, heavy, a_node_pool("light", (L4_4,)), blocked=blocked, environment=surplus)
    assert types(plan) == [L4_4]
    # Without skipped types, the pod would get a node of four GPUs, too.
    heavy, light = a_node_pool("heavy", (L4_4, A100), weight=10), a_node_pool("light", (L4, L4_4))
    assert types(planned(HALF, heavy, light, blocked=[(L4_4, "heavy"), (L4, "light")])) == [L4_4]


def test_pods_beyond_the_limit_of_a_preferred_type_are_compared_with_the_types_after_it() -> None:
    """All of a node is used in the first NodePool; what does not fit would get a node with one GPU in the second."""
    heavy = a_node_pool("heavy", (A100,), weight=10, limits={"nvidia.com/gpu": 8})
    light = a_node_pool("light", (L4, L4_4))
    pods = [a_waiting_pod(f"pod-{n}", gpu_fraction="0.9", priority=-n) for n in range(9)]
    assert types(planned(*pods, heavy, light)) == [L4, A100]
    plan = planned(*pods, heavy, light, blocked=[(L4, "light")])
    assert (types(plan), set(refused(plan))) == ([A100], {"uid-pod-8"})


def test_types_that_limits_exclude_are_no_measure_of_surplus() -> None:
    """Half a GPU gets the smallest type that limits allow, whichever other types are skipped."""
    none = a_node_pool("none", (L4, A10G), limits={"nvidia.com/gpu": 0})
    for blocked in ([(A10G, "none")], [(A10G, "none"), (L4_8, "pool")], [(L4, "none"), (A100, "pool")]):
        assert types(planned(HALF, none, a_node_pool("pool", (L4_4, L4_8, A100)), blocked=blocked)) == [L4_4]


def test_a_gpu_model_of_unknown_speed_is_compared_with_skipped_types_of_known_speed() -> None:
    pod = HALF.model_copy(update={"annotations": {"tensor-fusion.ai/tflops-request": "10"}})
    small = a_gpu_node("small", "NVIDIA-L4", gpus=1, instance_type="own.small")
    large = a_gpu_node("large", "NVIDIA-X", gpus=4, instance_type="own.large")
    full = [
        a_waiting_pod("one", gpus=1, node="small", reason=None, phase="Running"),
        a_waiting_pod("four", gpus=4, node="large", reason=None, phase="Running"),
    ]
    assert types(planned(pod, small, large, *full)) == ["own.small"]
    plan = planned(pod, small, large, *full, blocked=[("own.small", "")])
    assert (types(plan), set(refused(plan))) == ([], {"uid-half"})


PODS = st.lists(
    st.tuples(
        st.integers(1, 9), st.integers(1, 3), st.lists(st.sampled_from((L4, L4_4, A10G)), max_size=2, unique=True)
    ),
    min_size=1,
    max_size=5,
)
WEIGHTS = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))


def waiting(pods: list[tuple[int, int, list[str]]], more_devices: int = 0) -> list[Pod]:
    return [
        preferring(f"pod-{n}", *enumerate(wanted, 1), fraction=f"0.{size}", devices=devices + more_devices)
        for n, (size, devices, wanted) in enumerate(pods)
    ]


@given(pods=PODS, weights=WEIGHTS, gpus=st.integers(0, 12))
def test_skipped_types_that_can_serve_no_pod_change_no_plan(
    pods: list[tuple[int, int, list[str]]], weights: tuple[int, int, int], gpus: int
) -> None:
    pools = (
        a_node_pool("one", (L4, L4_4), weight=weights[0], limits={"nvidia.com/gpu": gpus}),
        a_node_pool("two", (L4_8,), weight=weights[1]),
        a_node_pool("small", (L4, A10G), weight=weights[2]),
    )
    several = waiting(pods, more_devices=1)
    plan = planned(*several, *pools)
    again = planned(*several, *pools, blocked=[(L4, "one"), (L4, "small"), (A10G, "small")])
    assert (types(again), refused(again)) == (types(plan), refused(plan))


@given(
    pods=PODS,
    weights=WEIGHTS,
    skipped=st.sets(st.sampled_from([(L4, "one"), (L4_4, "one"), (A10G, "two"), (L4_4, "two"), (A100, "three")])),
)
def test_skipped_types_that_would_not_be_requested_refuse_no_pod(
    pods: list[tuple[int, int, list[str]]], weights: tuple[int, int, int], skipped: set[tuple[str, str]]
) -> None:
    pools = (
        a_node_pool("one", (L4, L4_4), weight=weights[0]),
        a_node_pool("two", (A10G, L4_4), weight=weights[1]),
        a_node_pool("three", (A100,), weight=weights[2]),
    )
    plan = planned(*waiting(pods), *pools)
    blocked = skipped - {(node.instance_type, node.node_pool) for node in plan.nodes}
    again = planned(*waiting(pods), *pools, blocked=blocked)
    assert (types(again), refused(again)) == (types(plan), refused(plan))


@pytest.mark.parametrize("group", ["karpenter.example.com", ""])
def test_a_node_pool_of_an_unknown_cloud_offers_the_types_of_its_nodes_only(group: str) -> None:
    share, unknown = a_waiting_pod("share", gpu_fraction="0.5"), a_node_pool("gpu", group=group)
    found = planned(share, unknown)
    assert found.nodes == ()
    (warning,) = only(found).warnings
    assert "NodePool gpu" in warning
    assert "instance types of its cloud" in warning
    full = a_gpu_node("n1", instance_type="own.large", taints=["full"], more_labels={NODEPOOL: "gpu"})
    found = planned(share, unknown, full)
    assert types(found) == ["own.large"]
    assert only(found).warnings == ()
    cpu = a_node("n2", product=None, count=None, memory=None, instance_type="n2", more_labels={NODEPOOL: "gpu"})
    assert only(planned(share, unknown, cpu)).warnings == (), "a NodePool for CPU nodes"


def test_the_kwok_provider_offers_the_types_of_every_cloud() -> None:
    assert planned(a_waiting_pod("share", gpu_fraction="0.5"), a_node_pool("gpu", group="karpenter.kwok.sh")).nodes
