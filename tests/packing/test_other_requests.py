"""Requests for parts of GPUs in other forms than KAI's annotations: TensorFusion's, and KAI 0.18's requests by
container."""

from fractions import Fraction
from typing import Any

import pytest

from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.pods import read_request, size_by_kind, tflops_milli
from plimsoll.model import Snapshot
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Device, Pod
from plimsoll.model.kai import GPUShare
from plimsoll.packing import Milli, exact_milli
from plimsoll.plan.demand import DemandPlanner
from tests.builders import a_gpu_node, a_node_pool, an_environment
from tests.demand.plans import only, planned, refused

TF = "tensor-fusion.ai/"
NV = "nvidia.com/container.main.gpu-memory."
MODE = "nvidia.com/container.main.gpu-compute.mode"


def a_pod(annotations: dict[str, str], *, gpus: int = 0, node: str = "", **more: Any) -> Pod:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return Pod.read(
        {
            "metadata": {"name": "pod", "namespace": "team", "uid": "u1", "annotations": annotations, **more},
            "spec": {
                "schedulerName": "tensor-fusion-scheduler",
                "nodeName": node,
                "containers": [{"name": "main", "resources": resources}, {"name": "side"}],
            },
            "status": {"phase": "Running" if node else "Pending", "conditions": [] if node else [waiting]},
        }
    )


def some_kinds(*of: tuple[str, int]) -> dict[str, Device]:
    """Kinds of (GPU product, MiB)."""
    return {product: Device(product, memory, 1) for product, memory in of}


def tf(**annotations: str) -> dict[str, str]:
    return {f"{TF}{key.replace('_', '-')}": value for key, value in annotations.items()}


def a_tf_share(**fields: Any) -> GPUShare:
    return GPUShare(by_tensor_fusion=True, **fields)


@pytest.mark.parametrize(
    ("annotations", "share"),
    [
        (tf(vram_request="4Gi", tflops_request="10"), a_tf_share(memory_mib=4096, tflops_milli=10_000)),
        (tf(vram_request="4Gi", tflops_request="5000m"), a_tf_share(memory_mib=4096, tflops_milli=5000)),
        (tf(vram_limit="4Gi", tflops_limit="20"), a_tf_share(memory_mib=4096, tflops_milli=20_000)),
        (tf(vram_request="4Gi", vram_limit="8Gi"), a_tf_share(memory_mib=4096)),
        (tf(tflops_request="1"), a_tf_share(tflops_milli=1000)),
        (tf(vram_request="4Gi", gpu_count="3"), a_tf_share(memory_mib=4096, devices=3)),
        (tf(vram_request="4Gi", gpu_model="A100_SXM_80G"), a_tf_share(memory_mib=4096, model="A100_SXM_80G")),
        (tf(dedicated_gpu="true", gpu_count="2"), GPUShare(milli=1000, devices=2, by_annotation=True)),
        (tf(dedicated_gpu="false"), None),
        (tf(gpu_ids="GPU-1"), None),
        (tf(vram_request="0", tflops_request="1"), a_tf_share(tflops_milli=1000)),
        ({f"{NV}request": "4Gi"}, GPUShare(memory_mib=4096)),
        ({f"{NV}limit": "4Gi"}, GPUShare(memory_mib=4096)),
        ({f"{NV}request": "4Gi", f"{NV}limit": "8Gi"}, GPUShare(memory_mib=4096)),
        ({f"{NV}request": "4G"}, GPUShare(memory_mib=3815)),
        ({f"{NV}request": "4Gi", "gpu-memory": "4096"}, GPUShare(memory_mib=4096)),
        ({f"{NV}request": "4Gi", "gpu-fraction": "0.5"}, GPUShare(memory_mib=4096)),
        ({f"{NV}request": "4Gi", "gpu-fraction-num-devices": "2"}, GPUShare(memory_mib=4096, devices=2)),
        ({f"{NV}request": "4Gi", MODE: "time-slicing"}, GPUShare(memory_mib=4096)),
        ({f"{NV}request": "4Gi", "nvidia.com/container.main.gpus.devices": "GPU-1"}, GPUShare(memory_mib=4096)),
        ({"gpu-fraction": "0.5", "kai.scheduler/container.main.gpu-memory.portion.limit": "0.8"}, GPUShare(milli=500)),
        ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "side"}, GPUShare(milli=500)),
        ({"gpu-fraction": "0.5", "mps": "true"}, GPUShare(milli=500)),
        ({"mps": "false"}, None),
    ],
)  # fmt: skip
def test_known_requests(annotations: dict[str, str], share: GPUShare | None) -> None:
    assert read_request(a_pod(annotations)).share == share


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        (tf(vram_request="four"), "vram-request"),
        (tf(tflops_request="-1"), "tflops-request"),
        (tf(vram_request="4Gi", gpu_count="0"), "gpu-count"),
        (tf(gpu_count="2"), "gpu-count"),
        (tf(gpu_model="A100"), "gpu-model"),
        (tf(gpu_count="2", dedicated_gpu="false"), "gpu-count"),
        (tf(gpu_count="2") | {"gpu-fraction": "0.5"}, "gpu-count"),
        (tf(vram_request="0"), "vram-request"),
        (tf(tflops_limit="0", gpu_count="2"), "tflops-limit"),
        (tf(compute_percent_request="20"), "compute-percent-request"),
        (tf(vram_request="4Gi", workload_profile="default"), "workload-profile"),
        (tf(vram_request="4Gi") | {"gpu-fraction": "0.5"}, "gpu-fraction"),
        ({f"{NV}request": "lots"}, "gpu-memory.request"),
        ({f"{NV}request": "8Gi", f"{NV}limit": "4Gi"}, "gpu-memory.request"),
        ({f"{NV}limit": "4Gi", "gpu-memory": "4096"}, "gpu-memory.limit"),
        ({f"{NV}request": "4Gi", "gpu-memory": "5000"}, "gpu-memory"),
        ({"nvidia.com/container.gone.gpu-memory.request": "4Gi"}, "container gone"),
        ({f"{NV}request": "4Gi", "nvidia.com/container.side.gpu-memory.request": "4Gi"}, "container side"),
        ({f"{NV}request": "4Gi", "gpu-fraction-container-name": "side"}, "gpu-fraction-container-name"),
        ({f"{NV}request": "4Gi", MODE: "sm-sharing"}, "gpu-compute.mode"),
        ({f"{NV}request": "4Gi", "nvidia.com/container.main.gpu-compute.request": "0.5"}, "gpu-compute.request"),
        ({"gpu-fraction": "0.5", "kai.scheduler/container.main.gpu-memory.portion.limit": "0.5"}, "portion.limit"),
        ({"kai.scheduler/container.main.gpu-memory.portion.limit": "0.5"}, "portion.limit"),
        ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "gone"}, "gpu-fraction-container-name"),
        ({"mps": "true"}, "mps"),
    ],
)
def test_unsupported_requests_are_refused_by_name(annotations: dict[str, str], field: str) -> None:
    refusal = read_request(a_pod(annotations)).refusal
    assert refusal is not None
    assert field in refusal.problem
    assert refusal.hint


def test_a_request_together_with_whole_gpus_is_refused() -> None:
    for annotations in (tf(vram_request="4Gi"), tf(gpu_model="A100"), {f"{NV}request": "4Gi"}, {"mps": "true"}):
        request = read_request(a_pod(annotations, gpus=1))
        assert request.refusal is not None
        assert request.share is None


def test_a_client_requests_no_gpus_because_its_worker_does() -> None:
    for annotations in (tf(vram_request="4Gi"), tf(gpu_count="2")):
        request = read_request(a_pod(annotations, labels={f"{TF}component": "client"}))
        assert (request.share, request.refusal) == (None, None)


def test_the_larger_of_memory_and_tflops_counts() -> None:
    kinds = some_kinds(("Tesla-T4", 15300), ("NVIDIA-A100-SXM4-80GB", 81900), ("NVIDIA L4", 24500))
    by_memory = size_by_kind(GPUShare(memory_mib=7650, tflops_milli=6500), kinds).milli
    by_tflops = size_by_kind(GPUShare(memory_mib=100, tflops_milli=32_500), kinds).milli
    assert by_memory == {
        "Tesla-T4": 500,
        "NVIDIA-A100-SXM4-80GB": exact_milli(7650, 81900),
        "NVIDIA L4": exact_milli(7650, 24500),
    }
    assert by_tflops == {
        "Tesla-T4": 500,
        "NVIDIA-A100-SXM4-80GB": Fraction(32_500, 312),
        "NVIDIA L4": Fraction(32_500, 121),
    }
    assert size_by_kind(GPUShare(tflops_milli=100_000), kinds).milli.keys() == {"NVIDIA-A100-SXM4-80GB", "NVIDIA L4"}


@pytest.mark.parametrize(
    ("product", "tflops", "milli"),
    [
        ("NVIDIA L4", {"NVIDIA-L4": 60}, 500),
        ("NVIDIA-L4", {"NVIDIA-L4": 60}, 500),
        ("NVIDIA-L4", {"L4": 60}, 500),
        ("NVIDIA-L40", {"L4": 60}, Fraction(30_000, 181)),
        ("NVIDIA A100", {"NVIDIA-A100-SXM4-40GB": 60}, 500),
        ("NVIDIA A100", {"NVIDIA-A100-SXM4-40GB": 60, "NVIDIA-A100-PCIE-40GB": 30}, Fraction(30_000, 312)),
        ("NVIDIA-A100-PCIE-40GB", {"NVIDIA-A100-SXM4-40GB": 60}, Fraction(30_000, 312)),
        ("NVIDIA-A100-SXM4-40GB", {"A100": 30, "NVIDIA-A100": 60}, 500),
        ("unknown", {"NVIDIA-L4": 60}, 100),
    ],
)
def test_tflops_of_the_environment_count_however_a_product_is_written(
    product: str, tflops: dict[str, float], milli: Milli
) -> None:
    kinds = some_kinds((product, 40_000))
    assert size_by_kind(GPUShare(tflops_milli=30_000), kinds, tflops=tflops).milli == {product: milli}


def test_a_required_model_excludes_other_kinds() -> None:
    kinds = some_kinds(("Tesla-T4", 15300), ("NVIDIA-A100-SXM4-80GB", 81900), ("NVIDIA-H100-80GB-HBM3", 81500))
    for model, kind in (
        ("T4", "Tesla-T4"),
        ("A100_SXM_80G", "NVIDIA-A100-SXM4-80GB"),
        ("H100_SXM", "NVIDIA-H100-80GB-HBM3"),
    ):
        assert list(size_by_kind(GPUShare(milli=500, model=model), kinds).milli) == [kind]


def test_a_generic_product_is_matched_by_its_memory() -> None:
    """A catalog calls both `NVIDIA A100`."""
    kinds = {
        "40": Device("NVIDIA A100", 40900, 1),
        "80": Device("NVIDIA A100", 81900, 1),
        "l4": Device("NVIDIA L4", 23000, 1),
    }
    assert list(size_by_kind(GPUShare(milli=500, model="A100_SXM_80G"), kinds).milli) == ["80"]
    assert list(size_by_kind(GPUShare(milli=500, model="A100_SXM_40G"), kinds).milli) == ["40"]
    assert list(size_by_kind(GPUShare(milli=500, model="A100"), kinds).milli) == ["40", "80"]


def test_a_model_without_a_gpu_is_refused() -> None:
    plan = planned(a_pod(tf(vram_request="4Gi", gpu_model="H900")), a_gpu_node(product="NVIDIA L4"))
    assert "is of this model (known: NVIDIA-L4)" in refused(plan)["u1"]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Own-GPU", True),
        ("Own-GPU-of-the-pool", True),
        ("NVIDIA-H100-80GB-HBM3", True),
        ("nvidia a100", True),
        ("NVIDIA-A1000-SXM4", False),
        ("--", False),
    ],
)
def test_tflops_of_a_product_that_no_gpu_has_cause_a_warning(name: str, known: bool) -> None:
    """The GPUs are those of nodes, of NodePools and of the catalog."""
    label = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Own-GPU-of-the-pool"]}
    found = planned(
        a_pod(tf(tflops_request="1")),
        a_gpu_node("node", "Own-GPU"),
        a_node_pool("pool", ("own.type",), requirements=[label]),
        environment=an_environment(demand={"gpuTflops": {name: 100}}),
    )
    warnings = [each for each in only(found).warnings if "demand.gpuTflops" in each]
    assert [name in each for each in warnings] == ([] if known else [True])


def test_tflops_of_the_environment_take_precedence() -> None:
    assert tflops_milli("NVIDIA-L40S") == 365_000
    assert tflops_milli("NVIDIA-L40S", {"NVIDIA-L40S": 362.0}) == 362_000
    assert tflops_milli("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb") is None
    unknown = size_by_kind(GPUShare(tflops_milli=1000), some_kinds(("Own-GPU", 1000)))
    assert unknown.assumed == ("Own-GPU",)
    assert size_by_kind(GPUShare(tflops_milli=1000), some_kinds(("Own-GPU", 1000)), tflops={"Own-GPU": 10.0}).milli == {
        "Own-GPU": 100
    }


def test_a_tensor_fusion_pod_is_demand() -> None:
    node = a_gpu_node("n1", "NVIDIA-L4", gpus=1, memory=23034)
    fits, fits_not = (
        DemandPlanner()
        .plan(Snapshot(environment=Environment.default(), nodes=(node,), pods=(a_pod(tf(tflops_request=each)),)))
        .demands
        for each in ("100", "150")
    )
    assert [list(each.on_nodes) for each in fits] == [["n1"]]
    assert [list(each.refused) for each in fits_not] == [["u1"]]
    assert "150 TFLOPS" in str(next(iter(fits_not[0].refused.values())))


def test_running_tensor_fusion_pods_count_on_their_gpus() -> None:
    node = a_gpu_node("n1", "NVIDIA-L4", gpus=2, memory=23034)
    running = a_pod(tf(tflops_request="60.5", gpu_ids="GPU-1"), node="n1")
    account = gpu_ledger(Snapshot(environment=Environment.default(), nodes=(node,), pods=(running,))).account("n1")
    assert account is not None
    assert [(each.gpu, each.used_milli) for each in account.groups] == [("GPU-1", 500)]
    assert account.likely_free_milli == account.free_milli == (500, 1000)
    assert not account.discrepancies


@pytest.mark.parametrize(("vram", "free"), [("20Gi", 1), ("40Gi", 0)])
def test_running_tensor_fusion_pods_use_all_memory_of_a_gpu(vram: str, free: int) -> None:
    """Two halves of 80 GiB fill a GPU, though KAI would divide 81900 MiB only."""
    node = a_gpu_node("n1", "NVIDIA-A100-SXM4-80GB", gpus=1, memory=81920)
    running = [
        a_pod(tf(vram_request=vram, gpu_ids="GPU-1"), node="n1", name=f"pod-{number}", uid=f"u{number}")
        for number in range(2)
    ]
    waiting = a_pod(tf(vram_request="40Gi"), name="waiting", uid="waiting")
    snapshot = Snapshot(environment=Environment.default(), nodes=(node,), pods=(*running, waiting))
    account = gpu_ledger(snapshot).account("n1")
    assert account is not None
    assert not account.discrepancies
    assert account.groups[0].used_milli == (1000 if not free else 500)
    assert sum(map(len, (each.on_nodes for each in DemandPlanner().plan(snapshot).demands))) == free


@pytest.mark.parametrize("product", ["Tesla-T4", "NVIDIA-T4", "NVIDIA T4", "Tesla-T4-SHARED"])
def test_a_product_is_known_with_and_without_its_brand(product: str) -> None:
    assert tflops_milli(product) == 65_000
