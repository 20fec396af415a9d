"""Labels of GPU Feature Discovery are read without rounding."""

import pytest

from plimsoll.cluster.profiles import GPU_REPLICAS, DiscrepancyReason, InvalidGpuLabel, read_discovery
from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT
from plimsoll.model.cluster import Device
from tests.builders import gpu_labels


def parsed(labels: dict[str, str]) -> Device:
    found = read_discovery(labels, {})
    assert found.complete, str(found.invalid)
    (device,) = found.devices
    return device


def invalid(labels: dict[str, str]) -> InvalidGpuLabel:
    found = read_discovery(labels, {})
    assert found.invalid is not None
    assert not found.complete
    return found.invalid


def in_bytes(labels: dict[str, str]) -> bool:
    return DiscrepancyReason.INVALID_LABEL in {finding.reason for finding in read_discovery(labels, {}).findings}


@pytest.mark.parametrize(("memory", "count"), [(32768, 2), (81920, 1), (81559, 8), (23028, 4)])
def test_memory_of_a_gpu_is_read_as_it_is(memory: int, count: int) -> None:
    found = parsed(gpu_labels(memory=memory, count=count))
    assert (found.memory_mib, found.count) == (memory, count)


@pytest.mark.parametrize("label", [GPU_PRODUCT, GPU_COUNT, GPU_MEMORY])
def test_a_missing_label_is_named(label: str) -> None:
    labels = gpu_labels()
    del labels[label]
    found = invalid(labels)
    assert (found.label, found.value) == (label, None)
    assert str(found) == f"label {label} is missing"


@pytest.mark.parametrize("label", [GPU_COUNT, GPU_MEMORY])
@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1.5", "80GB", " 8", "٣", "1e3", "0x10"])
def test_an_invalid_number_is_named_with_its_value(label: str, value: str) -> None:
    found = invalid(gpu_labels() | {label: value})
    assert (found.label, found.value) == (label, value)
    assert label in str(found)
    assert repr(value) in str(found)


def test_an_empty_product_is_refused() -> None:
    found = invalid(gpu_labels(product=""))
    assert found.label == GPU_PRODUCT


def test_bytes_of_an_old_release_become_mib() -> None:
    labels = gpu_labels(memory=81559 * 2**20)
    assert parsed(labels).memory_mib == 81559
    assert in_bytes(labels)
    assert parsed(gpu_labels(memory=16945512448)).memory_mib == 16160, "a V100: cut off as GFD does"


@pytest.mark.parametrize(
    ("text", "mib"), [("80Gi", 81920), ("81559Mi", 81559), ("80GiB", 81920), ("23580672Ki", 23028), ("1Ti", 2**20)]
)
def test_memory_may_have_a_unit(text: str, mib: int) -> None:
    assert parsed(gpu_labels(memory=text)).memory_mib == mib
    assert not in_bytes(gpu_labels(memory=text))


@pytest.mark.parametrize("value", ["-80Gi", "0Gi", "1Ki", "80G", "Gi", "17Ti", str(2**24 + 1), str(2**45), "9" * 60])
def test_impossible_memory_is_refused(value: str) -> None:
    found = invalid(gpu_labels(memory=value))
    assert (found.label, found.value) == (GPU_MEMORY, value)


def test_an_impossible_count_is_refused() -> None:
    found = invalid(gpu_labels(count="9" * 60))
    assert "no node has more than 1024" in str(found)


@pytest.mark.parametrize(("replicas", "devices"), [("4", 8), ("1", 2), ("0", 2)])
def test_shared_gpus_are_offered_as_more_devices(replicas: str, devices: int) -> None:
    assert parsed(gpu_labels(count=2) | {GPU_REPLICAS: replicas}).announced == devices


@pytest.mark.parametrize("replicas", ["-1", "some", "99999"])
def test_wrong_replicas_are_refused(replicas: str) -> None:
    found = invalid(gpu_labels() | {GPU_REPLICAS: replicas})
    assert found.label == GPU_REPLICAS
