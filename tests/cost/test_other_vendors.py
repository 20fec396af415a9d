"""Savings of nodes with GPUs of AMD and Intel: empty ones could go, and none whose devices are in use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cost import Prices, Savings, savings
from plimsoll.labels import INSTANCE_TYPE, WORKSPACE, WORKSPACE_NAMESPACE
from plimsoll.model.cluster import Node, Pod
from tests.builders import a_gpu_node, a_node_with, a_snapshot, a_waiting_pod

NVIDIA, AMD, XE, I915 = "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915"
NEURON, TPU, GAUDI = "aws.amazon.com/neuron", "google.com/tpu", "habana.ai/gaudi"
WHOLE = (AMD, XE, I915)


def a_node(name: str, *resources: str, **own: str) -> Node:
    """With eight devices of each resource; where these are NVIDIA's, with the labels of discovery."""
    described = a_gpu_node(name, "NVIDIA-L4", gpus=8).labels if NVIDIA in resources else {}
    labels = {**described, INSTANCE_TYPE: "-".join(resources).replace("/", "."), **own}
    return a_node_with(name, labels, dict.fromkeys(resources, "8"))


def a_pod(name: str, node: str, **devices: int) -> Pod:
    pod = a_waiting_pod(name)
    container = {"name": "main", "resources": {"limits": {key: str(count) for key, count in devices.items()}}}
    update = {"annotations": {}, "containers": (container,), "node_name": node, "phase": "Running"}
    return pod.model_copy(update=update)


def found_in(*objects: Any) -> Savings:
    return savings(a_snapshot(*objects), Prices({}))


def leaving(found: Savings) -> set[str]:
    return {name for group in found.groups for name in group.removable}


@pytest.mark.parametrize("resource", WHOLE)
def test_an_empty_node_could_go_and_one_in_use_stays(resource: str) -> None:
    """Though the pod would fit the empty one."""
    found = found_in(a_node("empty", resource), a_node("used", resource), a_pod("p", "used", **{resource: 1}))
    assert (leaving(found), found.now, found.saved, found.moving.moves) == ({"empty"}, 16, 8, ())
    assert "team/p" in found.stays["used"]
    assert not found.left_out


def test_the_node_of_a_workspace_stays() -> None:
    own = {WORKSPACE: "chat", WORKSPACE_NAMESPACE: "team"}
    found = found_in(a_node("own", AMD, **own), a_node("free", AMD))
    assert leaving(found) == {"free"}
    assert found.stays == {"own": "it belongs to a Workspace"}


@pytest.mark.parametrize("resource", [NEURON, TPU])
def test_accelerators_for_which_no_node_is_requested_are_not_counted(resource: str) -> None:
    found = found_in(a_node("theirs", resource))
    assert resource in found.left_out["theirs"]
    assert not leaving(found)


def test_shared_gpus_of_intel_are_not_counted() -> None:
    found = found_in(a_node("shared", I915, **{"gpu.intel.com/device.count": "4"}))
    assert set(found.left_out) == {"shared"}


@pytest.mark.parametrize("other", [AMD, GAUDI])
def test_a_node_stays_for_accelerators_beside_its_gpus(other: str) -> None:
    """Its pod would find GPUs of NVIDIA elsewhere, and not the others."""
    both, spare = a_node("both", NVIDIA, other), a_node("spare", NVIDIA)
    for devices in ({other: 1}, {other: 1, NVIDIA: 1}):
        found = found_in(both, spare, a_pod("p", "both", **devices))
        assert "both" not in leaving(found)


@given(
    st.lists(
        st.tuples(st.sampled_from((*WHOLE, NVIDIA)), st.lists(st.integers(1, 4), max_size=2)), min_size=1, max_size=6
    ),
    st.booleans(),
)
def test_no_node_goes_whose_devices_of_another_vendor_are_in_use(
    nodes: list[tuple[str, list[int]]], any_gpu: bool
) -> None:
    objects: list[Any] = []
    for number, (resource, counts) in enumerate(nodes):
        objects.append(a_node(f"n{number}", resource))
        objects += [a_pod(f"p{number}-{i}", f"n{number}", **{resource: count}) for i, count in enumerate(counts)]
    found = savings(a_snapshot(*objects), Prices({}), any_gpu=any_gpu)
    for number, (resource, counts) in enumerate(nodes):
        if resource != NVIDIA:
            assert (f"n{number}" in leaving(found)) is not bool(counts)
    targets = {each.target for each in found.moving.moves}
    assert all(nodes[int(target[1:])][0] == NVIDIA for target in targets)
    assert found.least <= found.repacked <= found.now
