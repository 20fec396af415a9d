"""What is learned from nodes, and from which."""

from typing import Any

import pytest

from plimsoll.cluster.nodes import NodeIndex
from plimsoll.cluster.pools import SeenNodes
from plimsoll.labels import GPU_MEMORY, HOSTNAME, INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model.api import LearnedProfile, ProfileReport
from plimsoll.model.cluster import Node
from tests.builders import a_node_profile
from tests.node_profiles.cluster import FAMILY, FEATURE, PRODUCT, TYPE, learn, pool_node, pool_of, profile_of

LASTING = {
    FAMILY: "ada-lovelace",
    FEATURE: "true",
    "feature.node.kubernetes.io/cpu-model.vendor_id": "AMD",
    "nvidia.com/gpu.compute.major": "8",
    "nvidia.com/mig.capable": "false",
}
OF_ONE_NODE = {
    "nvidia.com/cuda.driver-version.full": "570.1",
    "nvidia.com/cuda.runtime.major": "12",
    "nvidia.com/gfd.timestamp": "1700000000",
    "nvidia.com/gpu.clique": "uuid.0",
    "nvidia.com/gpu.deploy.driver": "true",
    "nvidia.com/gpu-driver-upgrade-state": "upgrade-done",
    "nvidia.com/gpu.uuid": "GPU-1",
    "nvidia.com/vgpu.host-driver-version": "1",
    "feature.node.kubernetes.io/kernel-version.full": "6.1",
    "feature.node.kubernetes.io/system-os_release.ID": "al2023",
    "feature.node.kubernetes.io/local-serial": "17",
    HOSTNAME: "ip-10-0-0-1",
    "topology.kubernetes.io/zone": "a",
    "team": "red",
}


def reports(*objects: Any) -> tuple[ProfileReport, ...]:
    nodes = [each for each in objects if isinstance(each, Node)]
    return SeenNodes(NodeIndex(nodes), [each for each in objects if each not in nodes]).learned()


def learned(*objects: Any) -> LearnedProfile:
    (report,) = reports(*objects)
    return report.learned


def test_lasting_labels_of_discovery_are_learned() -> None:
    found = learned(pool_node(labels=LASTING)).labels
    assert found.items() >= LASTING.items()
    assert found[PRODUCT] == "NVIDIA-L4"


@pytest.mark.parametrize("key", OF_ONE_NODE)
def test_what_one_node_runs_or_is_called_is_not_learned(key: str) -> None:
    found = learned(pool_node(labels=LASTING | {key: OF_ONE_NODE[key]})).labels
    assert key not in found
    assert found == learned(pool_node(labels=LASTING)).labels


def test_amounts_of_the_host_and_of_devices_are_learned() -> None:
    node = pool_node(cpu="3500m", host_memory="14Gi")
    more = {"ephemeral-storage": "80Gi", "hugepages-2Mi": "0", "pods": "58", "nvidia.com/mig-1g.5gb": "2"}
    found = learned(node.model_copy(update={"allocatable": {**node.allocatable, **more}})).allocatable
    assert found == {
        "cpu": "3500m",
        "memory": "14Gi",
        "pods": "58",
        "ephemeral-storage": "80Gi",
        "nvidia.com/gpu": "1",
        "nvidia.com/mig-1g.5gb": "2",
    }


@pytest.mark.parametrize(
    "without",
    [{INSTANCE_TYPE: None}, {NODEPOOL: None}, {GPU_MEMORY: None}, {GPU_MEMORY: "some"}, {PRODUCT: None}],
)
def test_nothing_is_learned_before_discovery_is_complete_or_without_a_node_pool(
    without: dict[str, str | None],
) -> None:
    node = pool_node()
    labels = {key: value for key, value in {**node.labels, **without}.items() if value is not None}
    assert not reports(node.model_copy(update={"labels": labels}))


def test_nothing_is_learned_while_a_mig_configuration_is_applied() -> None:
    state = {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "pending"}
    assert not reports(pool_node(labels=state))


def test_nodes_of_workspaces_are_not_learned_from() -> None:
    """Their labels may be those that a tenant chose."""
    assert not reports(pool_node(labels={WORKSPACE: "ws"}))


def test_most_nodes_count_not_the_first_nor_the_last() -> None:
    odd = pool_node("a-broken", gpus=2)
    found = learned(odd, pool_node("b"), pool_node("c"))
    assert found.labels["nvidia.com/gpu.count"] == "1"
    assert found.node in ("b", "c")


def test_nothing_is_learned_of_nodes_that_go() -> None:
    """They may be of an earlier NodePool of the name, whose nodes were made otherwise: what is declared of new ones
    would count no more."""
    goes = pool_node("a", cpu="2").model_copy(update={"deletion_timestamp": "2026-01-01T01:00:00Z"})
    assert not reports(goes)
    stays = pool_node("b", cpu="4")
    assert learned(goes, goes.model_copy(update={"name": "c"}), stays) == learned(stays)
    declared = a_node_profile("gpu", TYPE, labels={PRODUCT: "NVIDIA-L40S"})
    assert profile_of(pool_of(), declared, goes).device.product == "NVIDIA-L40S"


def test_amounts_of_the_host_are_the_least_that_was_seen() -> None:
    """Of the nodes that exist, in any order, and of those that are gone; until the object is deleted."""
    nodes = [pool_node("a", cpu="4", host_memory="15Gi"), pool_node("b", cpu="3900m", host_memory="16Gi")]
    for several in (nodes, nodes[::-1]):
        found = learned(*several).allocatable
        assert (found["cpu"], found["memory"]) == ("3900m", "15Gi")
    known = learn(nodes)
    assert not reports(pool_node("c", cpu="4", host_memory="15Gi"), *known.values()), "larger ones add nothing"
    smaller = learned(pool_node("c", cpu="4", host_memory="14Gi"), *known.values()).allocatable
    assert (smaller["cpu"], smaller["memory"]) == ("3900m", "14Gi")
    assert learned(pool_node("c", cpu="4", host_memory="16Gi")).allocatable["cpu"] == "4", "forgotten"


def test_a_lost_gpu_and_amounts_that_are_not_measured_yet_are_not_the_least() -> None:
    odd = pool_node("a", gpus=2, cpu="1")
    early = pool_node("d", cpu="0", host_memory="many")
    found = learned(odd, pool_node("b", cpu="4"), pool_node("c", cpu="4"), early).allocatable
    assert found["cpu"] == "4"
    known = learn([pool_node(gpus=2, cpu="1")])
    assert learned(pool_node(cpu="4"), *known.values()).allocatable["cpu"] == "4", "nodes with other devices"


def test_what_is_known_already_is_not_reported_again() -> None:
    known = learn([pool_node()])
    assert not reports(pool_node(), *known.values())
    assert not reports(pool_node("another-name"), *known.values()), "another node that says the same"
    assert len(reports(pool_node(labels={FAMILY: "changed"}), *known.values())) == 1
    assert len(reports(pool_node(of_pool="other"), *known.values())) == 1


def test_a_declared_profile_is_completed_under_its_own_name() -> None:
    declared = a_node_profile("gpu", TYPE, labels={FAMILY: "declared"}).model_copy(update={"name": "mine"})
    (report,) = reports(pool_node(), declared)
    assert (report.name, report.new) == ("mine", False)


def test_each_node_pool_and_type_has_its_own_profile() -> None:
    found = reports(pool_node("a"), pool_node("b", "other"), pool_node("c", instance_type="g6.2xlarge"))
    pairs = [(each.node_pool, each.instance_type, each.new) for each in found]
    assert pairs == [("gpu", "g6.2xlarge", True), ("gpu", TYPE, True), ("other", TYPE, True)]
    assert len({each.name for each in found}) == 3
