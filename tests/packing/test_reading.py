"""Reads the GPU requests of pods."""

from fractions import Fraction
from typing import Any

import pytest

from plimsoll.cluster.pods import RequestRefusal, read_request, read_shares, size_by_kind
from plimsoll.model.cluster import Device, Pod
from plimsoll.model.kai import GPUShare, shareable_memory_mib


def a_share_pod(name: str = "pod", gpus: Any = None, **annotations: str) -> Pod:
    """A pod of namespace team with these annotations (underscores for dashes) and whole GPUs."""
    resources = {} if gpus is None else {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    manifest = {
        "metadata": {
            "name": name,
            "namespace": "team",
            "annotations": {key.replace("_", "-"): value for key, value in annotations.items()},
        },
        "spec": {"containers": [{"name": "main", **resources}]},
    }
    return Pod.read(manifest)


@pytest.mark.parametrize(
    ("pod", "share"),
    [
        (a_share_pod(), None),
        (a_share_pod(gpus=0), None),
        (a_share_pod(gpus=2), GPUShare(milli=1000, devices=2)),
        (a_share_pod(gpu_fraction="0.5"), GPUShare(milli=500)),
        (a_share_pod(gpu_fraction=".2", gpu_fraction_num_devices="2"), GPUShare(milli=200, devices=2)),
        (a_share_pod(gpu_fraction="5e-1"), GPUShare(milli=500)),
        (a_share_pod(gpu_fraction="0.333"), GPUShare(milli=333)),
        (a_share_pod(gpu_fraction="0.3331"), GPUShare(milli=Fraction(3331, 10))),
        (a_share_pod(gpu_fraction="0.0625"), GPUShare(milli=Fraction(125, 2))),
        (a_share_pod(gpu_fraction="0.00001"), GPUShare(milli=Fraction(1, 100))),
        (a_share_pod(gpu_memory="2000"), GPUShare(memory_mib=2000)),
        (a_share_pod(gpu_memory="2000", gpu_fraction_num_devices="3"), GPUShare(memory_mib=2000, devices=3)),
    ],
)
def test_known_requests(pod: Pod, share: GPUShare | None) -> None:
    assert read_request(pod).share == share


def refusal_of(pod: Pod) -> RequestRefusal:
    request = read_request(pod)
    assert request.share is None
    assert request.refusal is not None
    assert request.refusal.hint
    return request.refusal


@pytest.mark.parametrize(
    "value", ["", "half", "0", "0.0", "1", "1.5", "-0.5", "nan", "inf", "0_5", "0,5", "1e99", "½", " 0.5", "٠.٥"]
)
def test_an_invalid_fraction_is_refused(value: str) -> None:
    assert refusal_of(a_share_pod(gpu_fraction=value)).problem.startswith(f"gpu-fraction {value!r} ")


@pytest.mark.parametrize("value", ["", "0", "-5", "2Gi", "2000.5", "٣", " 2000", "1" * 400])
def test_an_invalid_memory_is_refused(value: str) -> None:
    assert refusal_of(a_share_pod(gpu_memory=value)).problem.startswith("gpu-memory ")


@pytest.mark.parametrize("value", ["", "0", "-1", "two", "1.5", "1000000"])
def test_an_invalid_number_of_devices_is_refused(value: str) -> None:
    refusal = refusal_of(a_share_pod(gpu_fraction="0.5", gpu_fraction_num_devices=value))
    assert refusal.problem.startswith("gpu-fraction-num-devices ")


@pytest.mark.parametrize(
    "pod",
    [
        a_share_pod(gpu_fraction="0.5", gpu_memory="2000"),
        a_share_pod(gpu_fraction="0.5", gpus=1),
        a_share_pod(gpu_memory="2000", gpus=1),
        a_share_pod(gpu_fraction_num_devices="2"),
        a_share_pod(gpus="500m"),
        a_share_pod(gpus=10**9),
        a_share_pod(gpus="many"),
    ],
)
def test_contradictory_requests_are_refused(pod: Pod) -> None:
    assert refusal_of(pod).problem


def test_an_unreadable_pod_hides_no_other() -> None:
    shares = read_shares(
        [a_share_pod("bad", gpu_fraction="x" * 5000), a_share_pod("good", gpu_fraction="0.5"), a_share_pod("cpu")]
    )
    assert [each.pod.name for each in shares.found] == ["good"]
    assert [each.pod.name for each in shares.refused] == ["bad"]
    assert len(shares.refused[0].message) < 200


def test_devices_of_another_vendor_are_those_of_the_resource_where_it_is_configured() -> None:
    pod = Pod.read(
        {
            "metadata": {"name": "pod"},
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"amd.com/gpu": "4"}}}]},
        }
    )
    assert read_request(pod).share == GPUShare(milli=1000, devices=4, resource="amd.com/gpu")
    assert read_request(pod, "amd.com/gpu").share == GPUShare(milli=1000, devices=4)


def test_a_fraction_just_below_a_gpu_is_a_share() -> None:
    """Autoscalers do not see it, and it leaves almost no room."""
    share = read_request(a_share_pod(gpu_fraction="0.9999")).share
    assert share is not None
    assert (share.milli, share.whole) == (Fraction(9999, 10), False)


def kinds(**memory_mib: int | None) -> dict[str, Device]:
    """Kinds of GPU with the name as product, and the MiB of their nodes' label."""
    return {name: Device(name, mib, 1) for name, mib in memory_mib.items()}


def test_memory_is_an_exact_part_of_the_memory_that_is_shared() -> None:
    of = kinds(A100=40960, H100=81920, T4=15360, new=None)
    sizes = size_by_kind(GPUShare(memory_mib=20000), of)
    assert sizes.milli == {"A100": Fraction(200_000, 409), "H100": Fraction(200_000, 819)}
    assert not sizes.assumed


@pytest.mark.parametrize(
    ("label", "shareable"),
    [
        (81920, 81900),
        (40960, 40900),
        (15360, 15300),
        (24576, 24500),
        (16200, 16200),
        (99, 0),
        (2**20 - 1, 1_048_500),
        (80 * 2**30, 81900),
    ],
)
def test_kai_shares_whole_hundreds_of_mib(label: int, shareable: int) -> None:
    """A label of 2^20 and more is in bytes."""
    assert shareable_memory_mib(label) == shareable


def test_memory_beyond_the_whole_hundreds_fits_none() -> None:
    of = kinds(H100=81920)
    assert size_by_kind(GPUShare(memory_mib=81900), of).milli == {"H100": 1000}
    assert size_by_kind(GPUShare(memory_mib=81901), of).milli == {}


def test_tensor_fusion_divides_all_memory() -> None:
    """Its discovery reports the memory of NVML in whole MiB as the capacity of a GPU."""
    of = kinds(H100=81920, old=80 * 2**30)
    assert size_by_kind(GPUShare(memory_mib=20480, by_tensor_fusion=True), of).milli == {"H100": 250, "old": 250}
    assert size_by_kind(GPUShare(memory_mib=81921, by_tensor_fusion=True), of).milli == {}


def test_a_size_is_assumed_only_if_no_memory_is_known() -> None:
    share = GPUShare(memory_mib=20000)
    assert size_by_kind(share, kinds(new=None)).milli == {"new": 100}
    assert size_by_kind(share, kinds(new=None), assumed_milli=250).milli == {"new": 250}
    assert size_by_kind(share, kinds(new=None, T4=15360)).assumed == ("new",)
    assert size_by_kind(share, kinds(T4=15360)).milli == {}


def test_a_fraction_is_the_same_part_everywhere() -> None:
    assert size_by_kind(GPUShare(milli=300), kinds(T4=15360, new=None)).milli == {"T4": 300, "new": 300}


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (GPUShare(milli=500), "0.5 of a GPU"),
        (GPUShare(milli=Fraction(125, 2)), "0.0625 of a GPU"),
        (GPUShare(milli=200, devices=2), "0.2 of each of 2 GPUs"),
        (GPUShare(memory_mib=2000), "2000 MiB of a GPU"),
        (GPUShare(milli=1000), "1 GPU"),
        (GPUShare(milli=1000, devices=8), "8 GPUs"),
    ],
)
def test_shares_have_a_readable_text(share: GPUShare, text: str) -> None:
    assert str(share) == text
