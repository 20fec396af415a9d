"""Existing nodes with MIG partitions: their labels, and the Workspaces that may use the slices."""

from typing import Any

import pytest

from plimsoll.cluster.profiles import label_form, read_discovery
from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node
from plimsoll.plan import validate
from tests.builders import a_node, a_snapshot, a_workspace, gpu_labels

CONFIG = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
STRATEGY = "nvidia.com/mig.strategy"
SINGLE = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"


def slices(profile: str, count: int, memory: int | None = None) -> dict[str, str]:
    """Labels of slices with the strategy `mixed` and an applied configuration."""
    found = {
        STRATEGY: "mixed",
        CONFIG: f"all-{profile}",
        STATE: "success",
        f"nvidia.com/mig-{profile}.count": str(count),
        f"nvidia.com/mig-{profile}.product": f"NVIDIA-A100-SXM4-80GB-MIG-{profile}",
    }
    return found | ({f"nvidia.com/mig-{profile}.memory": str(memory)} if memory else {})


def mixed(
    name: str = "node", profile: str = "2g.24gb", count: int = 2, memory: int | None = None, **state: Any
) -> Node:
    return a_node(name, product=None, count=None, memory=None, more_labels=slices(profile, count, memory), **state)


def single(name: str = "node", **labels: str) -> Node:
    more = {STRATEGY: "single", CONFIG: "all-1g.10gb", STATE: "success"} | labels
    return a_node(name, product=SINGLE, count=7, memory=9856, more_labels=more)


def on_slices(profile: str, gib: float | None = None, **fields: Any) -> Workspace:
    return a_workspace(partition={"mode": "mig", "profile": profile}, gpu_memory_gib=gib, **fields)


def verdict_of(workspace: Workspace, *nodes: Node) -> Verdict:
    [verdict] = validate(a_snapshot(workspace, *nodes))
    return verdict


@pytest.mark.parametrize(
    ("labels", "active", "changing"),
    [
        ({CONFIG: "all-1g.10gb", STATE: "success"}, True, False),
        ({CONFIG: "all-1g.10gb", STATE: "pending"}, False, True),
        ({CONFIG: "all-1g.10gb", STATE: "failed"}, False, True),
        ({CONFIG: "all-disabled", STATE: "success"}, False, False),
        ({CONFIG: "all-disabled", STATE: "pending"}, False, True),
        ({CONFIG: "all-1g.10gb"}, False, False),
        (slices("1g.10gb", 7), True, False),
        (slices("1g.10gb", 0) | {CONFIG: ""}, False, False),
        ({"nvidia.com/gpu.product": SINGLE, "nvidia.com/gpu.count": "7"}, True, False),
        ({}, False, False),
    ],
)
def test_mig_is_active_if_slices_are_labelled(labels: dict[str, str], active: bool, changing: bool) -> None:
    found = read_discovery(gpu_labels() | labels, {}).mig
    assert (found.active, found.changing) == (active, changing)


def test_slices_have_their_labelled_memory_else_that_of_the_profile() -> None:
    [labelled] = read_discovery(slices("1g.10gb", 7, 9856), {}).devices
    [named] = read_discovery(slices("1g.10gb", 7), {}).devices
    assert (labelled.count, labelled.memory_mib, named.memory_mib) == (7, 9856, 9102)
    assert labelled.resource == "nvidia.com/mig-1g.10gb"


def test_a_profile_with_a_plus_is_labelled_with_a_dot() -> None:
    assert label_form("1g.10gb+me") == "1g.10gb.me"
    [found] = read_discovery(slices("1g.10gb.me", 1), {}).devices
    assert (found.profile, found.resource) == ("1g.10gb.me", "nvidia.com/mig-1g.10gb.me")


@pytest.mark.parametrize("profile", ["1g.24gb-me", "1g.24gb+me.all", "2g.48gb+gfx"])
def test_slices_with_other_engines_are_slices_with_each_strategy(profile: str) -> None:
    labelled = label_form(profile)
    one = a_node(product=f"RTX-PRO-6000-MIG-{labelled}", count=4, memory=24192, more_labels={STRATEGY: "single"})
    configured = a_node(more_labels={CONFIG: f"all-{labelled}", STATE: "success"})
    for node in (one, configured, mixed(profile=labelled, count=4)):
        verdict = verdict_of(on_slices(profile, 20), node)
        assert verdict.accepted, verdict.message
        assert verdict.gpus_per_node == 1
    assert verdict_of(a_workspace(gpu_memory_gib=40), one).reason is Reason.INSUFFICIENT_GPU_MEMORY


def test_a_product_that_ends_like_a_profile_is_read() -> None:
    assert (
        read_discovery({"nvidia.com/gpu.product": "A-MIG-1g.10gbx", "nvidia.com/gpu.count": "7"}, {}).mig.slices == ()
    )


@pytest.mark.parametrize("node", [mixed(), a_node(more_labels={CONFIG: "all-2g.24gb", STATE: "success"})])
def test_a_replica_uses_one_slice_that_it_fits(node: Node) -> None:
    verdict = verdict_of(on_slices("2g.24gb", preset="phi-4-mini-instruct"), node)
    assert verdict.accepted, verdict.message
    assert (verdict.per_replica_node_count, verdict.target_node_count) == (1, 1)
    assert (verdict.device_resource, verdict.gpus_per_node) == ("nvidia.com/mig-2g.24gb", 1)


@pytest.mark.parametrize(
    "workspace",
    [on_slices("1g.10gb", preset="phi-4-mini-instruct"), on_slices("1g.10gb", 10.1)],
    ids=["by the estimate", "by the declared need"],
)
def test_a_slice_that_is_too_small_is_refused(workspace: Workspace) -> None:
    refused = verdict_of(workspace, mixed(profile="1g.10gb", count=7))
    assert refused.reason is Reason.INSUFFICIENT_GPU_MEMORY
    assert refused.message.startswith("Insufficient total GPU memory: one slice of node node has a total of 9102 MiB")
    assert "a larger MIG profile" in refused.message


def test_replicas_share_a_node_of_slices() -> None:
    verdict = verdict_of(on_slices("1g.10gb", 8, replicas=9), mixed("a", "1g.10gb", 7), mixed("b", "1g.10gb", 7))
    assert (verdict.target_node_count, verdict.allocated_nodes) == (2, ("a", "b"))


def test_slices_of_strategy_single_are_requested_as_gpus() -> None:
    verdict = verdict_of(on_slices("1g.10gb", 8), single())
    assert verdict.accepted, verdict.message
    assert (verdict.device_resource, verdict.gpus_per_node) == (None, 1)


def test_without_a_partition_a_node_of_one_profile_offers_its_slices() -> None:
    verdict = verdict_of(a_workspace(gpu_memory_gib=9), single())
    assert verdict.accepted, verdict.message
    assert (verdict.gpus_per_node, verdict.target_node_count) == (1, 1)
    assert any("resource.partition" in warning for warning in verdict.warnings)
    assert verdict_of(a_workspace(gpu_memory_gib=16), single()).reason is Reason.INSUFFICIENT_GPU_MEMORY


def test_without_a_partition_a_node_of_slices_is_refused_with_what_to_change() -> None:
    refused = verdict_of(a_workspace(), mixed())
    assert refused.reason is Reason.NO_USABLE_NODES
    for reported in ("node (partitioned by MIG", "all-2g.24gb", "resource.partition to mode mig", "2g.24gb"):
        assert reported in refused.message


def test_a_node_of_slices_among_whole_ones_is_skipped() -> None:
    verdict = verdict_of(a_workspace(), mixed("cut"), a_node("whole"))
    assert verdict.node_names == ("whole",)
    assert any("cut (partitioned by MIG" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("state", ["pending", "rebooting", "failed"])
@pytest.mark.parametrize("workspace", [a_workspace(), on_slices("2g.24gb")], ids=["whole", "slices"])
def test_a_pending_mig_configuration_makes_a_node_unusable(state: str, workspace: Workspace) -> None:
    refused = verdict_of(workspace, a_node(more_labels=slices("2g.24gb", 2) | {STATE: state}))
    assert refused.reason is Reason.NO_USABLE_NODES
    assert f"{STATE} is {state!r}" in refused.message


def test_another_profile_is_refused_with_the_existing_ones() -> None:
    refused = verdict_of(on_slices("3g.40gb"), mixed())
    assert refused.reason is Reason.NO_USABLE_NODES
    assert "no 3g.40gb slices" in refused.message
    assert "2g.24gb" in refused.message


def test_slices_of_nodes_without_mig_are_refused_by_the_label_that_is_missing() -> None:
    refused = verdict_of(on_slices("1g.10gb+me"), a_node())
    assert refused.reason is Reason.GPU_LABELS_INVALID
    assert "label nvidia.com/mig-1g.10gb.me.count is missing" in refused.message


def test_a_partition_with_several_nodes_per_replica_is_refused() -> None:
    refused = verdict_of(on_slices("2g.24gb", 16, per_replica=2), mixed())
    assert refused.reason is Reason.INVALID_SPEC
    assert "perReplicaNodeCount" in refused.message


def test_an_accelerator_partition_uses_some_of_the_gpus() -> None:
    workspace = a_workspace(partition={"mode": "accelerator", "count": 2}, gpu_memory_gib=160, replicas=3)
    verdict = verdict_of(workspace, *(a_node(f"n-{n}", count=4) for n in range(3)))
    assert verdict.accepted, verdict.message
    assert (verdict.gpus_per_node, verdict.target_node_count, verdict.allocated_nodes) == (2, 2, ("n-0", "n-1"))
    assert verdict_of(workspace, a_node(count=1)).reason is Reason.NO_USABLE_NODES
    more = a_workspace(partition={"mode": "accelerator", "count": 2}, gpu_memory_gib=161)
    assert verdict_of(more, a_node(count=4)).reason is Reason.INSUFFICIENT_GPU_MEMORY


@pytest.mark.parametrize("profile", ["1g.10gb", "2g.20gb"])
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_nodes_with_other_slices_do_not_count_as_equal_without_a_configuration(
    profile: str, names: tuple[str, str]
) -> None:
    """As slices that somebody cut by hand, without the MIG manager, which labels the configuration."""
    cut = [
        {label: value for label, value in slices(of, count).items() if label not in (CONFIG, STATE)}
        for of, count in (("1g.10gb", 7), ("2g.20gb", 3))
    ]
    nodes = [
        a_node(name, product=None, count=None, memory=None, more_labels=labels)
        for name, labels in zip(names, cut, strict=True)
    ]
    verdict = verdict_of(on_slices(profile), *nodes)
    assert verdict.accepted, verdict.message
    assert verdict.allocated_nodes == (names[0 if profile == "1g.10gb" else 1],)
