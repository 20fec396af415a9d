"""CPU and memory of instance types without live nodes: the catalog's figures minus what nodes reserve."""

import pytest

from plimsoll.cluster.catalog import Catalog
from plimsoll.cluster.pools import Allocatable, allocatable
from plimsoll.model.cluster import InstanceType
from plimsoll.packing import UNBOUNDED
from tests.builders import a_gpu_node, a_node_pool, a_waiting_pod
from tests.demand.plans import only, planned, types

SIZES = ("g6.xlarge", "g6.2xlarge", "g6.8xlarge", "p4d.24xlarge")


@pytest.mark.parametrize(
    ("cpu", "memory", "wanted"),
    [
        ("1", "1Gi", "g6.xlarge"),
        ("1", "13Gi", "g6.xlarge"),
        ("1", "16Gi", "g6.2xlarge"),
        ("4", "1Gi", "g6.2xlarge"),
        ("1", "100Gi", "g6.8xlarge"),
        ("1", "900Gi", "p4d.24xlarge"),
    ],
)
def test_a_share_goes_to_the_smallest_type_that_has_its_memory(cpu: str, memory: str, wanted: str) -> None:
    pod = a_waiting_pod(gpu_fraction="0.5", cpu=cpu, memory=memory)
    (node,) = planned(pod, a_node_pool("pool", SIZES)).nodes
    others = set(SIZES[: SIZES.index(wanted)])
    assert not others & {node.instance_type, *node.alternatives}
    assert wanted in {node.instance_type, *node.alternatives}


def test_shares_that_one_node_cannot_hold_by_memory_get_two() -> None:
    pods = [a_waiting_pod(f"pod-{number}", gpu_fraction="0.5", memory="10Gi") for number in range(2)]
    assert types(planned(*pods, a_node_pool("pool", ["g6.xlarge"]))) == ["g6.xlarge"] * 2


def test_a_pod_with_more_memory_than_any_type_is_refused() -> None:
    pod = a_waiting_pod(gpu_fraction="0.5", memory="900Gi")
    plan = planned(pod, a_node_pool("pool", ["g6.xlarge"]))
    assert not plan.nodes
    assert "memory" in " ".join(only(plan).reasons)


def test_figures_of_a_live_node_take_precedence() -> None:
    pod = a_waiting_pod(gpu_fraction="0.5", memory="15Gi")
    node = a_gpu_node("live", "NVIDIA-L4", memory=23034, host_memory="15500Mi", instance_type="g6.xlarge")
    busy = a_waiting_pod("busy", gpus=1, node="live", phase="Running")
    assert types(planned(pod, busy, node, a_node_pool("pool", ["g6.xlarge"]))) == ["g6.xlarge"]


def test_resources_that_nodes_reserve() -> None:
    catalog = Catalog.builtin()
    # 16384 - 7.5 % - 255 - 58 * 11 - 100; 1179648 - 7.5 % - 255 - 737 * 11 - 100;
    # 225280 - 7.5 % - (1024 + 819.2 + 819.2 + 6881.28 + 1884.16) - 100
    assert allocatable(catalog.lookup("g6.xlarge")) == Allocatable(3920, 14162)
    assert allocatable(catalog.lookup("p4d.24xlarge")) == Allocatable(95690, 1082712)
    assert allocatable(catalog.lookup("Standard_NC24ads_A100_v4")) == Allocatable(23870, 196856)
    assert allocatable(catalog.lookup("Standard_NC8_A2")) == Allocatable(7910, UNBOUNDED)
    assert allocatable(None) == Allocatable(UNBOUNDED, UNBOUNDED)


@pytest.mark.parametrize(("vcpus", "pods"), [(30, 110), (32, 250)])
def test_a_type_on_aws_whose_network_is_not_known_has_as_many_pods_as_its_size_suggests(vcpus: int, pods: int) -> None:
    kind = InstanceType("new.large", "aws", 1, 24576, "NVIDIA L4", vcpus=vcpus, memory_mib=200_000)
    assert allocatable(kind).memory_mib == 185_000 - 255 - 11 * pods - 100
