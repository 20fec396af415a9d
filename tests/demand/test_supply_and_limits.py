"""What serves demand: free parts of GPUs, pending NodeClaims, and NodePools with their limits, taints and weights."""

from typing import Any

import pytest

from plimsoll.labels import WORKSPACE
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import Condition
from tests.builders import a_gpu_node, a_node_pool, a_waiting_pod
from tests.demand.plans import on_nodes, only, planned, refused, types

L4 = "g6.xlarge"
L4_4 = "g6.12xlarge"
A100 = "p4d.24xlarge"
POOL = a_node_pool("pool", (L4, L4_4))


def share(name: str = "pod", fraction: str = "0.5", **more: Any) -> Pod:
    return a_waiting_pod(name, gpu_fraction=fraction, **more)


def a_karpenter_claim(instance_type: str, gpus: int, node: str = "") -> NodeClaim:
    return NodeClaim.read(
        {
            "metadata": {
                "name": "claim",
                "labels": {"karpenter.sh/nodepool": "pool", "node.kubernetes.io/instance-type": instance_type},
            },
            "spec": {"resources": {"requests": {"nvidia.com/gpu": str(gpus), "cpu": "1"}}},
            "status": {"nodeName": node},
        }
    )


def test_free_gpus_come_before_new_ones() -> None:
    plan = planned(share("a"), share("b"), share("c"), a_gpu_node(), POOL)
    assert len(only(plan).on_nodes["node"]) == 2
    assert types(plan) == [L4]


@pytest.mark.parametrize("kind", ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"])
@pytest.mark.parametrize(("status", "free"), [("True", False), ("Unknown", False), ("False", True)])
def test_a_node_under_pressure_is_no_supply(kind: str, status: str, free: bool) -> None:
    node = a_gpu_node()
    node = node.model_copy(update={"conditions": (*(node.conditions or ()), Condition(type=kind, status=status))})
    assert bool(on_nodes(planned(share(), node, POOL))) is free


def test_the_free_part_of_a_gpu_in_use_is_used() -> None:
    group = {"runai-gpu-group": "g"}
    reservation = a_waiting_pod("r", namespace="kai-resource-reservation", gpus=1, node="node", more_labels=group)
    running = share("running", "0.6", node="node", phase="Running", more_labels=group)
    waiting = [share("fits", "0.4"), share("does-not", "0.5")]
    plan = planned(*waiting, running, reservation, a_gpu_node(), POOL)
    assert only(plan).on_nodes == {"node": ("uid-fits",)}
    assert [node.pods for node in plan.nodes] == [("uid-does-not",)]


def test_two_classes_do_not_use_the_same_free_gpu() -> None:
    plan = planned(share("a", "0.8", queue="a"), share("b", "0.8", queue="b"), a_gpu_node(), POOL)
    assert sorted(len(each.on_nodes) for each in plan.demands) == [0, 1]
    assert types(plan) == [L4]


@pytest.mark.parametrize("product", ["NVIDIA-A10G", "NVIDIA-L4"])
def test_pods_with_alternatives_leave_a_gpu_to_pods_without(product: str) -> None:
    nodes = [a_gpu_node("a", "NVIDIA-A10G"), a_gpu_node("z", "NVIDIA-L4")]
    choosy = share("choosy", "0.5", selector={"nvidia.com/gpu.product": product})
    plan = planned(choosy, share("anywhere", "0.7"), POOL, *nodes)
    assert not plan.nodes
    assert len(on_nodes(plan)) == 2


def test_tainted_and_unselected_nodes_are_not_used() -> None:
    nodes = [a_gpu_node("tainted", taints=["dedicated"]), a_gpu_node("other", more_labels={"rack": "b"})]
    demand = only(planned(share(selector={"rack": "a"}), *nodes, a_node_pool("pool", (L4,))))
    assert not demand.on_nodes
    assert "rack=a" in str(demand.refused["uid-pod"])
    tolerant = share(tolerations=[{"key": "dedicated", "operator": "Exists"}], selector={"rack": "b"})
    assert only(planned(tolerant, *nodes)).on_nodes == {"other": ("uid-pod",)}


def test_free_whole_gpus_go_to_pods_that_request_whole_gpus() -> None:
    assert types(planned(share("a"), a_waiting_pod("whole", gpus=1), a_gpu_node(), POOL)) == [L4]


def test_free_resources_of_a_pending_node_claim_are_supply() -> None:
    claim = a_karpenter_claim(L4_4, gpus=3)
    assert only(planned(share(), claim, POOL)).on_nodes == {"claim": ("uid-pod",)}
    assert planned(share(), claim, POOL, failed_claims=["claim"]).nodes
    assert planned(share(), a_karpenter_claim(L4_4, gpus=4), POOL).nodes
    there = a_gpu_node("there", gpus=4, instance_type=L4_4)
    full = a_waiting_pod("full", gpus=4, node="there")
    assert types(planned(share(), a_karpenter_claim(L4_4, 3, "there"), there, full, POOL)) == [L4]


def test_a_node_pool_without_room_under_its_limits_is_not_used() -> None:
    pool = a_node_pool("pool", (L4, L4_4), limits={"nvidia.com/gpu": 3}, used={"nvidia.com/gpu": 1})
    plan = planned(*(share(f"pod-{number}", "0.9") for number in range(4)), pool)
    assert types(plan) == [L4, L4]
    assert len(refused(plan)) == 2
    assert "limits.nvidia.com/gpu of NodePool pool is 3" in next(iter(refused(plan).values()))


def test_the_node_pool_with_the_higher_weight_is_used_first() -> None:
    heavy = a_node_pool("heavy", (L4,), weight=10, limits={"nodes": 1})
    plan = planned(share("a", "0.9"), share("b", "0.9"), heavy, a_node_pool("light", (L4,)))
    assert sorted(node.node_pool for node in plan.nodes) == ["heavy", "light"]


def test_blocked_types_are_the_reason_before_others() -> None:
    """Not the selector, because of NodePools that serve others, and not the size of the pod, because of full nodes."""
    pod = share(selector={"karpenter.sh/nodepool": "pool"})
    blocked = [(L4, "pool"), (L4_4, "pool")]
    there = a_gpu_node("there", more_labels={"karpenter.sh/nodepool": "pool"})
    holds = share("holds", "0.9", node="there", phase="Running")
    for more in ([], [a_node_pool("other", (L4,))], [there, holds]):
        assert "recently failed to launch" in refused(planned(pod, POOL, *more, blocked=blocked))["uid-pod"]


def test_a_blocked_type_is_the_reason_if_only_it_is_large_enough() -> None:
    """By GPU memory, by the GPUs of one node, or by the node's memory."""
    pool = a_node_pool("pool", (L4, "p4de.24xlarge"))
    large: tuple[dict[str, Any], ...] = (
        {"gpu_memory": "60000"},
        {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "8"},
    )
    for pod in (*(a_waiting_pod(**each) for each in large), share(memory="900Gi")):
        assert types(planned(pod, pool)) == ["p4de.24xlarge"]
        plan = planned(pod, pool, blocked=[("p4de.24xlarge", "pool")])
        assert "recently failed to launch" in refused(plan)["uid-pod"]
    for pod in (share(memory="9000Gi"), a_waiting_pod(gpu_memory="200000")):
        plan = planned(pod, pool, blocked=[("p4de.24xlarge", "pool")])
        assert "failed to launch" not in refused(plan)["uid-pod"]


def test_taints_of_a_pool_are_reported() -> None:
    pool = a_node_pool("pool", (L4,), taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    assert "dedicated:NoSchedule" in refused(planned(share(), pool))["uid-pod"]
    assert types(planned(share(tolerations=[{"key": "dedicated", "operator": "Exists"}]), pool)) == [L4]


def test_taints_are_the_reason_if_only_they_exclude_the_selected_node_pool() -> None:
    tainted = a_node_pool("large", (A100,), taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    selecting = share(selector={"node.kubernetes.io/instance-type": A100})
    assert "(dedicated:NoSchedule): add tolerations" in refused(planned(selecting, tainted, POOL))["uid-pod"]


def test_shares_in_mib_are_parts_of_the_memory_that_live_nodes_report() -> None:
    pods = [a_waiting_pod(f"pod-{n}", gpu_memory="11600") for n in range(2)]
    pool = a_node_pool("pool", (L4,))
    assert len(planned(*pods, pool).nodes) == 2  # 24576 MiB by the catalog, of which an L4 reports 23034
    for message, nodes in ((23034, 2), (23300, 1)):
        live = a_gpu_node("live", "NVIDIA-L4", memory=message, instance_type=L4, taints=["full"])
        assert len(planned(*pods, live, pool).nodes) == nodes
    assert "99999 MiB" in refused(planned(a_waiting_pod(gpu_memory="99999"), POOL))["uid-pod"]


def test_cpu_of_the_node_counts() -> None:
    pods = [share(f"pod-{n}", "0.1", cpu="3") for n in range(4)]
    assert planned(*pods, a_node_pool("pool", (L4,))).gpus == 4


def test_node_affinity_to_instance_types_is_respected() -> None:
    key = "node.kubernetes.io/instance-type"
    pod = share(affinity=[{"key": key, "operator": "NotIn", "values": [L4]}])
    assert types(planned(pod, POOL)) == [L4_4]


def test_without_node_pools_new_nodes_are_like_existing_ones() -> None:
    full = [a_gpu_node("full", instance_type="own-type", gpus=2), a_waiting_pod("all", gpus=2, node="full")]
    assert [(node.instance_type, node.node_pool) for node in planned(share(), *full).nodes] == [("own-type", "")]
    assert "NodePool" in refused(planned(share()))["uid-pod"]


ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(("zone", "found"), [("a", ["own-type"]), ("b", ["own-type"]), ("c", [])])
def test_without_node_pools_new_nodes_may_be_in_each_zone_of_existing_ones(zone: str, found: list[str]) -> None:
    nodes = [a_gpu_node(name, instance_type="own-type", more_labels={ZONE: name}) for name in ("a", "b")]
    full = [a_waiting_pod(f"all-{node.name}", gpus=1, node=node.name) for node in nodes]
    assert types(planned(share(selector={ZONE: zone}), *nodes, *full)) == found


@pytest.mark.parametrize(
    ("taint", "found"),
    [
        ("ToBeDeletedByClusterAutoscaler", ["own-type"]),
        ("startup-taint.cluster-autoscaler.kubernetes.io/driver", ["own-type"]),
        ("node.cloudprovider.kubernetes.io/uninitialized", ["own-type"]),
        ("node.kubernetes.io/unschedulable", ["own-type"]),
        ("team", []),
    ],
)
def test_without_node_pools_new_nodes_have_no_taint_of_a_moment(taint: str, found: list[str]) -> None:
    assert types(planned(share(), a_gpu_node(instance_type="own-type", taints=[taint]))) == found


def test_alternative_types_fit_the_same_pods() -> None:
    pool = a_node_pool("pool", (L4, "g6.2xlarge", "g5.xlarge", L4_4))
    (node,) = planned(share(cpu="3500m"), pool).nodes
    assert node.instance_type in {L4, "g5.xlarge", "g6.2xlarge"}
    assert set(node.alternatives) == {L4, "g5.xlarge", "g6.2xlarge"} - {node.instance_type}
    (large,) = planned(share(cpu="6"), pool).nodes
    assert (large.instance_type, large.alternatives) == ("g6.2xlarge", ())


def test_pods_of_plimsoll_and_of_kai_are_not_demand() -> None:
    ours = share("ours", namespace="plimsoll-triggers")
    workspace = share("workspace", more_labels={"plimsoll.dev/workspace": "ws"})
    scaling = a_waiting_pod("scaling", gpus=1, namespace="kai-scale-adjust", scheduler="default-scheduler")
    assert planned(ours, workspace, scaling, POOL).demands == ()


def test_a_registered_node_serves_any_demand() -> None:
    """Schedulers do not know for which demand a node was requested."""
    pods = [share("a", "0.6", queue="a"), share("b", "0.6", queue="b")]
    assert types(planned(*pods, a_gpu_node(), POOL)) == [L4]
    for pod in pods:
        plan = planned(pod, a_gpu_node(), POOL)
        assert (on_nodes(plan), plan.nodes) == ({pod.uid: "node"}, ())


WITHOUT_TYPE = a_gpu_node("node", more_labels={"rack": "a"})
"""A node like which no other can be requested, because its instance type is not known."""
LIKE_IT = {"rack": "a"}


def filling(fraction: str = "0.9") -> Pod:
    return share("filling", fraction, node="node", phase="Running")


def test_a_cluster_without_node_pools_is_the_reason_where_no_node_takes_a_pod() -> None:
    for nodes in ([], [WITHOUT_TYPE], [WITHOUT_TYPE, filling()]):
        plan = planned(share(memory="9000Gi"), *nodes)
        assert "there is no NodePool" in refused(plan)["uid-pod"]
        assert "declare a NodePool" in refused(plan)["uid-pod"]


def test_a_pod_that_is_too_large_for_nodes_like_the_existing_ones_is_told_of_the_missing_node_pool() -> None:
    node = a_gpu_node("node", instance_type=L4)
    assert types(planned(share(), node, filling())) == [L4]
    why = refused(planned(share(memory="9000Gi"), node))["uid-pod"]
    assert "there is no NodePool" in why
    assert "a NodePool offers" not in why


@pytest.mark.parametrize(
    ("pools", "problem"),
    [
        ([], "there is no NodePool"),
        ([POOL], "no NodePool fits its node selector and affinity: it requires rack=a"),
        (
            [a_node_pool("pool", (L4,), more_labels=LIKE_IT, taints=[{"key": "x", "effect": "NoSchedule"}])],
            "it tolerates the taints of no NodePool that fits its node selector and affinity (x:NoSchedule)",
        ),
    ],
)
def test_full_nodes_that_fit_a_pod_are_distinguished_from_none_that_fit(pools: list[Any], problem: str) -> None:
    """With the reason why no new one can be requested; full of shares, of whole GPUs, or of pods that come first."""
    first = share("first", "0.6", priority=1, selector=LIKE_IT)
    whole = a_waiting_pod("whole", gpus=1, node="node", phase="Running")
    cordoned = WITHOUT_TYPE.model_copy(update={"unschedulable": True})
    of_a_workspace = WITHOUT_TYPE.model_copy(update={"labels": {**WITHOUT_TYPE.labels, WORKSPACE: "ws"}})
    for others, fits in (
        ([WITHOUT_TYPE, filling()], True),
        ([WITHOUT_TYPE, whole], True),
        ([WITHOUT_TYPE, first], True),
        ([cordoned], False),
        ([of_a_workspace], False),
        ([a_gpu_node("elsewhere", more_labels={"rack": "b"})], False),
    ):
        why = refused(planned(share(selector=LIKE_IT), *others, *pools))["uid-pod"]
        assert ("no node that it may run on has room for it" in why, problem in why) == (fits, True)


def test_a_limit_is_the_reason_before_types_that_are_skipped() -> None:
    """Not every type that could serve the pod failed to launch."""
    limited = a_node_pool("limited", (L4,), limits={"nodes": 0})
    why = refused(planned(share(), limited, POOL, blocked=[(L4, "pool"), (L4_4, "pool")]))["uid-pod"]
    assert "limits.nodes of NodePool limited is 0" in why


def test_only_usable_nodes_with_whole_gpus_that_are_free_are_supply() -> None:
    nodes = [
        a_gpu_node("busy"),
        a_gpu_node("cordoned").model_copy(update={"unschedulable": True}),
        a_gpu_node("free"),
        a_gpu_node("nameless", product=""),
        a_gpu_node("shared", more_labels={"nvidia.com/gpu.replicas": "2"}),
    ]
    shares = [a_waiting_pod(f"share-{number}", gpu_fraction="0.9") for number in range(3)]
    plan = planned(a_waiting_pod("whole", gpus=1, node="busy"), *nodes, *shares)
    assert set(on_nodes(plan).values()) == {"free"}
