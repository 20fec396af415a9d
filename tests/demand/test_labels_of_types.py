"""Labels that a cloud provider writes for an instance type: NodePools and pods select types by them."""

from typing import Any

import pytest

from plimsoll.cluster.catalog import type_labels
from plimsoll.labels import FORMER_KEYS, INSTANCE_TYPE
from tests.builders import a_gpu_node, a_node_pool, a_waiting_pod
from tests.demand.plans import planned

AWS = "karpenter.k8s.aws"
AZURE = "karpenter.azure.com"
ARCH = "kubernetes.io/arch"
MIXED = ("g5.12xlarge", "g6.xlarge", "p4d.24xlarge")
SIZES = ("Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5", "Standard_NV36ads_A10_v5")

CHOICES = [
    (AWS, MIXED, f"{AWS}/instance-family", "p4d", "p4d.24xlarge"),
    (AWS, MIXED, f"{AWS}/instance-category", "p", "p4d.24xlarge"),
    (AWS, MIXED, f"{AWS}/instance-generation", "5", "g5.12xlarge"),
    (AWS, MIXED, f"{AWS}/instance-size", "12xlarge", "g5.12xlarge"),
    (AWS, MIXED, f"{AWS}/instance-gpu-count", "8", "p4d.24xlarge"),
    (AWS, MIXED, f"{AWS}/instance-gpu-name", "a10g", "g5.12xlarge"),
    (AWS, MIXED, f"{AWS}/instance-cpu", "96", "p4d.24xlarge"),
    (AWS, MIXED, f"{AWS}/instance-memory", "1179648", "p4d.24xlarge"),
    (AZURE, SIZES, f"{AZURE}/sku-gpu-name", "A100", SIZES[0]),
    (AZURE, SIZES, f"{AZURE}/sku-version", "5", "Standard_NC40ads_H100_v5"),
    (AZURE, SIZES, f"{AZURE}/sku-name", SIZES[2], SIZES[2]),
    (AZURE, SIZES, f"{AZURE}/sku-cpu", "24", SIZES[0]),
    (AZURE, SIZES, f"{AZURE}/sku-memory", "327680", SIZES[1]),
]


def types(*objects: Any) -> set[str]:
    return {name for node in planned(*objects).nodes for name in (node.instance_type, *node.alternatives)}


@pytest.mark.parametrize(("group", "offered", "key", "value", "wanted"), CHOICES)
def test_a_pod_gets_a_type_with_the_selected_label(
    group: str, offered: tuple[str, ...], key: str, value: str, wanted: str
) -> None:
    pod = a_waiting_pod(gpu_fraction="0.5", selector={key: value})
    found = types(pod, a_node_pool("pool", offered, group=group))
    assert wanted in found
    assert found <= {wanted, "Standard_NV36ads_A10_v5"} if value == "5" else found == {wanted}
    assert not types(pod, a_node_pool("pool", set(offered) - found, group=group))


@pytest.mark.parametrize(("group", "offered", "key", "value", "wanted"), CHOICES)
def test_a_node_pool_gets_only_types_with_the_required_label(
    group: str, offered: tuple[str, ...], key: str, value: str, wanted: str
) -> None:
    by_label = {"key": key, "operator": "In", "values": [value]}
    pod = a_waiting_pod(gpu_fraction="0.5")
    assert wanted in types(pod, a_node_pool("pool", offered, group=group, requirements=[by_label]))
    others = {"key": key, "operator": "NotIn", "values": [value]}
    assert wanted not in types(pod, a_node_pool("pool", offered, group=group, requirements=[others]))


def test_a_node_pool_that_requires_a_family_allows_its_types() -> None:
    family = {"key": f"{AWS}/instance-family", "operator": "In", "values": ["p4d", "p4de"]}
    pod = a_waiting_pod(gpu_fraction="0.5")
    assert types(pod, a_node_pool("pool", group=AWS, requirements=[family])) == {"p4d.24xlarge", "p4de.24xlarge"}
    many = {"key": f"{AWS}/instance-gpu-count", "operator": "Gt", "values": ["3"]}
    assert types(pod, a_node_pool("pool", group=AWS, requirements=[family, many])) == {"p4d.24xlarge", "p4de.24xlarge"}
    few = {"key": f"{AWS}/instance-gpu-count", "operator": "Lt", "values": ["3"]}
    assert not types(pod, a_node_pool("pool", group=AWS, requirements=[family, few]))


@pytest.mark.parametrize(
    ("group", "name", "architecture"),
    [
        *((AWS, name, "amd64") for name in (*MIXED, "p5en.48xlarge", "g6e.xlarge", "p6-b200.48xlarge", "u-6tb1.metal")),
        *((AWS, name, "arm64") for name in ("g5g.xlarge", "c7gn.large", "a1.large", "p6e-gb200.36xlarge")),
        *((AZURE, name, "amd64") for name in (*SIZES, "Standard_ND96isr_H200_v5")),
        *((AZURE, name, "arm64") for name in ("Standard_D4ps_v5", "Standard_ND128isr_NDR_GB200_v6")),
    ],
)
def test_the_architecture_follows_from_the_name_of_the_type(group: str, name: str, architecture: str) -> None:
    assert type_labels(group, name, None)["kubernetes.io/arch"] == architecture


def test_a_pod_of_another_architecture_joins_no_node() -> None:
    """The request of both would be one that no node can meet."""
    pods = [a_waiting_pod("a", gpu_fraction="0.5"), a_waiting_pod("b", gpu_fraction="0.5", selector={ARCH: "arm64"})]
    plan = planned(*pods, a_node_pool("pool", MIXED, group=AWS))
    assert [(len(node.pods), node.requires) for node in plan.nodes] == [(1, ())]


@pytest.mark.parametrize(("former", "current"), FORMER_KEYS.items())
def test_conditions_on_former_keys_of_labels_are_those_on_the_current_ones(former: str, current: str) -> None:
    wanted = dict.fromkeys(FORMER_KEYS.values(), "a") | {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        INSTANCE_TYPE: "g6.xlarge",
    }
    required = {"key": former, "operator": "In", "values": [wanted[current]]}
    pools = [a_node_pool("all", MIXED, group=AWS), a_node_pool("some", MIXED, group=AWS, requirements=[required])]
    for pool in pools:
        assert types(a_waiting_pod(gpu_fraction="0.5", selector={former: wanted[current]}), pool)
        assert types(a_waiting_pod(gpu_fraction="0.5", selector={current: wanted[current]}), pool)
    assert not types(a_waiting_pod(gpu_fraction="0.5", selector={current: "other"}), pools[1])


def test_unknown_provider_labels_may_have_any_value() -> None:
    pod = a_waiting_pod(gpu_fraction="0.5", selector={f"{AWS}/instance-hypervisor": "nitro"})
    assert types(pod, a_node_pool("pool", ("g6.xlarge",), group=AWS)) == {"g6.xlarge"}


def test_time_slicing_of_one_node_does_not_name_the_gpus_of_others() -> None:
    """GFD adds -SHARED to the product of a node whose GPUs it shares; new nodes of other NodePools have whole GPUs."""
    shared = a_gpu_node("n1", "NVIDIA-A10G-SHARED", gpus=4, instance_type="g5.12xlarge")
    pod = a_waiting_pod(gpu_fraction="0.5", selector={"nvidia.com/gpu.product": "NVIDIA-A10G"})
    assert types(pod, shared, a_node_pool("pool", ["g5.12xlarge"])) == {"g5.12xlarge"}
