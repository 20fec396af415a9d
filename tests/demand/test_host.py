"""CPU and memory of pods without GPUs: on existing nodes those of their pods, on new nodes those of DaemonSets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pools import DaemonOverhead, PoolProfiles
from plimsoll.model.cluster import IDLE, DaemonSet, Pod
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from tests.builders import a_daemon_set, a_gpu_node, a_node_pool, a_plain_pod, a_snapshot, a_waiting_pod
from tests.demand.plans import only, planned, refused, requests_of

L4 = "g6.xlarge"
"""4 vCPUs"""
L4_LARGE = "g6.2xlarge"
"""8 vCPUs"""
POOL = a_node_pool("pool", (L4, L4_LARGE))
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def share(name: str = "pod", fraction: str = "0.5", **more: Any) -> Pod:
    return a_waiting_pod(name, gpu_fraction=fraction, **more)


def types(plan: DemandPlan) -> list[set[str]]:
    """The instance types that each new node may have."""
    return [{node.instance_type, *node.alternatives} for node in plan.nodes]


def overhead(*objects: Any) -> tuple[int, int, int]:
    """CPU, memory and pods that DaemonSets use of the only shape."""
    (shape,) = PoolProfiles(a_snapshot(*objects)).shapes
    return shape.overhead.cpu_milli, shape.overhead.memory_mib, shape.overhead.pods


def test_pods_without_gpus_reduce_the_room_for_shares() -> None:
    full = [a_plain_pod("batch", cpu="62"), a_plain_pod("more", cpu="1500m")]
    plan = planned(share(cpu="1"), a_gpu_node(), POOL, *full)
    assert not only(plan).on_nodes
    assert types(plan) == [{L4, L4_LARGE}]
    assert only(planned(share(cpu="500m"), a_gpu_node(), POOL, *full)).on_nodes == {"node": ("uid-pod",)}
    memory = a_plain_pod("cache", memory="256Gi")
    assert not only(planned(share(memory="1Gi"), a_gpu_node(), POOL, memory)).on_nodes


def test_incremental_plans_include_added_and_removed_pods_without_gpus() -> None:
    planner = DemandPlanner()
    pod, node = share(cpu="2"), a_gpu_node()
    empty = a_snapshot(pod, node, POOL)
    assert only(planner.plan(empty)).on_nodes
    for plain, room in ((a_plain_pod(cpu="63"), False), (a_plain_pod(cpu="62"), True), (a_plain_pod(cpu="63"), False)):
        loads = a_snapshot(plain).host_loads
        assert bool(only(planner.plan(empty.model_copy(update={"host_loads": loads}))).on_nodes) is room
    agents = (a_daemon_set(cpu="63"),)
    assert not only(planner.plan(empty.model_copy(update={"daemon_sets": agents}))).on_nodes
    assert only(planner.plan(empty)).on_nodes


def test_a_daemon_set_without_a_pod_yet_counts_on_a_node() -> None:
    agent = a_daemon_set("agent", cpu="63")
    came = a_plain_pod("agent-x", cpu="63", daemon_set="agent")
    assert not only(planned(share(cpu="2"), a_gpu_node(), POOL, agent)).on_nodes
    elsewhere = a_daemon_set("elsewhere", cpu="63", selector={"tier": "web"})
    plan = planned(share(cpu="1"), a_gpu_node(), POOL, agent, elsewhere, came)
    assert only(plan).on_nodes, "a pod that is there is not counted twice"


def test_new_nodes_have_room_for_daemon_sets() -> None:
    """Karpenter adds the requests of DaemonSets to those of the trigger pod, so an instance type must be large enough
    for both."""
    assert types(planned(share(cpu="3500m"), POOL)) == [{L4, L4_LARGE}]
    beside = planned(share(cpu="3500m"), POOL, a_daemon_set(cpu="500m"))
    assert types(beside) == [{L4_LARGE}]
    (node,) = beside.nodes
    assert node.cpu_milli == 3500, "a trigger asks for the pods of the plan alone"
    two = [share("a", cpu="1500m"), share("b", cpu="1500m")]
    small = a_node_pool("pool", (L4,))
    assert len(planned(*two, small).nodes) == 1
    assert len(planned(*two, small, a_daemon_set(cpu="1")).nodes) == 2


def test_pods_that_fit_no_node_with_its_daemon_sets_are_refused() -> None:
    plan = planned(share(cpu="3"), a_node_pool("pool", (L4,)), a_daemon_set(cpu="1"))
    assert not plan.nodes
    assert set(refused(plan)) == {"uid-pod"}


def test_limits_of_a_node_pool_count_whole_nodes() -> None:
    """Karpenter counts a node's capacity against a limit, whatever runs there."""
    pool = a_node_pool("pool", (L4,), limits={"cpu": "6"})
    pods = [share("a", "0.9"), share("b", "0.9")]
    agents = a_daemon_set(cpu="2")
    assert len(planned(*pods, pool, agents).nodes) == 1


CAPACITY = {"cpu": "4100m", "memory": "16Gi"}


@pytest.mark.parametrize(
    ("limits", "live", "nodes"),
    [
        ({"cpu": "8"}, None, 2),
        ({"cpu": "7900m"}, None, 1),
        ({"memory": "30310Mi"}, None, 2),
        ({"memory": "30309Mi"}, None, 1),
        ({"cpu": "8200m", "memory": "32Gi"}, CAPACITY, 2),
        ({"cpu": "8100m"}, CAPACITY, 1),
        ({"memory": "31Gi"}, CAPACITY, 1),
    ],
)
def test_limits_of_a_node_pool_count_what_the_system_reserves(
    limits: dict[str, str], live: dict[str, str] | None, nodes: int
) -> None:
    full = a_gpu_node(gpus=0, instance_type=L4, cpu="3", host_memory="12Gi").model_copy(update={"capacity": live})
    there = (full,) if live else ()
    plan = planned(share("a", "0.9"), share("b", "0.9"), a_node_pool("pool", (L4,), limits=limits), *there)
    assert len(plan.nodes) == nodes


@pytest.mark.parametrize(
    ("counted", "daemon_set"),
    [
        pytest.param(True, a_daemon_set(cpu="1", memory="1Gi"), id="everywhere"),
        pytest.param(False, a_daemon_set(cpu="1", tolerations=()), id="the pool's taint is not tolerated"),
        pytest.param(
            True,
            a_daemon_set(cpu="1", memory="1Gi", tolerations=[{"key": "dedicated", "value": "gpu"}]),
            id="it is tolerated by value",
        ),
        pytest.param(False, a_daemon_set(cpu="1", selector={"tier": "web"}), id="another label"),
        pytest.param(True, a_daemon_set(cpu="1", memory="1Gi", selector={"tier": "gpu"}), id="the template's label"),
        pytest.param(False, a_daemon_set(cpu="1", selector={"unknown": "x"}), id="a label that nodes do not have"),
        pytest.param(
            False, a_daemon_set(cpu="1", selector={"kubernetes.io/os": "windows"}), id="another operating system"
        ),
        pytest.param(
            True, a_daemon_set(cpu="1", memory="1Gi", selector={"kubernetes.io/os": "linux"}), id="the usual one"
        ),
        pytest.param(
            True,
            a_daemon_set(cpu="1", memory="1Gi", selector={"nvidia.com/gpu.present": "true"}),
            id="a label that GPU Feature Discovery will write",
        ),
        pytest.param(
            False,
            a_daemon_set(
                cpu="1",
                affinity=[{"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": [L4]}],
            ),
            id="not on this instance type",
        ),
        pytest.param(
            True,
            a_daemon_set(
                cpu="1",
                memory="1Gi",
                affinity=[{"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["fargate"]}],
            ),
            id="not on what these nodes are not",
        ),
        pytest.param(
            True,
            a_daemon_set(cpu="1", memory="1Gi", selector={"beta.kubernetes.io/os": "linux"}),
            id="by the former key of a label",
        ),
        pytest.param(False, a_daemon_set(cpu="1", deleting=True), id="it goes"),
    ],
)
def test_daemon_sets_count_where_their_pods_will_run(counted: bool, daemon_set: DaemonSet) -> None:
    pool = a_node_pool("pool", (L4,), taints=[TAINT], more_labels={"tier": "gpu"})
    assert overhead(pool, daemon_set) == ((1000, 1024, 1) if counted else (0, 0, 0))


def test_startup_taints_do_not_exclude_daemon_sets() -> None:
    pool = a_node_pool("pool", (L4,))
    spec = {**pool.template_spec, "startupTaints": [{"key": "agent.example/not-ready", "effect": "NoExecute"}]}
    pool = pool.model_copy(update={"template_spec": spec})
    assert overhead(pool, a_daemon_set(cpu="1", tolerations=())) == (1000, 0, 1)


def test_daemon_sets_count_once_on_pending_node_claims() -> None:
    """Karpenter includes the requests of DaemonSets in those of its NodeClaim."""
    labels = {"karpenter.sh/nodepool": "pool", "node.kubernetes.io/instance-type": "g6.12xlarge"}
    requests = {"nvidia.com/gpu": "2", "cpu": "21", "memory": "1Gi"}
    claim = NodeClaim.read(
        {"metadata": {"name": "claim", "labels": labels}, "spec": {"resources": {"requests": requests}}}
    )
    pool = a_node_pool("pool", ("g6.12xlarge",))
    agent = a_daemon_set(cpu="20", memory="1Gi")
    (shape,) = PoolProfiles(a_snapshot(pool, agent)).shapes
    left = shape.node_cpu_milli - 21_000
    fits = only(planned(share(cpu=f"{left}m"), claim, pool, agent))
    assert fits.on_nodes == {"claim": ("uid-pod",)}
    assert not only(planned(share(cpu=f"{left + 1}m"), claim, pool, agent)).on_nodes


def test_without_node_pools_daemon_sets_count_on_new_nodes_too() -> None:
    node = a_gpu_node(gpus=1, instance_type=L4, cpu="4").model_copy(update={"unschedulable": True})
    agent, there = a_daemon_set(cpu="1"), a_plain_pod("agent-x", cpu="1", daemon_set="agent")
    assert types(planned(share(cpu="3"), node, agent, there)) == [{L4}]
    assert only(planned(share(cpu="3500m"), node, agent, there)).refused


@pytest.mark.parametrize("pools", [(), (a_node_pool("pool", ("g6.48xlarge",)),)])
def test_a_new_node_is_like_most_of_its_type(pools: tuple[NodePool, ...]) -> None:
    worn = a_gpu_node("a-first", gpus=7, instance_type="g6.48xlarge")
    nodes = [a_gpu_node(f"node-{number}", gpus=8, instance_type="g6.48xlarge") for number in range(2)]
    [shape] = PoolProfiles(a_snapshot(worn, *nodes, *pools)).shapes
    assert shape.gpus == 8
    going = [each.model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"}) for each in nodes]
    [shape] = PoolProfiles(a_snapshot(worn, *going, *pools)).shapes
    assert shape.gpus == (8 if pools else 7), "without NodePools, like one that stays"


def test_devices_of_daemon_sets_are_counted_where_they_run() -> None:
    """A DaemonSet's pod that requests a GPU is observed like other pods, so the DaemonSet does not count in
    addition."""
    agent = a_daemon_set(cpu="63", gpus=1)
    running = a_waiting_pod("agent-x", gpus=1, cpu="63", namespace="kube-system", node="node", phase="Running")
    found = planned(share(cpu="1"), a_gpu_node(gpus=2), running, agent)
    assert only(found).on_nodes == {"node": ("uid-pod",)}


KEYS = ("tier", "nvidia.com/gpu.present", "kubernetes.io/os", "karpenter.sh/nodepool", "topology.kubernetes.io/zone")
VALUES = ("gpu", "web", "true", "linux", "pool", "a")
EXPRESSION = st.builds(
    lambda key, operator, values: {
        "key": key,
        "operator": operator,
        "values": values if operator in ("In", "NotIn") else [],
    },
    st.sampled_from(KEYS),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
)
TOLERATIONS = st.sampled_from(([], [{"operator": "Exists"}], [{"key": "dedicated", "operator": "Exists"}]))


@st.composite
def daemon_sets(draw: st.DrawFn) -> list[DaemonSet]:
    return [
        a_daemon_set(
            f"agent-{number}",
            cpu=draw(st.sampled_from(("", "100m", "1"))),
            memory=draw(st.sampled_from(("", "64Mi"))),
            selector=draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1)),
            affinity=draw(st.lists(EXPRESSION, max_size=2)),
            tolerations=draw(TOLERATIONS),
        )
        for number in range(draw(st.integers(0, 4)))
    ]


@st.composite
def pools(draw: st.DrawFn) -> NodePool:
    taints = [TAINT] if draw(st.booleans()) else []
    labels = {"tier": draw(st.sampled_from(("gpu", "web")))} if draw(st.booleans()) else {}
    return a_node_pool("pool", (L4,), taints=taints, more_labels=labels)


@given(daemon_sets(), pools(), st.sampled_from(("a", "b")))
def test_daemon_sets_on_a_new_node_were_counted_before(sets: list[DaemonSet], pool: NodePool, zone: str) -> None:
    (shape,) = PoolProfiles(a_snapshot(pool, *sets)).shapes
    came = {
        **shape.labels,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": zone,
        "nvidia.com/gpu.present": "true",
    }
    node = a_gpu_node(more_labels=came).model_copy(update={"taints": shape.taints})
    runs = DaemonOverhead(sets).missing_from(node, IDLE)
    assert runs.daemon_sets <= shape.overhead.daemon_sets
    assert runs.cpu_milli <= shape.overhead.cpu_milli
    assert runs.pods <= shape.overhead.pods


@given(daemon_sets(), pools(), st.lists(st.integers(100, 3900), min_size=1, max_size=8), st.randoms())
def test_new_nodes_are_not_planned_fuller_than_they_can_be(
    sets: list[DaemonSet], pool: NodePool, cpus: list[int], random: Any
) -> None:
    pods = [
        share(f"pod-{number}", "0.1", cpu=f"{cpu}m", tolerations=[{"operator": "Exists"}])
        for number, cpu in enumerate(cpus)
    ]
    snapshot = a_snapshot(*pods, pool, *sets)
    (shape,) = PoolProfiles(snapshot).shapes
    (bare,) = PoolProfiles(a_snapshot(pool)).shapes
    assert shape.node_cpu_milli == bare.cpu_milli or shape.cpu_milli == 0
    plan = planned(*pods, pool, *sets)
    for node in plan.nodes:
        assert node.cpu_milli + shape.overhead.cpu_milli <= bare.cpu_milli
    assert {uid for node in plan.nodes for uid in node.pods} | set(refused(plan)) == {pod.uid for pod in pods}
    random.shuffle(sets)
    assert planned(*pods, pool, *sets).nodes == plan.nodes


A100 = "p4d.24xlarge"
"""8 GPUs"""
EIGHT = a_node_pool("pool", (A100,))
ROOMY = {"nvidia.com/gpu": "8", "cpu": "96", "memory": "1000Gi"}


def small_shares(count: int) -> list[Pod]:
    return [share(f"pod-{number:03}", "0.05") for number in range(count)]


@pytest.mark.parametrize(
    ("shares", "objects", "nodes"),
    [
        pytest.param(104, (), 1, id="110, with a reservation for each of 6 GPUs"),
        pytest.param(105, (), 2, id="one more"),
        pytest.param(104, (a_daemon_set(),), 2, id="a DaemonSet that asks for nothing is a pod"),
        pytest.param(103, (a_daemon_set(),), 1, id="one less"),
        pytest.param(
            160,
            (
                a_gpu_node("like", gpus=8, instance_type=A100, taints=["away"]).model_copy(
                    update={"allocatable": ROOMY | {"pods": "250"}}
                ),
            ),
            1,
            id="as nodes of the type say",
        ),
    ],
)
def test_a_new_node_gets_at_most_its_maximum_of_pods(shares: int, objects: tuple[Any, ...], nodes: int) -> None:
    plan = planned(*small_shares(shares), EIGHT, *objects)
    assert len(plan.nodes) == nodes
    assert not refused(plan)


def test_an_existing_node_gets_at_most_its_maximum_of_pods() -> None:
    node = a_gpu_node("node", gpus=8)
    node = node.model_copy(update={"allocatable": ROOMY | {"pods": "16"}})
    plain = [a_plain_pod(f"plain-{number}", cpu="1m") for number in range(3)]
    found = only(planned(*small_shares(20), node, *plain, EIGHT))
    assert len(found.on_nodes["node"]) == 12, "16 less 3 that run and the reservation of one GPU"
    full = [a_plain_pod(f"plain-{number}") for number in range(16)]
    assert not only(planned(*small_shares(1), node, *full, EIGHT)).on_nodes


def test_requested_nodes_hold_their_planned_pods() -> None:
    """The same pods request nothing more, and a registered node gets as many pods as were planned."""
    first = planned(*small_shares(130), EIGHT)
    requested = requests_of(first.nodes)
    assert len(requested) == 2
    again = planned(*small_shares(130), EIGHT, requested=requested)
    assert not again.nodes
    assert again.needed == {each.name for each in requested}
    labels = {"karpenter.sh/nodepool": "pool"}
    came = a_gpu_node("came", first.nodes[0].kind, gpus=8, instance_type=A100, more_labels=labels)
    came = came.model_copy(update={"allocatable": ROOMY | {"pods": "110"}})
    later = planned(*small_shares(130), EIGHT, came, requested=requested[1:])
    assert not later.nodes
    assert later.needed == {requested[1].name}
    assert len(only(later).on_nodes["came"]) <= 104


def test_a_pending_node_claim_has_a_maximum_of_pods_too() -> None:
    labels = {"karpenter.sh/nodepool": "pool", "node.kubernetes.io/instance-type": A100}
    requests = {"nvidia.com/gpu": "1", "pods": "92"}
    claim = NodeClaim.read(
        {"metadata": {"name": "claim", "labels": labels}, "spec": {"resources": {"requests": requests}}}
    )
    found = only(planned(*small_shares(20), claim, EIGHT))
    assert len(found.on_nodes["claim"]) == 17, "110 less 92 and one reservation"


def test_two_classes_do_not_use_the_same_room_for_pods() -> None:
    node = a_gpu_node("node", gpus=8).model_copy(update={"allocatable": ROOMY | {"pods": "7"}})
    pods = [share(f"{queue}-{number}", "0.05", queue=queue) for queue in "ab" for number in range(4)]
    found = planned(*pods, node, EIGHT)
    assert sum(len(each.on_nodes.get("node", ())) for each in found.demands) == 6


def test_incremental_plans_count_the_pods_of_a_node() -> None:
    planner = DemandPlanner()
    node = a_gpu_node("node", gpus=8).model_copy(update={"allocatable": ROOMY | {"pods": "13"}})
    for count in (100, 116, 117, 220, 221, 140):
        plan = planner.plan(a_snapshot(*small_shares(count), node, EIGHT))
        assert len(only(plan).on_nodes["node"]) == 12
        assert all(len(new.pods) <= 104 for new in plan.nodes)
        assert not refused(plan)
        assert len(plan.nodes) == -(-(count - 12) // 104)
