"""Workspaces with new nodes of instance types with GPUs of AMD and Intel."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import Plan, Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node, ResourceQuota
from plimsoll.plan import plan, validate
from tests.builders import (
    a_claim,
    a_node_pool,
    a_node_profile,
    a_node_with,
    a_snapshot,
    a_template,
    a_waiting_pod,
    a_workspace,
    an_environment,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AMD, XE, I915 = "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915"
MI250, MAX = "Standard_ND96_MI250_v5", "max-1550"
KAITO, AKS, AWS, KWOK = "kaito.sh", "karpenter.azure.com", "karpenter.k8s.aws", "karpenter.kwok.sh"


def a_pool(name: str = MAX, group: str = KWOK, **fields: Any) -> Any:
    return a_node_pool("theirs", (name,), group=group, **fields)


def declared(name: str = MAX, resource: str = XE, count: int = 8) -> Any:
    return a_node_profile("theirs", name, allocatable={resource: str(count), "cpu": "95", "memory": "1800Gi"})


def learned(name: str = MAX, resource: str = XE, count: int = 4) -> Any:
    said = {"allocatable": {resource: str(count), "cpu": "95"}, "labels": {"gpu.intel.com/product": "Max_1550"}}
    return a_node_profile("theirs", name, learned=said)


def a_node(resource: str = XE, count: int = 8, own: dict[str, str] | None = None) -> Node:
    return a_node_with("n1", {labels.INSTANCE_TYPE: MAX, **(own or {})}, {resource: str(count)})


def planned(workspace: Workspace, *objects: Any, **environment: Any) -> tuple[Verdict, Plan]:
    snapshot = a_snapshot(workspace, *objects, environment=an_environment(nap=True, **environment))
    (verdict,) = verdicts = validate(snapshot)
    return verdict, plan(snapshot, verdicts, NOW)


def requested(workspace: Workspace, *objects: Any, **environment: Any) -> list[dict[str, str]]:
    """What the NodeClaims request."""
    verdict, found = planned(workspace, *objects, **environment)
    assert verdict.accepted, verdict.message
    made = [each.manifest for each in found.creations if each.manifest["kind"] == "NodeClaim"]
    return [claim["spec"].get("resources", {}).get("requests", {}) for claim in made]


@pytest.mark.parametrize("resource", [AMD, XE, I915])
@pytest.mark.parametrize("source", [declared, learned, a_node])
def test_nodes_are_created_of_types_that_a_named_source_describes(resource: str, source: Any) -> None:
    count = 4 if source is learned else 8
    objects = [a_pool(), *([source(resource=resource)] if source is not a_node else [a_node(resource=resource)])]
    assert requested(a_workspace(instance_type=MAX, replicas=2), *objects) == [{resource: str(count)}] * 2
    verdict, _ = planned(a_workspace(instance_type=MAX), *objects)
    assert (verdict.device_resource, verdict.gpus_per_node) == (resource, count)


def test_types_of_the_catalog_need_no_node_pool() -> None:
    assert requested(a_workspace(instance_type="Standard_NG32ads_V620_v1")) == [{AMD: "1"}]
    assert requested(a_workspace(instance_type="g4ad.16xlarge")) == [{AMD: "4"}]
    assert requested(a_workspace(instance_type="standard_nd96isr_mi300x_v5")) == [{AMD: "8"}]


@pytest.mark.parametrize(
    ("group", "name", "resource", "asked"),
    [
        (KAITO, "Standard_NG32ads_V620_v1", AMD, True),
        (KWOK, MAX, XE, True),
        ("example.com", MAX, I915, True),
        (AWS, "g4ad.8xlarge", AMD, True),
        (AWS, "x9.large", XE, False),
        (AKS, "Standard_ND96isr_MI300X_v5", AMD, True),
        (AKS, "Standard_NV28adms_V710_v5", AMD, True),
        (AKS, "Standard_NG32ads_V620_v1", AMD, False),
        ("karpenter.k8s.gcp", MAX, XE, False),
    ],
)
def test_a_provider_is_asked_for_gpus_that_it_counts_only(group: str, name: str, resource: str, asked: bool) -> None:
    """Of a type on which it counts none, it would launch no node for a NodeClaim that requests some."""
    count = {"Standard_NG32ads_V620_v1": 1, "Standard_ND96isr_MI300X_v5": 8}.get(name, 2)
    (found,) = requested(a_workspace(instance_type=name), a_pool(name, group), declared(name, resource, count))
    assert found == ({resource: str(count)} if asked else {})


def test_pods_request_the_resource_of_their_nodes() -> None:
    claim = a_claim("c1", instance_type=MAX, ready=True, node="n1")
    own = {labels.WORKSPACE: "ws", labels.WORKSPACE_NAMESPACE: "default"}
    _, found = planned(a_workspace(instance_type=MAX), a_pool(), declared(), claim, a_node(own=own))
    (workload,) = (each.manifest for each in found.creations if each.manifest["kind"] == "Deployment")
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {XE: "8"}


@pytest.mark.parametrize("provisioner", ["nodeclaim", "static-nodepool"])
def test_a_node_counts_once_its_gpus_are_announced(provisioner: str) -> None:
    workspace = a_workspace(instance_type=MAX)
    own = {labels.WORKSPACE: "ws", labels.WORKSPACE_NAMESPACE: "default"}
    claim = a_claim("c1", workspace, instance_type=MAX, ready=True, node="n1")
    for count in (0, 8):
        node = a_node(count=count, own=own)
        _, found = planned(workspace, a_pool(), declared(), claim, node, provisioner=provisioner)
        assert any(each.manifest["kind"] == "Deployment" for each in found.creations) is bool(count)
        assert not any(each.manifest["kind"] == "NodeClaim" for each in found.creations)


@pytest.mark.parametrize("kind", ["Standard_NG32ads_V620_v1", MAX, "g4ad.xlarge"])
def test_presets_are_refused_by_name(kind: str) -> None:
    verdict, found = planned(a_workspace(instance_type=kind, preset="phi-4"), a_pool(), declared())
    assert verdict.reason is Reason.NOT_SUPPORTED
    assert "phi-4" in verdict.message and (AMD if kind != MAX else XE) in verdict.message
    assert found.empty


@pytest.mark.parametrize("name", [MI250, "Standard_NV8as_v4", "trn1.2xlarge", "dl1.24xlarge", "ct5p-hightpu-4t"])
def test_types_that_no_source_describes_are_refused(name: str) -> None:
    verdict, found = planned(a_workspace(instance_type=name), a_pool(name))
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert "NodeProfile" in verdict.message
    assert found.empty


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        (MAX, {"nvidia.com/gpu": "1"}, "requests nvidia.com/gpu"),
        (MAX, {AMD: "1"}, f"requests {AMD}"),
        (MAX, {XE: "9"}, f"requests 9 {XE}"),
        (MAX, {XE: "8"}, ""),
        (MAX, {XE: "2"}, ""),
        ("Standard_NC24ads_A100_v4", {XE: "1"}, f"requests {XE}"),
        ("Standard_NC24ads_A100_v4", {"nvidia.com/gpu": "1"}, ""),
    ],
)
def test_templates_request_what_their_nodes_have(kind: str, asked: dict[str, str], said: str) -> None:
    template = a_template(resources={"limits": asked})
    verdict, _ = planned(a_workspace(instance_type=kind, template=template), a_pool(), declared())
    assert verdict.accepted is not bool(said), verdict.message
    assert said in verdict.message


def test_shared_gpus_of_intel_are_no_source() -> None:
    shared = a_node(I915, 12, {"gpu.intel.com/device.count": "4"})
    verdict, _ = planned(a_workspace(instance_type=MAX), a_pool(), shared)
    assert not verdict.device_resource


@pytest.mark.parametrize(
    ("limits", "accepted"), [({XE: "8"}, True), ({XE: "7"}, False), ({"nvidia.com/gpu": "0"}, True)]
)
def test_limits_of_a_node_pool_count_its_vendor(limits: dict[str, str], accepted: bool) -> None:
    verdict, _ = planned(a_workspace(instance_type=MAX), a_pool(limits=limits), declared())
    assert verdict.accepted is accepted
    assert accepted or (verdict.reason is Reason.LIMIT_EXCEEDED and f"limits.{XE}" in verdict.message)


def test_limits_of_the_environment_and_its_namespaces_count_all_vendors() -> None:
    workspace = a_workspace(instance_type=MAX)
    for settings in ({"limits": {"gpus": 7}}, {"access": [{"namespaces": ["default"], "gpus": 7}]}):
        verdict, _ = planned(workspace, a_pool(), declared(), **settings)
        assert verdict.reason is Reason.LIMIT_EXCEEDED, verdict.message


@pytest.mark.parametrize(
    ("hard", "accepted"),
    [({XE: "7"}, False), ({XE: "8"}, True), ({I915: "0"}, True), ({"nvidia.com/gpu": "0"}, True), ({}, True)],
)
def test_a_resource_quota_bounds_gpus_of_its_resource(hard: dict[str, str], accepted: bool) -> None:
    """The apiserver would refuse the pods of nodes that were bought."""
    spec = {"hard": {f"requests.{name}": number for name, number in hard.items()}}
    quota = ResourceQuota.read({"metadata": {"name": "gpus", "namespace": "default"}, "spec": spec})
    verdict, _ = planned(a_workspace(instance_type=MAX), a_pool(), declared(), quota)
    assert verdict.accepted is accepted
    assert accepted or f"requests.{XE}" in verdict.message


def test_pods_and_nodes_of_a_namespace_count_by_their_resource() -> None:
    """Of 12, pods have 4 already, and as many of NVIDIA, which count for `access` only."""
    spec = {"hard": {f"requests.{XE}": "12", "requests.nvidia.com/gpu": "4"}}
    quota = ResourceQuota.read({"metadata": {"name": "gpus", "namespace": "default"}, "spec": spec})
    pods = [
        a_waiting_pod(name, namespace="default").model_copy(
            update={
                "annotations": {},
                "containers": ({"name": "main", "resources": {"limits": {name: "4"}}},),
                "node_name": "n1",
                "phase": "Running",
            }
        )
        for name in (XE, "nvidia.com/gpu")
    ]
    workspace = a_workspace(instance_type=MAX)
    for quotas, most, accepted in (([quota], 16, True), ([], 15, False), ([quota], 15, False)):
        settings = {"access": [{"namespaces": ["default"], "gpus": most}]}
        verdict, found = planned(workspace, a_pool(), declared(), *pods, *quotas, **settings)
        assert verdict.accepted is accepted, verdict.message
        assert bool(found.creations) is accepted
    two, _ = planned(a_workspace(instance_type=MAX, replicas=2), a_pool(), declared(), *pods, quota)
    assert "4 are in use, and 16 more" in two.message


def test_vendors_share_a_node_pool_and_not_its_limits() -> None:
    pool = a_node_pool("theirs", (MAX, "Standard_NC24ads_A100_v4"), group=KWOK, limits={XE: "8", "nvidia.com/gpu": "1"})
    of_intel = a_workspace("intel", uid="1", instance_type=MAX, replicas=1)
    of_nvidia = a_workspace("nvidia", uid="2", instance_type="Standard_NC24ads_A100_v4", replicas=2)
    snapshot = a_snapshot(of_intel, of_nvidia, pool, declared(), environment=an_environment(nap=True))
    intel, nvidia = validate(snapshot)
    assert intel.accepted
    assert "limits.nvidia.com/gpu of NodePool theirs is 1, 0 in use, 2 more" in nvidia.message


@pytest.mark.parametrize("kinds", [[MAX, "Standard_NC24ads_A100_v4"], ["Standard_NC24ads_A100_v4", MAX]])
def test_alternatives_may_be_of_two_vendors(kinds: list[str]) -> None:
    verdict, _ = planned(a_workspace(instance_types=kinds), a_pool(), declared())
    assert verdict.accepted, verdict.message
    assert verdict.device_resource == (XE if kinds[0] == MAX else None)


def test_existing_nodes_of_the_type_are_used_first() -> None:
    workspace = a_workspace(instance_type=MAX, selector={"pool": "own"})
    assert not requested(workspace, a_pool(), declared(), a_node(own={"pool": "own"}))
    assert requested(workspace, a_pool(), declared(), a_node(count=0, own={"pool": "own"}))


def test_existing_nodes_that_differ_are_told_apart_by_what_they_have_not_by_labels_of_nvidia() -> None:
    nodes = a_node(), a_node(count=4).model_copy(update={"name": "n2"})
    [verdict] = validate(a_snapshot(a_workspace(selector={labels.INSTANCE_TYPE: MAX}), *nodes))
    assert verdict.reason is Reason.NON_UNIFORM_NODES
    assert f"4 x {XE}, memory not known on n2" in verdict.message
    assert "nvidia.com" not in verdict.message
