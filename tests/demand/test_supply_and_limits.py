"""What demand is met with: free parts of GPUs, claims on their way, NodePools with their limits, taints and weights."""

from typing import Any

import pytest

from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.demand import Demand, demands
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod

L4 = "g6.xlarge"
L4_4 = "g6.12xlarge"
A100 = "p4d.24xlarge"
POOL = a_node_pool("pool", (L4, L4_4))


def share(name: str = "pod", fraction: str = "0.5", **more: Any) -> Pod:
    return a_waiting_pod(name, gpu_fraction=fraction, **more)


def only(found: tuple[Demand, ...]) -> Demand:
    (demand,) = found
    return demand


def types(*found: Demand) -> list[str]:
    return [node.instance_type for demand in found for node in demand.nodes]


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
    demand = only(demands(a_snapshot(share("a"), share("b"), share("c"), a_gpu_node(), POOL)))
    assert len(demand.on_nodes["node"]) == 2
    assert types(demand) == [L4]


def test_the_free_part_of_a_gpu_in_use_is_taken() -> None:
    group = {"runai-gpu-group": "g"}
    reservation = a_waiting_pod("r", namespace="kai-resource-reservation", gpus=1, node="node", more_labels=group)
    running = share("running", "0.6", node="node", phase="Running", more_labels=group)
    waiting = [share("fits", "0.4"), share("does-not", "0.5")]
    demand = only(demands(a_snapshot(*waiting, running, reservation, a_gpu_node(), POOL)))
    assert demand.on_nodes == {"node": ("uid-fits",)}
    assert [node.pods for node in demand.nodes] == [("uid-does-not",)]


def test_two_classes_do_not_take_the_same_free_gpu() -> None:
    pods = [share("a", "0.8", queue="a"), share("b", "0.8", queue="b")]
    found = demands(a_snapshot(*pods, a_gpu_node(), POOL))
    assert sorted(len(each.on_nodes) for each in found) == [0, 1]
    assert types(*found) == [L4]


@pytest.mark.parametrize("product", ["NVIDIA-A10G", "NVIDIA-L4"])
def test_who_has_a_choice_leaves_the_gpu_to_those_who_have_none(product: str) -> None:
    nodes = [a_gpu_node("a", "NVIDIA-A10G"), a_gpu_node("z", "NVIDIA-L4")]
    choosy = share("choosy", "0.5", selector={"nvidia.com/gpu.product": product})
    found = demands(a_snapshot(choosy, share("anywhere", "0.7"), POOL, *nodes))
    assert not types(*found)
    assert sum(len(uids) for demand in found for uids in demand.on_nodes.values()) == 2


def test_a_node_that_is_tainted_or_not_selected_is_no_supply() -> None:
    nodes = [a_gpu_node("tainted", taints=["dedicated"]), a_gpu_node("other", more_labels={"zone": "b"})]
    demand = only(demands(a_snapshot(share(selector={"zone": "a"}), *nodes, a_node_pool("pool", (L4,)))))
    assert not demand.on_nodes
    assert "zone=a" in demand.refused["uid-pod"]
    tolerant = share(tolerations=[{"key": "dedicated", "operator": "Exists"}], selector={"zone": "b"})
    assert only(demands(a_snapshot(tolerant, *nodes))).on_nodes == {"other": ("uid-pod",)}


def test_whole_gpus_that_are_free_go_to_those_who_ask_for_them() -> None:
    found = demands(a_snapshot(share("a"), a_waiting_pod("whole", gpus=1), a_gpu_node(), POOL))
    assert types(*found) == [L4]


def test_what_a_claim_leaves_free_is_on_its_way() -> None:
    claim = a_karpenter_claim(L4_4, gpus=3)
    assert only(demands(a_snapshot(share(), claim, POOL))).on_nodes == {"claim": ("uid-pod",)}
    assert only(demands(a_snapshot(share(), claim, POOL), failed_claims=["claim"])).nodes
    assert only(demands(a_snapshot(share(), a_karpenter_claim(L4_4, gpus=4), POOL))).nodes
    there = a_gpu_node("there", gpus=4, instance_type=L4_4)
    full = a_waiting_pod("full", gpus=4, node="there")
    assert types(only(demands(a_snapshot(share(), a_karpenter_claim(L4_4, 3, "there"), there, full, POOL)))) == [L4]


def test_a_pool_without_room_under_its_limits_is_left_out() -> None:
    pool = a_node_pool("pool", (L4, L4_4), limits={"nvidia.com/gpu": 3}, used={"nvidia.com/gpu": 1})
    pods = [share(f"pod-{number}", "0.9") for number in range(4)]
    demand = only(demands(a_snapshot(*pods, pool)))
    assert types(demand) == [L4, L4]
    assert len(demand.refused) == 2
    assert "limits.nvidia.com/gpu of NodePool pool is 3" in next(iter(demand.refused.values()))


def test_the_heavier_pool_comes_first_and_the_other_takes_what_is_left() -> None:
    heavy = a_node_pool("heavy", (L4,), weight=10, limits={"nodes": 1})
    light = a_node_pool("light", (L4,))
    demand = only(demands(a_snapshot(share("a", "0.9"), share("b", "0.9"), heavy, light)))
    assert [node.node_pool for node in demand.nodes] == ["heavy", "light"]


def test_a_blocked_type_gives_way_to_the_next() -> None:
    demand = only(demands(a_snapshot(share(), POOL), blocked_types=[(L4, "pool")]))
    assert types(demand) == [L4_4]
    none = only(demands(a_snapshot(share(), POOL), blocked_types=[(L4, "pool"), (L4_4, "pool")]))
    assert "blocked" in none.refused["uid-pod"]


def test_blocked_types_are_the_reason_whatever_else_there_is() -> None:
    """Not the selector, because of NodePools that serve others; nor the size of the pod, because of full nodes."""
    pod = share(selector={"karpenter.sh/nodepool": "pool"})
    blocked = [(L4, "pool"), (L4_4, "pool")]
    there = a_gpu_node("there", more_labels={"karpenter.sh/nodepool": "pool"})
    for more in ([a_node_pool("other", (L4,))], [there, share("holds", "0.9", node="there", phase="Running")]):
        demand = only(demands(a_snapshot(pod, POOL, *more), blocked_types=blocked))
        assert "blocked for a while" in demand.refused["uid-pod"]


def test_a_blocked_type_is_the_reason_where_it_alone_is_large_enough() -> None:
    """By GPU memory, GPUs of one node, or the memory of the host."""
    pool = a_node_pool("pool", (L4, "p4de.24xlarge"))
    large = {"gpu_memory": "60000"}, {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "8"}
    for pod in (*(a_waiting_pod(**each) for each in large), share(memory="900Gi")):
        assert types(only(demands(a_snapshot(pod, pool)))) == ["p4de.24xlarge"]
        demand = only(demands(a_snapshot(pod, pool), blocked_types=[("p4de.24xlarge", "pool")]))
        assert "blocked for a while" in demand.refused["uid-pod"]
    for pod in (share(memory="9000Gi"), a_waiting_pod(gpu_memory="200000")):
        demand = only(demands(a_snapshot(pod, pool), blocked_types=[("p4de.24xlarge", "pool")]))
        assert "blocked" not in demand.refused["uid-pod"]


def test_taints_of_a_pool_are_told() -> None:
    pool = a_node_pool("pool", (L4,), taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    demand = only(demands(a_snapshot(share(), pool)))
    assert "dedicated:NoSchedule" in demand.refused["uid-pod"]
    tolerant = share(tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert types(only(demands(a_snapshot(tolerant, pool)))) == [L4]


def test_taints_are_the_reason_where_only_they_keep_pods_from_the_pool_that_they_select() -> None:
    tainted = a_node_pool("large", (A100,), taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    selecting = share(selector={"node.kubernetes.io/instance-type": A100})
    demand = only(demands(a_snapshot(selecting, tainted, POOL)))
    assert "(dedicated:NoSchedule): add tolerations" in demand.refused["uid-pod"]


def test_memory_is_a_part_of_the_real_memory() -> None:
    pods = [a_waiting_pod(f"pod-{n}", gpu_memory="11600") for n in range(2)]
    snapshot = a_snapshot(*pods, a_node_pool("pool", (L4,)))
    assert len(only(demands(snapshot)).nodes) == 2  # 24576 MiB by the catalog, of which an L4 reports 23034
    for said, nodes in ((23034, 2), (23300, 1)):
        live = a_gpu_node("live", "NVIDIA-L4", memory=said, instance_type=L4, taints=["full"])
        assert len(only(demands(a_snapshot(*pods, live, a_node_pool("pool", (L4,))))).nodes) == nodes
    too_much = a_waiting_pod(gpu_memory="99999")
    assert "99999 MiB" in only(demands(a_snapshot(too_much, POOL))).refused["uid-pod"]


def test_cpu_of_the_host_counts() -> None:
    pods = [share(f"pod-{n}", "0.1", cpu="3") for n in range(4)]
    assert sum(node.gpus for node in only(demands(a_snapshot(*pods, a_node_pool("pool", (L4,))))).nodes) == 4


def test_an_affinity_to_types_is_kept() -> None:
    key = "node.kubernetes.io/instance-type"
    pod = share(affinity=[{"key": key, "operator": "NotIn", "values": [L4]}])
    assert types(only(demands(a_snapshot(pod, POOL)))) == [L4_4]


def test_without_pools_nodes_are_those_that_there_are() -> None:
    full = [a_gpu_node("full", instance_type="own-type", gpus=2), a_waiting_pod("all", gpus=2, node="full")]
    demand = only(demands(a_snapshot(share(), *full)))
    assert [(node.instance_type, node.node_pool) for node in demand.nodes] == [("own-type", "")]
    assert "NodePool" in only(demands(a_snapshot(share()))).refused["uid-pod"]


def test_alternatives_hold_the_same_pods() -> None:
    pool = a_node_pool("pool", (L4, "g6.2xlarge", "g5.xlarge", L4_4))
    (node,) = only(demands(a_snapshot(share(cpu="3500m"), pool))).nodes
    assert node.instance_type in {L4, "g5.xlarge", "g6.2xlarge"}
    assert set(node.alternatives) == {L4, "g5.xlarge", "g6.2xlarge"} - {node.instance_type}
    (large,) = only(demands(a_snapshot(share(cpu="6"), pool))).nodes
    assert (large.instance_type, large.alternatives) == ("g6.2xlarge", ())


def test_pods_of_ours_and_of_kai_are_no_demand() -> None:
    ours = share("ours", namespace="plimsoll-triggers")
    workspace = share("workspace", more_labels={"plimsoll.dev/workspace": "ws"})
    scaling = a_waiting_pod("scaling", gpus=1, namespace="kai-scale-adjust", scheduler="default-scheduler")
    assert demands(a_snapshot(ours, workspace, scaling, POOL)) == ()


def test_a_node_that_came_for_others_is_used_once_those_have_no_pods_for_it() -> None:
    """They were bound to nodes that came for somebody else, as schedulers do not know for whom a node came."""
    pods = [share("a", "0.6", queue="a"), share("b", "0.6", queue="b")]
    of_a = next(demand.name for demand in demands(a_snapshot(*pods, POOL)) if "uid-a" in demand.pods)
    both = demands(a_snapshot(*pods, a_gpu_node(), POOL), came={"node": of_a})
    assert {uid: demand.name for demand in both for uids in demand.on_nodes.values() for uid in uids} == {"uid-a": of_a}
    assert types(*both) == [L4]
    demand = only(demands(a_snapshot(pods[1], a_gpu_node(), POOL), came={"node": of_a}))
    assert (demand.on_nodes, demand.nodes) == ({"node": ("uid-b",)}, ())
