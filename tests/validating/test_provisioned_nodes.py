"""Verdicts with node auto-provisioning: the instance type, and the number of nodes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node
from plimsoll.plan import plan, validate
from tests.builders import (
    A100,
    NC24,
    a_claim,
    a_node,
    a_node_pool,
    a_pod,
    a_snapshot,
    a_template,
    a_workspace,
    an_environment,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def verdict_of(workspace: Workspace, *objects: Any, **environment: Any) -> Verdict:
    [verdict] = validate(a_snapshot(workspace, *objects, environment=an_environment(nap=True, **environment)))
    return verdict


@pytest.mark.parametrize(
    ("nap", "instance_type", "reason"),
    [
        (False, None, Reason.ACCEPTED),
        (False, NC24, Reason.INSTANCE_TYPE_FORBIDDEN),
        (True, None, Reason.INSTANCE_TYPE_REQUIRED),
        (True, NC24, Reason.ACCEPTED),
    ],
)
def test_instance_type_and_mode(nap: bool, instance_type: str | None, reason: Reason) -> None:
    [verdict] = validate(a_snapshot(a_workspace(instance_type=instance_type), a_node(), nap=nap))
    assert verdict.reason is reason


def test_a_missing_instance_type_is_refused_with_a_proposal() -> None:
    verdict = verdict_of(a_workspace(preset="phi-4"))
    assert verdict.message.startswith("instanceType is required when node auto-provisioning is enabled")
    assert "for example " in verdict.message


def test_proposed_types_are_available_in_the_environment() -> None:
    pool = a_node_pool("gpus", ["Standard_ND96isr_H200_v5"])
    assert "for example Standard_ND96isr_H200_v5" in verdict_of(a_workspace(preset="phi-4"), pool).message


def test_an_unknown_instance_type_is_refused_with_similar_names() -> None:
    verdict = verdict_of(a_workspace(instance_type="Standard_NC24ads_A100_v3"))
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert verdict.message.startswith("Unsupported instance type 'Standard_NC24ads_A100_v3'")
    assert NC24 in verdict.message


@pytest.mark.parametrize("name", [NC24.lower(), NC24.upper()])
def test_case_does_not_matter(name: str) -> None:
    assert verdict_of(a_workspace(instance_type=name)).accepted


def test_a_type_that_a_node_pool_allows_is_known() -> None:
    assert not verdict_of(a_workspace(instance_type="metal-8")).accepted
    assert verdict_of(a_workspace(instance_type="Metal-8"), a_node_pool("metal", ["metal-8"])).accepted


def test_a_type_that_a_live_node_has_is_known_but_needs_a_node_class() -> None:
    workspace = a_workspace(instance_type="metal-8", preset="phi-4")
    node = a_node(instance_type="metal-8")
    without = verdict_of(workspace, node)
    assert without.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert "nodeClassRef" in without.message
    assert verdict_of(workspace, node, a_node_pool("any")).accepted


@pytest.mark.parametrize(
    ("fields", "instance_type", "per_replica", "target"),
    [
        pytest.param({"inference": False, "count": 3}, NC24, 1, 3, id="count without inference"),
        pytest.param({"inference": False}, NC24, 1, 1, id="neither count nor inference"),
        pytest.param(
            {"preset": "phi-4", "count": 4}, "Standard_NC96ads_A100_v4", 1, 1, id="count is not read for a preset"
        ),
        pytest.param({"count": 4}, NC24, 1, 4, id="count of a template"),
        pytest.param({"count": 3, "per_replica": 2}, NC24, 2, 4, id="count of a template whose replicas span nodes"),
        pytest.param({"count": 2, "replicas": 3}, NC24, 1, 3, id="more replicas than count"),
        pytest.param({"count": 2, "replicas": 1}, NC24, 1, 2, id="as many as the cluster sets where none are given"),
        pytest.param({"count": 2, "replicas": 0}, NC24, 1, 0, id="no replicas, whatever count is"),
        pytest.param({"preset": "phi-4-mini-instruct"}, "Standard_NV36ads_A10_v5", 1, 1, id="fits a small GPU"),
        pytest.param({"preset": "qwen2.5-coder-32b-instruct"}, NC24, 2, 2, id="two nodes for a replica"),
        pytest.param({"preset": "llama-3.3-70b-instruct", "replicas": 2}, NC24, 3, 6, id="two replicas of three"),
        pytest.param({"gpu_memory_gib": 8, "replicas": 2}, NC24, 1, 2, id="replicas are not packed together"),
        pytest.param({"replicas": 0}, NC24, 1, 0, id="no replicas"),
        pytest.param({"preset": "llama-3.3-70b-instruct", "per_replica": 4}, NC24, 4, 4, id="the spec overrides"),
    ],
)
def test_the_number_of_nodes(fields: dict[str, Any], instance_type: str, per_replica: int, target: int) -> None:
    verdict = verdict_of(a_workspace(instance_type=instance_type, **fields))
    assert verdict.accepted, verdict.message
    assert (verdict.per_replica_node_count, verdict.target_node_count) == (per_replica, target)


def test_fewer_nodes_per_replica_than_estimated_are_a_warning() -> None:
    verdict = verdict_of(a_workspace(instance_type=NC24, preset="llama-3.3-70b-instruct", per_replica=2))
    assert verdict.accepted
    assert any("perReplicaNodeCount is 2" in warning for warning in verdict.warnings)


def test_fewer_nodes_for_a_replica_than_its_weights_need_are_refused() -> None:
    verdict = verdict_of(a_workspace(instance_type=NC24, preset="llama-3.3-70b-instruct", per_replica=1))
    assert verdict.reason is Reason.INSUFFICIENT_GPU_MEMORY


def test_a_model_that_cannot_span_must_fit_one_node() -> None:
    verdict = verdict_of(a_workspace(instance_type="Standard_NV36ads_A10_v5", preset="phi-4"))
    assert verdict.reason is Reason.INSUFFICIENT_GPU_MEMORY
    assert "Standard_NV36ads_A10_v5" in verdict.message


def test_live_labels_override_the_catalog_with_a_warning() -> None:
    verdict = verdict_of(a_workspace(instance_type=NC24), a_node(instance_type=NC24, memory=40960))
    assert "40960 MiB" in verdict.message
    assert any(NC24 in warning for warning in verdict.warnings)


P4D = "p4d.24xlarge"
"""8 x A100 of 40 GiB."""


def sliced(replicas: int) -> dict[str, str]:
    """Labels of a node whose GPUs are shared by time-slicing."""
    return {"nvidia.com/gpu.replicas": str(replicas), "nvidia.com/gpu.sharing-strategy": "time-slicing"}


@pytest.mark.parametrize(
    ("deviating", "others"),
    [
        ({"count": 7}, 1),
        ({"count": 9}, 2),
        ({"memory": 20480}, 1),
        ({"product": "Tesla-T4"}, 2),
        ({"product": f"{A100}-SHARED", "more_labels": sliced(4)}, 1),
        ({"more_labels": {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig-1g.5gb.count": "56"}, "count": 9}, 1),
    ],
)
def test_a_node_unlike_the_others_of_its_type_changes_nothing(deviating: dict[str, Any], others: int) -> None:
    def figures(*nodes: Node) -> Any:
        """What the workload and its nodes depend on."""
        found = verdict_of(a_workspace(instance_type=P4D, preset="phi-4", replicas=3), *nodes, a_node_pool("p", [P4D]))
        return found.gpus_per_node, found.target_node_count, found.serving, found.warnings

    usual: dict[str, Any] = {"product": A100, "count": 8, "memory": 40960, "instance_type": P4D}
    nodes = [a_node(f"node-{number}", **usual) for number in range(others)]
    assert figures(a_node("a-first", **(usual | deviating)), *nodes) == figures(*nodes)


@pytest.mark.parametrize(("own", "others"), [(1, 4), (4, 1)])
@pytest.mark.parametrize("provisioned", [True, False])
def test_pods_request_the_devices_of_their_own_nodes(own: int, others: int, provisioned: bool) -> None:
    def shared(name: str, replicas: int) -> Node:
        return a_node(name, instance_type=NC24, allocatable=replicas, more_labels=sliced(replicas))

    workspace = a_workspace(instance_type=NC24, replicas=2)
    theirs = [shared(f"a-{number}", others) for number in range(3)]
    assert verdict_of(workspace, *theirs).gpus_per_node == others, "until it has a node"
    mine = a_claim("c", node="mine", ready=True) if provisioned else a_pod("p", workspace, "mine", devices=own)
    assert verdict_of(workspace, *theirs, shared("mine", own), mine).gpus_per_node == own
    going = a_claim("d", node="a-0", ready=True, deleting=True)
    assert verdict_of(workspace, *theirs, shared("mine", own), mine, going).gpus_per_node == own
    both = a_claim("d", node="a-0", ready=True)
    assert verdict_of(workspace, *theirs, shared("mine", own), mine, both).gpus_per_node == 1, "every node has as many"


@pytest.mark.parametrize(
    ("instance_type", "requested", "reason"),
    [
        (NC24, "1", Reason.ACCEPTED),
        (NC24, "2", Reason.INVALID_SPEC),
        (NC24, "some", Reason.INVALID_SPEC),
        (P4D, "8", Reason.ACCEPTED),
        ("metal-8", "8", Reason.ACCEPTED),
    ],
)
def test_a_template_fits_a_node_of_its_type(instance_type: str, requested: str, reason: Reason) -> None:
    template = a_template(resources={"limits": {"nvidia.com/gpu": requested}})
    pool = a_node_pool("p", [NC24, P4D, "metal-8"])
    workspace = a_workspace(instance_type=instance_type, template=template)
    assert verdict_of(workspace, pool).reason is reason


def test_a_template_may_request_every_device_of_its_own_nodes() -> None:
    workspace = a_workspace(instance_type=NC24, template=a_template(resources={"limits": {"nvidia.com/gpu": "4"}}))
    others = [a_node(f"a-{number}", instance_type=NC24) for number in range(2)]
    assert verdict_of(workspace, *others).reason is Reason.INVALID_SPEC
    mine = a_node("mine", instance_type=NC24, more_labels=sliced(4))
    assert verdict_of(workspace, *others, mine, a_claim("c", node="mine", ready=True)).accepted
    whole = a_workspace(instance_type=P4D, template=a_template(resources={"limits": {"nvidia.com/gpu": "8"}}))
    assert verdict_of(whole, a_node_pool("p", [P4D]), a_node(instance_type=P4D, count=7)).accepted, "a new one has 8"


def test_a_type_of_unknown_gpus_needs_nodes_per_replica_for_a_model() -> None:
    pool = a_node_pool("metal", ["metal-8"])
    verdict = verdict_of(a_workspace(instance_type="metal-8", preset="phi-4"), pool)
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert "perReplicaNodeCount" in verdict.message
    assert verdict_of(a_workspace(instance_type="metal-8", preset="phi-4", per_replica=1), pool).accepted


@pytest.mark.parametrize(("conditions", "accepted"), [(64, True), (65, False), (3000, False)])
def test_no_node_claim_is_requested_with_more_requirements_than_karpenter_takes(
    conditions: int, accepted: bool
) -> None:
    """The apiserver refuses one with more than 100, in each round."""
    expressions = [{"key": f"k{number}", "operator": "Exists"} for number in range(conditions)]
    verdict = verdict_of(a_workspace(instance_type=NC24, selector={}, expressions=expressions))
    assert verdict.accepted is accepted
    assert accepted or f"matchExpressions has {conditions} conditions" in verdict.message


def test_an_empty_selector_is_accepted() -> None:
    assert verdict_of(a_workspace(instance_type=NC24, selector={})).accepted


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ({"kubernetes.io/hostname": "one"}, Reason.SELECTOR_RESERVED),
        ({"node.kubernetes.io/instance-type": "other"}, Reason.INVALID_SPEC),
        ({"kubernetes.io/os": "windows"}, Reason.INVALID_SPEC),
        ({"node.kubernetes.io/instance-type": NC24}, Reason.ACCEPTED),
    ],
)
def test_a_selector_that_no_new_node_could_meet_is_refused(selector: dict[str, str], reason: Reason) -> None:
    assert verdict_of(a_workspace(instance_type=NC24, selector=selector)).reason is reason


@pytest.mark.parametrize(
    ("key", "operator", "value", "reason"),
    [
        ("kubernetes.io/arch", "In", "arm64", Reason.INVALID_SPEC),
        ("kubernetes.io/arch", "In", "amd64", Reason.ACCEPTED),
        ("karpenter.k8s.aws/instance-family", "NotIn", "p4d", Reason.INVALID_SPEC),
        ("karpenter.k8s.aws/instance-gpu-name", "In", "h100", Reason.INVALID_SPEC),
        ("karpenter.k8s.aws/instance-gpu-name", "In", "a100", Reason.ACCEPTED),
        ("karpenter.k8s.aws/instance-hypervisor", "In", "nitro", Reason.ACCEPTED),
    ],
)
def test_a_selector_that_no_node_of_the_type_can_meet_is_refused(
    key: str, operator: str, value: str, reason: Reason
) -> None:
    """Karpenter would launch nothing, again and again."""
    wanted = [{"key": key, "operator": operator, "values": [value]}]
    assert verdict_of(a_workspace(instance_type=P4D, selector={}, expressions=wanted)).reason is reason


def test_reserved_labels_in_a_template_are_refused() -> None:
    template = a_template() | {"metadata": {"labels": {"plimsoll.dev/workspace": "other"}}}
    verdict = verdict_of(a_workspace(instance_type=NC24, template=template))
    assert verdict.reason is Reason.INVALID_SPEC
    assert "plimsoll.dev/workspace" in verdict.message


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("trn1.2xlarge", "Trainium"),
        ("TRN2.48xlarge", "Trainium"),
        ("dl1.24xlarge", "Gaudi"),
        ("Standard_NG8ads_V620_v1", "V620"),
        ("standard_nd96_mi250_v5", "Instinct"),
        ("Standard_NV8as_v4", "MI25"),
    ],
)
def test_types_of_other_vendors_are_refused_by_name(name: str, product: str) -> None:
    [verdict] = validate(a_snapshot(a_workspace(instance_type=name, gpu_memory_gib=4), nap=True))
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert name in verdict.message and product in verdict.message


def test_azures_own_name_and_kaitos_spelling_are_one_type() -> None:
    for name in ("Standard_ND96asr_v4", "Standard_ND96asr_A100_v4", "standard_nd96asr_a100_v4"):
        snapshot = a_snapshot(a_workspace(instance_type=name, preset="phi-4"), nap=True)
        [verdict] = verdicts = validate(snapshot)
        assert verdict.accepted, verdict.message
        [creation] = plan(snapshot, verdicts, NOW).creations
        assert creation.manifest["spec"]["requirements"][0]["values"] == ["Standard_ND96asr_v4"]


def test_unknown_names_of_azure_are_accepted_where_a_node_pool_allows_them() -> None:
    workspace = a_workspace(instance_type="Standard_ND99isr_X300_v9", preset="phi-4")
    pool = a_node_pool("any", group="karpenter.azure.com")
    [verdict] = validate(a_snapshot(workspace, pool, nap=True))
    assert verdict.accepted and any("are not known" in warning for warning in verdict.warnings), verdict.message
    family = {"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D"]}
    other = a_node_pool("any", group="karpenter.azure.com", requirements=[family])
    for pools in ((), (other,)):
        [verdict] = validate(a_snapshot(workspace, *pools, nap=True))
        assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE


def test_a_server_on_unknown_gpus_requests_its_estimated_gpus() -> None:
    name = "Standard_ND99_new_v9"
    workspace = a_workspace(instance_type=name, preset="phi-4", selector={})
    claim = a_claim("own", workspace, ready=True, node="new", instance_type=name)
    plain = a_node("new", None, product=None, count=None, memory=None, instance_type=name, more_labels=claim.labels)
    pool = a_node_pool("any", group="karpenter.azure.com")
    snapshot = a_snapshot(workspace, claim, plain, pool, nap=True)
    [workload] = [
        each.manifest for each in plan(snapshot, validate(snapshot), NOW).creations if each.key.kind != "Service"
    ]
    [server] = workload["spec"]["template"]["spec"]["containers"]
    assert server["resources"]["limits"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize("name", ["g7.2xlarge", "g4-standard-24"])
def test_a_model_is_not_sized_on_memory_that_no_source_knows(name: str) -> None:
    group = "karpenter.k8s.aws" if name.startswith("g7") else "karpenter.k8s.gcp"
    pool = a_node_pool("pool", [name], group=group)
    [verdict] = validate(a_snapshot(a_workspace(instance_type=name, preset="phi-4"), pool, nap=True))
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert "the memory of the GPUs" in verdict.message
    declared = a_workspace(instance_type=name, preset="phi-4", per_replica=1)
    [verdict] = validate(a_snapshot(declared, pool, nap=True))
    assert verdict.accepted and any("is not known" in warning for warning in verdict.warnings)


def test_a_type_that_karpenter_launches_for_no_gpu_is_refused() -> None:
    pool = a_node_pool("pool", ["g6f.4xlarge"], group="karpenter.k8s.aws")
    [verdict] = validate(a_snapshot(a_workspace(instance_type="g6f.4xlarge", preset="phi-4"), pool, nap=True))
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert "counts no GPU" in verdict.message


def test_a_machine_type_to_which_gpus_are_attached_names_the_labels_to_declare() -> None:
    for name in ("n1-standard-8", "n1-standard-8+1xnvidia-tesla-t4"):
        [verdict] = validate(a_snapshot(a_workspace(instance_type=name, preset="phi-4"), nap=True))
        assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
        assert "nvidia.com/gpu.memory" in verdict.message
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.memory": "15360"}
    pool = a_node_pool("pool", ["n1-standard-32"], more_labels=labels)
    [verdict] = validate(
        a_snapshot(a_workspace(instance_type="n1-standard-32", preset="phi-4-mini-instruct"), pool, nap=True)
    )
    assert verdict.accepted, verdict.message
