"""A template or settings that require what no node of the Workspace is known to have: its pods would stay Pending."""

from typing import Any

import pytest

from plimsoll.labels import CAPACITY_TYPE, ZONE
from plimsoll.model import Reason
from plimsoll.plan import validate
from tests.builders import NC24, a_node, a_node_pool, a_snapshot, a_template, a_workspace, an_environment

ARCH = "kubernetes.io/arch"
SSD = {"nodeSelector": {"disktype": "ssd"}}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def is_in(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def told(spec: dict[str, Any], *objects: Any, nap: bool = True, **workspace: Any) -> list[str]:
    template = a_template()
    template["spec"] |= spec
    given = {"selector": {}, "instance_type": NC24} if nap else {}
    wanted = a_workspace(template=template, **(given | workspace))
    [verdict] = validate(a_snapshot(wanted, *objects, environment=an_environment(nap=nap, nodeLabelPrefixes=[""])))
    assert verdict.accepted, verdict.message
    return [each for each in verdict.warnings if "inference.template requires" in each]


@pytest.mark.parametrize(
    "spec",
    [
        SSD,
        affinity(is_in("disktype", "ssd")),
        {"nodeSelector": {ZONE: "z1"}},
        {"nodeSelector": {CAPACITY_TYPE: "spot"}},
    ],
)
def test_what_new_nodes_are_not_known_to_have(spec: dict[str, Any]) -> None:
    [warning] = told(spec)
    assert "resource.labelSelector" in warning


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": {CAPACITY_TYPE: "on-demand"}},
        {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe"}},
        {"nodeSelector": {"kubernetes.io/os": "linux"}},
        affinity({"key": "disktype", "operator": "NotIn", "values": ["hdd"]}),
        affinity(is_in("disktype", "ssd"), is_in("disktype", "nvme")),
    ],
)
def test_what_new_nodes_have_or_others_write(spec: dict[str, Any]) -> None:
    assert not told(spec)


@pytest.mark.parametrize(
    ("spec", "accepted"),
    [
        ({"nodeSelector": {ARCH: "arm64"}}, False),
        (affinity({"key": ARCH, "operator": "NotIn", "values": ["amd64"]}), False),
        ({"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}}, False),
        ({"nodeSelector": {"kubernetes.io/os": "windows"}}, False),
        ({"nodeSelector": {ARCH: "amd64"}}, True),
        (affinity(is_in(ARCH, "arm64"), is_in(ARCH, "amd64")), True),
    ],
)
def test_what_no_node_of_the_type_can_have_is_refused(spec: dict[str, Any], accepted: bool) -> None:
    """The pods would be Pending for ever beside the node that was bought for them."""
    template = a_template()
    template["spec"] |= spec
    wanted = a_workspace(template=template, selector={}, instance_type="p4d.24xlarge")
    [verdict] = validate(a_snapshot(wanted, environment=an_environment(nap=True)))
    assert (verdict.accepted, verdict.reason is Reason.INVALID_SPEC) == (accepted, not accepted), verdict.message


def test_a_selector_gives_new_nodes_the_label() -> None:
    assert not told(SSD, selector={"disktype": "ssd"})
    assert told(SSD, selector={"disktype": "hdd"})


def test_a_node_pool_says_in_which_zones_and_of_which_architecture_they_are() -> None:
    zoned = a_node_pool("gpu", [NC24], requirements=[is_in(ZONE, "z1")])
    assert not told({"nodeSelector": {ZONE: "z1"}}, zoned)
    assert told({"nodeSelector": {ZONE: "z1"}}, a_node_pool("gpu", [NC24], requirements=[is_in(ZONE, "z1", "z2")]))
    assert told({"nodeSelector": {ARCH: "arm64"}}, a_node_pool("gpu", [NC24], requirements=[is_in(ARCH, "amd64")]))


def test_of_existing_nodes_one_must_be_like_that() -> None:
    nodes = a_node("a"), a_node("b")
    [warning] = told(SSD, *nodes, nap=False)
    assert "disktype In (ssd)" in warning
    assert not told(SSD, *nodes, a_node("c", more_labels={"disktype": "ssd"}), nap=False)
    assert told(affinity(is_in("disktype", "ssd"), is_in("disktype", "nvme")), *nodes, nap=False)


def test_settings_of_pods_are_told_too() -> None:
    required = affinity(is_in("disktype", "ssd"))["affinity"]["nodeAffinity"]
    environment = an_environment(presetPods={"nodeAffinity": required})
    [verdict] = validate(a_snapshot(a_workspace(preset="phi-4-mini-instruct"), a_node(), environment=environment))
    assert verdict.accepted
    assert any("nodeAffinity of the settings" in each for each in verdict.warnings)
