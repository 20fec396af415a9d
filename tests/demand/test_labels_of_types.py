"""Labels that a cloud provider writes for an instance type: NodePools and pods select types by them."""

from typing import Any

import pytest

from plimsoll.cluster.catalog import Catalog, type_labels
from plimsoll.labels import FORMER_KEYS, INSTANCE_TYPE
from tests.builders import a_gpu_node, a_node_pool, a_waiting_pod, an_environment
from tests.demand.plans import only, planned

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
    assert type_labels(group, name, None).values["kubernetes.io/arch"] == architecture


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


GCP = "karpenter.k8s.gcp"


@pytest.mark.parametrize(
    ("group", "name", "key", "value"),
    [
        (AWS, "g7e.2xlarge", f"{AWS}/instance-gpu-name", "rtx-pro-server-6000"),
        (AWS, "g5g.xlarge", f"{AWS}/instance-gpu-name", "t4g"),
        (AWS, "g6.xlarge", f"{AWS}/instance-gpu-memory", "22888"),
        (AWS, "p3.8xlarge", f"{AWS}/instance-gpu-memory", "16384"),
        (AWS, "g6f.xlarge", f"{AWS}/instance-gpu-count", "0"),
        (AWS, "g4dn.xlarge", f"{AWS}/instance-local-nvme", "125"),
        (AWS, "p5.48xlarge", f"{AWS}/instance-local-nvme", "30400"),
        (AWS, "g5g.xlarge", f"{AWS}/instance-local-nvme", None),
        (AWS, "g6.xlarge", "kubernetes.io/os", "linux"),
        (AZURE, "Standard_NC24ads_A100_v4", f"{AZURE}/sku-series", "NCads_v4"),
        (AZURE, "Standard_NC6s_v3", f"{AZURE}/sku-gpu-name", None),
        (AZURE, "Standard_ND96isr_MI300X_v5", f"{AZURE}/sku-family", "N"),
        (AZURE, "Standard_ND96isr_MI300X_v5", f"{AZURE}/sku-series", "NDisr_v5"),
        (AZURE, "Standard_NC4as_T4_v3", f"{AZURE}/sku-gpu-manufacturer", "nvidia"),
        (AZURE, "Standard_NC4as_T4_v3", "kubernetes.azure.com/sku-memory", "28672"),
        (AZURE, "Standard_ND128isr_GB300_v6", f"{AZURE}/sku-gpu-count", "0"),
        (GCP, "a2-highgpu-8g", f"{GCP}/instance-family", "a2"),
        (GCP, "a2-highgpu-8g", f"{GCP}/instance-shape", "highgpu"),
        (GCP, "a2-highgpu-8g", f"{GCP}/instance-size", "8g"),
        (GCP, "a4x-maxgpu-4g-metal", f"{GCP}/instance-size", "4g"),
        (GCP, "a4x-highgpu-4g", f"{GCP}/instance-generation", "4"),
        (GCP, "a3-megagpu-8g", f"{GCP}/instance-gpu-name", "nvidia-h100-mega-80gb"),
        (GCP, "g2-standard-24", f"{GCP}/instance-gpu-memory", None),
        (GCP, "g2-standard-24", "cloud.google.com/gke-accelerator", "nvidia-l4"),
        (GCP, "g2-standard-24", "kubernetes.io/arch", "amd64"),
        (GCP, "a4x-highgpu-4g", "kubernetes.io/arch", "arm64"),
    ],
)
def test_a_listed_type_has_the_labels_of_its_provider(group: str, name: str, key: str, value: str | None) -> None:
    found = type_labels(group, name, Catalog.builtin().lookup(name))
    assert (found.values.get(key), key in found.absent) == (value, value is None)


def above(key: str, number: int) -> dict[str, Any]:
    return {"key": key, "operator": "Gt", "values": [str(number)]}


def test_the_memory_that_ec2_reports_decides() -> None:
    """Of AWS's types only one has no known answer of the API."""
    for name, memory in (("g6.xlarge", 22888), ("p4d.24xlarge", 40960), ("g6e.xlarge", 45776)):
        pod = a_waiting_pod(gpu_fraction="0.5")
        pools = [a_node_pool("pool", (name,), group=AWS, requirements=[above(f"{AWS}/instance-gpu-memory", mib)])
                 for mib in (memory - 1, memory)]  # fmt: skip
        assert [types(pod, pool) for pool in pools] == [{name}, set()]
    aws = [each for each in Catalog.builtin().types if each.cloud == "aws" and each.nvidia]
    unknown = {
        each.name for each in aws if f"{AWS}/instance-gpu-memory" not in type_labels(AWS, each.name, each).values
    }
    assert unknown == {"p6e-gb200.36xlarge"}


@pytest.mark.parametrize(
    "selector", [{"kubernetes.io/os": "windows"}, {f"{AWS}/instance-local-nvme": "1"}, {ARCH: "amd64"}]
)
def test_a_pod_that_selects_what_a_type_never_has_gets_none_of_it(selector: dict[str, str]) -> None:
    pool = a_node_pool("pool", ("g5g.xlarge",), group=AWS)
    assert types(a_waiting_pod(gpu_fraction="0.5"), pool) == {"g5g.xlarge"}
    assert not types(a_waiting_pod(gpu_fraction="0.5", selector=selector), pool)


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (AWS, "g4dn.xlarge"),
        (AWS, "g6e.xlarge"),
        (AWS, "g7e.2xlarge"),
        (AWS, "p5.4xlarge"),
        (AWS, "p6-b200.48xlarge"),
        (AZURE, "Standard_NC4as_T4_v3"),
        (GCP, "g2-standard-4"),
        (GCP, "a3-highgpu-8g"),
    ],
)
def test_types_of_every_cloud_are_known_in_advance(group: str, name: str) -> None:
    pod = a_waiting_pod(gpu_fraction="0.5")
    environment = an_environment(demand={"surplusGpus": 8})
    plan = planned(pod, a_node_pool("pool", (name,), group=group), environment=environment)
    assert [node.instance_type for node in plan.nodes] == [name]


@pytest.mark.parametrize(
    ("group", "name"), [(AWS, "g6f.xlarge"), (AZURE, "Standard_NCC40ads_H100_v5"), (GCP, "n1-standard-8")]
)
def test_no_node_is_requested_of_a_type_that_karpenter_launches_for_no_gpu(group: str, name: str) -> None:
    plan = planned(a_waiting_pod(gpu_fraction="0.5"), a_node_pool("pool", (name,), group=group))
    assert not plan.nodes
    (warning,) = only(plan).warnings
    assert name in warning


def test_a_node_pool_that_names_no_type_gets_none_that_is_retired_or_has_a_part_of_a_gpu() -> None:
    small = {"key": f"{AWS}/instance-gpu-count", "operator": "Lt", "values": ["2"]}
    found = types(a_waiting_pod(gpu_fraction="0.5"), a_node_pool("pool", group=AWS, requirements=[small]))
    assert "g6.xlarge" in found
    assert not {name for name in found if name.startswith(("p2.", "p3.", "g3", "g6f.", "gr6f."))}


def test_the_memory_of_a_type_that_no_source_knows_is_a_warning_for_shares_in_mib() -> None:
    pool = a_node_pool("pool", ("g7.2xlarge",), group=AWS)
    assert only(planned(a_waiting_pod(gpu_fraction="0.5"), pool)).warnings == ()
    (warning,) = only(planned(a_waiting_pod("mib", gpu_memory="1000"), pool)).warnings
    assert "NVIDIA-RTX-PRO-4500" in warning and "not known" in warning


@pytest.mark.parametrize(("name", "words"), [("n1-standard-8", "attached"), ("p9.large", "catalog.awsRegion")])
def test_of_an_unknown_type_the_remedy_is_named(name: str, words: str) -> None:
    plan = planned(a_waiting_pod(gpu_fraction="0.5"), a_node_pool("pool", (name,), group=AWS))
    (warning,) = only(plan).warnings
    assert words in warning and "nvidia.com/gpu.memory" in warning
    region = an_environment(catalog={"awsRegion": "eu-west-1"})
    (warning,) = only(
        planned(a_waiting_pod(gpu_fraction="0.5"), a_node_pool("pool", (name,), group=AWS), environment=region)
    ).warnings
    assert "catalog.awsRegion" not in warning
