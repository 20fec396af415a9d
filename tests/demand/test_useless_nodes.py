"""No node is requested that would refuse the pods it was requested for, and none again that the last one showed to be
useless."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.labels import GPU_RESOURCE, NODEPOOL
from plimsoll.model.api import KnownNodeProfile
from plimsoll.model.cluster import Node
from plimsoll.plan.demand import DemandPlanner
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod
from tests.demand.plans import only, planned, refused, types
from tests.node_profiles.cluster import learn

L4, A10G, P4D = "g6.xlarge", "g5.xlarge", "p4d.24xlarge"
AWS = "karpenter.k8s.aws"
FAMILY, PRODUCT = "nvidia.com/gpu.family", "nvidia.com/gpu.product"
POOL = a_node_pool("any", (L4, A10G), group=AWS)


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ({PRODUCT: "NVIDIA-L4"}, [L4]),
        ({FAMILY: "ampere"}, [A10G]),
        ({FAMILY: "hopper"}, []),
        ({PRODUCT: "L4"}, []),
        ({PRODUCT: "NVIDIA-L4-SHARED"}, []),
        ({PRODUCT: "NVIDIA-L4-MIG-1g.5gb"}, []),
        ({"nvidia.com/gpu.count": "2"}, []),
        ({"nvidia.com/gpu.compute.major": "8", PRODUCT: "NVIDIA-A10G"}, [A10G]),
        ({"nvidia.com/mig.config": "all-1g.10gb"}, []),
        ({"feature.node.kubernetes.io/cpu-model.family": "6"}, []),
        ({"kubernetes.io/os": "windows"}, []),
        ({f"{AWS}/instance-gpu-name": "l4"}, [L4]),
    ],
)
def test_a_label_of_discovery_is_decided_by_what_is_known_of_the_type(
    selector: dict[str, str], wanted: list[str]
) -> None:
    plan = planned(a_waiting_pod(gpu_fraction="0.5", selector=selector), POOL)
    assert types(plan) == wanted
    key, value = next(iter(selector.items()))
    assert wanted or f"{key}={value}" in refused(plan)["uid-pod"]


@pytest.mark.parametrize(
    ("value", "there", "near"),
    [
        ("NVIDIA-A100-PCIE-40GB", "NVIDIA-A100-SXM4-40GB (p4d.24xlarge)", "did you mean NVIDIA-A100-SXM4-40GB?"),
        ("A100", "NVIDIA-A100-SXM4-40GB (p4d.24xlarge)", "did you mean NVIDIA-A100-SXM4-40GB?"),
        ("Tesla-T4", "NVIDIA-A100-SXM4-40GB (p4d.24xlarge)", ""),
    ],
)
def test_a_refusal_names_the_label_its_values_and_the_nearest(value: str, there: str, near: str) -> None:
    plan = planned(a_waiting_pod(gpu_fraction="0.5", selector={PRODUCT: value}), a_node_pool("p", (P4D,), group=AWS))
    (why,) = refused(plan).values()
    assert f"{PRODUCT}={value}" in why
    assert there in why
    assert near in why
    assert bool(near) is ("did you mean" in why)


def pool_node(name: str, pool: str, labels: dict[str, str], devices: int = 1) -> Node:
    node = a_gpu_node(name, "NVIDIA-L4", instance_type=L4, more_labels={NODEPOOL: pool, **labels})
    return node.model_copy(update={"allocatable": {**node.allocatable, GPU_RESOURCE: str(devices)}})


SHARED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}


def test_a_pool_whose_node_refuses_shares_gets_no_other() -> None:
    pods = [a_waiting_pod(f"p{number}", gpu_fraction="0.6") for number in range(2)]
    pools = (a_node_pool("divided", (L4,), group=AWS), a_node_pool("whole", (L4,), group=AWS))
    node = pool_node("n", "divided", SHARED, 4)
    assert {new.node_pool for new in planned(*pods, node, *pools).nodes} == {"whole"}
    plan = planned(*pods, node, pools[0])
    assert not plan.nodes
    assert all("sharedDevices" in why and "node n" in why for why in refused(plan).values())


def test_a_node_pool_that_declares_mig_serves_no_shares_from_zero() -> None:
    pool = a_node_pool("slices", (P4D,), group=AWS, more_labels={"nvidia.com/mig.config": "all-1g.5gb"})
    plan = planned(a_waiting_pod(gpu_fraction="0.6"), pool)
    assert not plan.nodes
    assert "mig.config=all-1g.5gb" in refused(plan)["uid-pod"]


def test_a_share_in_mib_is_not_placed_where_a_node_does_not_say_its_memory() -> None:
    node = a_gpu_node("n", "NVIDIA-GB10")
    node = node.model_copy(update={"labels": {k: v for k, v in node.labels.items() if k != "nvidia.com/gpu.memory"}})
    assert only(planned(a_waiting_pod(gpu_fraction="0.5"), node)).on_nodes
    plan = planned(a_waiting_pod(gpu_memory="8000"), node)
    assert not only(plan).on_nodes
    assert "nvidia.com/gpu.memory" in refused(plan)["uid-pod"]


def test_the_smaller_of_labels_and_allocatable_devices_is_free() -> None:
    node = pool_node("n", "any", {"nvidia.com/gpu.replicas": "1"}, 50)
    pods = [a_waiting_pod(f"p{number}", gpu_fraction="0.9") for number in range(3)]
    assert len(only(planned(*pods, node)).on_nodes["n"]) == 1


def test_a_refusal_names_the_nodes_whose_contradictions_leave_no_place() -> None:
    pods = [a_waiting_pod(f"p{number}", gpu_fraction="0.9", selector={PRODUCT: "NVIDIA-L4"}) for number in range(2)]
    pool = a_node_pool("p", (A10G,), group=AWS)
    stale = pool_node("stale", "any", {"nvidia.com/gpu.replicas": "1"}, 50)
    why = refused(planned(*pods, stale, pool))["uid-p1"]
    assert "stale contradicts itself (50 nvidia.com/gpu are allocatable, but labels say 1: 1 are counted)" in why
    assert "mend these nodes" in why
    other = a_gpu_node("other", "NVIDIA-T4", gpus=2)
    other = other.model_copy(update={"allocatable": {**other.allocatable, GPU_RESOURCE: "1"}})
    why = refused(planned(*pods, pool_node("sound", "any", {}), other, pool))["uid-p1"]
    assert "contradicts" not in why, "it may not run on that node"


@dataclass(frozen=True)
class Truth:
    """What nodes of one NodePool turn out to be; nothing declares it."""

    labels: tuple[tuple[str, str], ...]
    devices: int = 1

    @property
    def takes(self) -> bool:
        return not self.labels


TRUTHS = st.sampled_from(
    [
        Truth(()),
        Truth(tuple(SHARED.items()), 4),
        Truth((("nvidia.com/mig.strategy", "mixed"), ("nvidia.com/mig-1g.5gb.count", "7")), 0),
        Truth((("nvidia.com/mig.config", "all-1g.5gb"), ("nvidia.com/mig.config.state", "success")), 0),
    ]
)
SELECTORS = st.sampled_from(
    [{}, {PRODUCT: "NVIDIA-L4"}, {PRODUCT: "NVIDIA-A10G"}, {FAMILY: "ada-lovelace"}, {FAMILY: "hopper"}]
)


@given(
    truths=st.lists(TRUTHS, min_size=1, max_size=3),
    selectors=st.lists(SELECTORS, min_size=1, max_size=4),
    at_zero=st.booleans(),
)
def test_what_a_node_showed_to_be_useless_is_not_requested_again(
    truths: list[Truth], selectors: list[dict[str, str]], at_zero: bool
) -> None:
    """Requested nodes come as they are. Each NodePool is asked for a useless node at most once, also after it went to
    zero, and in the end nothing is requested."""
    pools = [a_node_pool(f"pool-{number}", (L4,), group=AWS) for number in range(len(truths))]
    truth_of = {pool.name: truth for pool, truth in zip(pools, truths, strict=True)}
    pods = [
        a_waiting_pod(f"pod-{number}", gpu_fraction="0.6", selector=selector)
        for number, selector in enumerate(selectors)
    ]
    planner, nodes, profiles = DemandPlanner(), list[Node](), dict[str, KnownNodeProfile]()
    useless = set[str]()
    for _ in range(len(pools) + 2):
        plan = planner.plan(a_snapshot(*pods, *nodes, *pools, *profiles.values()))
        assert useless.isdisjoint(new.node_pool for new in plan.nodes)
        for new in plan.nodes:
            truth = truth_of[new.node_pool]
            node = pool_node(
                f"n{len(nodes)}", new.node_pool, {FAMILY: "ada-lovelace", **dict(truth.labels)}, truth.devices
            )
            assert all(pod.placement.allows(node.labels) for pod in pods if pod.uid in new.pods)
            nodes.append(node)
            useless |= set() if truth.takes else {new.node_pool}
        profiles = learn(nodes, profiles.values())
        if at_zero:
            nodes = [node for node in nodes if truth_of[node.labels[NODEPOOL]].takes]
        if not plan.nodes:
            return
    raise AssertionError(f"nodes are requested in each round: {plan.nodes}")
