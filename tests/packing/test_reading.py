"""What pods ask of GPUs, as people write it."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPUShare
from plimsoll.plan.pods import UnreadableShareError, read_share, read_shares, size_by_kind


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
        (a_share_pod(gpu_fraction="0.3331"), GPUShare(milli=334)),
        (a_share_pod(gpu_fraction="0.00001"), GPUShare(milli=1)),
        (a_share_pod(gpu_memory="2000"), GPUShare(memory_mib=2000)),
        (a_share_pod(gpu_memory="2000", gpu_fraction_num_devices="3"), GPUShare(memory_mib=2000, devices=3)),
    ],
)
def test_what_is_asked(pod: Pod, share: GPUShare | None) -> None:
    assert read_share(pod) == share


@pytest.mark.parametrize(
    "value", ["", "half", "0", "0.0", "1", "1.5", "-0.5", "nan", "inf", "0_5", "0,5", "1e99", "½", " 0.5", "٠.٥"]
)
def test_a_fraction_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(UnreadableShareError) as refusal:
        read_share(a_share_pod(gpu_fraction=value))
    assert f"Pod team/pod: gpu-fraction {value!r}" in refusal.value.message
    assert refusal.value.hint


@pytest.mark.parametrize("value", ["", "0", "-5", "2Gi", "2000.5", "٣", " 2000", "1" * 400])
def test_a_memory_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(UnreadableShareError, match="Pod team/pod: gpu-memory"):
        read_share(a_share_pod(gpu_memory=value))


@pytest.mark.parametrize("value", ["", "0", "-1", "two", "1.5", "1000000"])
def test_devices_that_are_none_are_refused(value: str) -> None:
    with pytest.raises(UnreadableShareError, match="Pod team/pod: gpu-fraction-num-devices"):
        read_share(a_share_pod(gpu_fraction="0.5", gpu_fraction_num_devices=value))


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
def test_requests_that_exclude_each_other_or_make_no_sense_are_refused(pod: Pod) -> None:
    with pytest.raises(UnreadableShareError, match="Pod team/pod"):
        read_share(pod)


def test_an_unreadable_pod_hides_no_other() -> None:
    shares = read_shares(
        [a_share_pod("bad", gpu_fraction="x" * 5000), a_share_pod("good", gpu_fraction="0.5"), a_share_pod("cpu")]
    )
    assert [each.pod.name for each in shares.found] == ["good"]
    assert [each.pod.name for each in shares.refused] == ["bad"]
    assert len(shares.refused[0].message) < 200


def test_the_resource_name_is_configurable() -> None:
    pod = Pod.read(
        {
            "metadata": {"name": "pod"},
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"amd.com/gpu": "4"}}}]},
        }
    )
    assert read_share(pod) is None
    assert read_share(pod, "amd.com/gpu") == GPUShare(milli=1000, devices=4)


def test_a_fraction_that_rounds_up_to_a_gpu_is_still_a_share() -> None:
    """No autoscaler sees it, and it has its GPU to itself."""
    share = read_share(a_share_pod(gpu_fraction="0.9999"))
    assert share is not None
    assert (share.milli, share.whole) == (1000, False)


def test_memory_is_a_part_of_the_real_memory() -> None:
    sizes = size_by_kind(GPUShare(memory_mib=20000), {"A100-40": 40960, "A100-80": 81920, "T4": 15360, "new": None})
    assert sizes.milli == {"A100-40": 489, "A100-80": 245}
    assert not sizes.assumed


def test_memory_is_assumed_only_where_nothing_is_known() -> None:
    share = GPUShare(memory_mib=20000)
    assert size_by_kind(share, {"new": None}).milli == {"new": 100}
    assert size_by_kind(share, {"new": None}, assumed_milli=250).milli == {"new": 250}
    assert size_by_kind(share, {"new": None, "T4": 15360}).assumed == ("new",)
    assert size_by_kind(share, {"T4": 15360}).milli == {}


def test_a_fraction_is_the_same_part_everywhere() -> None:
    assert size_by_kind(GPUShare(milli=300), {"T4": 15360, "new": None}).milli == {"T4": 300, "new": 300}


def test_a_share_is_either_part_or_memory() -> None:
    for fields in ({}, {"milli": 1, "memory_mib": 1}, {"milli": 1001}, {"milli": 0}):
        with pytest.raises(ValidationError):
            GPUShare(**fields)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (GPUShare(milli=500), "0.5 of a GPU"),
        (GPUShare(milli=200, devices=2), "0.2 of each of 2 GPUs"),
        (GPUShare(memory_mib=2000), "2000 MiB of a GPU"),
        (GPUShare(milli=1000), "1 GPU"),
        (GPUShare(milli=1000, devices=8), "8 GPUs"),
    ],
)
def test_people_read_it(share: GPUShare, text: str) -> None:
    assert str(share) == text
