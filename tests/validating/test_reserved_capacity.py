"""Reserved capacity: nothing is bought outside it, and its end is told; and zones."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import Reason, Snapshot, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.karpenter import Ec2NodeClass, NodePool
from plimsoll.plan import Known, plan, validate
from plimsoll.plan.view import ClusterView
from tests.builders import a_node, a_node_pool, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
P5 = "p5.48xlarge"
RESERVATION = "karpenter.k8s.aws/capacity-reservation"
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "blocks"}


def in_values(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def a_pool(*requirements: dict[str, Any]) -> NodePool:
    pool = a_node_pool("blocks", [P5], requirements=requirements)
    return pool.model_copy(update={"template_spec": pool.template_spec | {"nodeClassRef": REF}})


def a_class(*reservations: dict[str, Any], name: str = "blocks", ready: str = "True") -> Ec2NodeClass:
    conditions = [{"type": "CapacityReservationsReady", "status": ready}]
    status = {"capacityReservations": list(reservations)} if reservations else {}
    return Ec2NodeClass.read({"metadata": {"name": name}, "status": {**status, "conditions": conditions}})


def a_block(**fields: Any) -> dict[str, Any]:
    block = {"id": "cr-1", "instanceType": P5, "reservationType": "capacity-block", "availabilityZone": "z1"}
    return {**block, "endTime": "2026-12-01T11:30:00Z", **fields}


def wanting(**resource: Any) -> Workspace:
    given = {"instanceType": P5, "capacityType": "reserved", **resource}
    spec = {"resource": given, "inference": {"preset": {"name": "phi-4"}}}
    return Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec})


def a_cluster(*objects: Any, **environment: Any) -> Snapshot:
    return a_snapshot(*objects, environment=an_environment(nap=True, **environment))


def judged(*objects: Any, **environment: Any) -> Verdict:
    [verdict] = validate(a_cluster(*objects, **environment))
    return verdict


def required(snapshot: Snapshot, key: str) -> list[list[str]]:
    [claim] = plan(snapshot, validate(snapshot), NOW).creations
    spec = claim.manifest["spec"]
    return [each["values"] for each in spec["requirements"] if each["key"] == key]


BLOCKS = (in_values(labels.CAPACITY_TYPE, "reserved"), in_values(f"{RESERVATION}-type", "capacity-block"))


@pytest.mark.parametrize("own", [True, False])
def test_nodes_are_reserved_capacity_alone(own: bool) -> None:
    workspace = wanting() if own else wanting(capacityType=None)
    snapshot = a_cluster(workspace, a_pool(*BLOCKS), a_class(a_block()))
    assert required(snapshot, labels.CAPACITY_TYPE) == [["reserved"]]
    assert required(snapshot, f"{RESERVATION}-type") == [["capacity-block"]]


BOTH = in_values(labels.CAPACITY_TYPE, "reserved", "on-demand")


@pytest.mark.parametrize(
    ("requirement", "selector", "accepted"),
    [
        (in_values(f"{RESERVATION}-type", "default"), {}, False),
        ({"key": f"{RESERVATION}-id", "operator": "Exists"}, {}, False),
        ({"key": f"{RESERVATION}-id", "operator": "DoesNotExist"}, {}, True),
        (in_values("zone.example.com/row", "a"), {}, True),
        (in_values("zone.example.com/row", "a"), {f"{RESERVATION}-id": "cr-1"}, False),
    ],
)
def test_no_node_outside_a_reservation_has_its_labels(
    requirement: dict[str, Any], selector: dict[str, str], accepted: bool
) -> None:
    workspace = wanting(capacityType="on-demand", labelSelector={"matchLabels": selector})
    verdict = judged(workspace, a_pool(BOTH, requirement), a_class(a_block()), nodeLabelPrefixes=["", RESERVATION])
    assert verdict.accepted == accepted, verdict.message
    if not accepted:
        assert verdict.reason is Reason.INVALID_SPEC
        assert "a label of reserved capacity only" in verdict.message


def test_after_a_reservation_on_demand_nodes_are_of_a_pool_that_has_them() -> None:
    """Else the Workspace is refused, instead of a NodeClaim that nothing could launch."""
    workspace = wanting(capacityType=None, capacityTypes=["reserved", "on-demand"])
    assert not judged(workspace, a_pool(BOTH, BLOCKS[1]), a_class()).accepted
    assert judged(workspace, a_pool(BOTH), a_class()).accepted


def test_a_pool_without_reserved_capacity_is_refused() -> None:
    verdict = judged(wanting(), a_pool(in_values(labels.CAPACITY_TYPE, "on-demand")))
    assert verdict.reason is Reason.INVALID_SPEC and "resource.capacityType" in verdict.message


def test_without_a_pool_reserved_capacity_is_required() -> None:
    assert required(a_cluster(wanting()), labels.CAPACITY_TYPE) == [["reserved"]]


def test_the_end_of_a_block_is_told() -> None:
    verdict = judged(wanting(), a_pool(*BLOCKS), a_class(a_block()))
    assert any("cr-1" in each and "2026-12-01T11:30:00Z" in each for each in verdict.warnings), verdict.warnings
    endless = judged(wanting(), a_pool(*BLOCKS), a_class(a_block(endTime=None)))
    assert endless.accepted and not any("cr-1" in each for each in endless.warnings)


@pytest.mark.parametrize(
    "reservations",
    [
        pytest.param((), id="none"),
        pytest.param((a_block(instanceType="p4d.24xlarge"),), id="another type"),
        pytest.param((a_block(reservationType="default"),), id="another kind than the NodePool requires"),
        pytest.param((a_block(availabilityZone="z2"),), id="another zone"),
        pytest.param((a_block(id="cr-2"),), id="another reservation than the selector requires"),
    ],
)
def test_without_a_usable_reservation_nothing_is_bought(reservations: tuple[dict[str, Any], ...]) -> None:
    workspace = wanting(zones=["z1"], labelSelector={"matchLabels": {f"{RESERVATION}-id": "cr-1"}})
    snapshot = a_cluster(workspace, a_pool(*BLOCKS), a_class(*reservations))
    [verdict] = validate(snapshot)
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE and "EC2NodeClass blocks" in verdict.message
    assert not plan(snapshot, (verdict,), NOW).creations
    matching = a_cluster(workspace, a_pool(*BLOCKS), a_class(a_block()))
    assert required(matching, f"{RESERVATION}-id") == [["cr-1"]]


@pytest.mark.parametrize(
    "fields",
    [{"state": "expiring"}, {"state": "expired"}, {"endTime": "2025-12-31T23:59:59Z"}, {"endTime": NOW.isoformat()}],
)
def test_a_reservation_that_is_over_is_refused_by_name(fields: dict[str, Any]) -> None:
    over = a_block(id="cr-over", **fields)
    snapshot = a_cluster(wanting(), a_pool(*BLOCKS), a_class(over))
    [verdict] = validate(snapshot, NOW)
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE
    assert "cr-over" in verdict.message and over["endTime"] in verdict.message
    assert not plan(snapshot, (verdict,), NOW).creations
    [another] = validate(a_cluster(wanting(), a_pool(*BLOCKS), a_class(over, a_block())), NOW)
    assert another.accepted and not any("cr-over" in each for each in another.warnings)


def test_the_end_of_a_reservation_changes_what_is_known() -> None:
    """The verdict of an earlier round is not kept over the end."""
    known, snapshot = Known(), a_cluster(wanting(), a_pool(*BLOCKS), a_class(a_block(endTime=NOW.isoformat())))
    accepted = []
    for now in (NOW - timedelta(seconds=1), NOW):
        known.begin()
        [verdict] = validate(ClusterView(snapshot, known), now)
        accepted.append(verdict.accepted)
    assert accepted == [True, False]


@pytest.mark.parametrize("group", ["karpenter.azure.com", "karpenter.k8s.gcp", "karpenter.kwok.sh"])
@pytest.mark.parametrize("own", [True, False])
def test_providers_without_reservations_are_refused(group: str, own: bool) -> None:
    name = {"karpenter.azure.com": "Standard_NC24ads_A100_v4", "karpenter.k8s.gcp": "a2-highgpu-1g"}.get(group, P5)
    ways = ("reserved", "on-demand") if own else ("reserved",)
    pool = a_node_pool("pool", [name], group=group, requirements=[in_values(labels.CAPACITY_TYPE, *ways)])
    workspace = wanting(instanceType=name) if own else wanting(instanceType=name, capacityType=None)
    verdict = judged(workspace, pool)
    assert verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE and group in verdict.message
    assert "resource.capacityType" in verdict.message
    assert judged(
        wanting(instanceType=name, capacityType="on-demand"), a_node_pool("pool", [name], group=group)
    ).accepted


@pytest.mark.parametrize(
    "node_class", [a_class(ready="False"), a_class(name="others")], ids=["does not say yet", "another class"]
)
def test_reservations_that_nobody_reports_are_not_checked(node_class: Ec2NodeClass) -> None:
    assert judged(wanting(), a_pool(*BLOCKS), node_class).accepted


def test_nodes_that_may_also_be_on_demand_need_no_reservation() -> None:
    pool = a_pool(in_values(labels.CAPACITY_TYPE, "reserved", "on-demand"))
    assert judged(wanting(capacityType=None), pool, a_class()).accepted


def test_zones_are_required_of_new_nodes() -> None:
    plain = {"capacityType": None, "zones": ["z1", "z2"]}
    assert required(a_cluster(wanting(**plain), a_pool()), labels.ZONE) == [["z1", "z2"]]
    narrower = a_pool(in_values(labels.ZONE, "z2", "z3"))
    assert required(a_cluster(wanting(**plain), narrower), labels.ZONE) == [["z1", "z2"], ["z2", "z3"]]
    refused = judged(wanting(**plain), a_pool(in_values(labels.ZONE, "z3")))
    assert refused.reason is Reason.INVALID_SPEC and "resource.zones" in refused.message


def test_zones_narrow_existing_nodes() -> None:
    nodes = [a_node(f"in-{zone}", allocatable=1, more_labels={labels.ZONE: zone}) for zone in ("z1", "z2")]
    spec = a_workspace(preset="phi-4", replicas=2).spec
    zoned = spec.model_copy(update={"resource": spec.resource.model_copy(update={"zones": ("z2",)})})
    workspace = a_workspace().model_copy(update={"spec": zoned})
    snapshot = a_snapshot(workspace, *nodes)
    [verdict] = validate(snapshot)
    assert verdict.node_names == ("in-z2",)
    deployment = next(
        each for each in plan(snapshot, (verdict,), NOW).creations if each.manifest["kind"] == "Deployment"
    )
    affinity = deployment.manifest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert in_values(labels.ZONE, "z2") in term["matchExpressions"]


def test_of_existing_nodes_none_in_the_zones_names_the_field() -> None:
    workspace = wanting(instanceType=None, capacityType=None, zones=["z9"])
    [verdict] = validate(a_snapshot(workspace, a_node("n"), environment=an_environment()))
    assert verdict.reason is Reason.NO_MATCHING_NODES
    assert "resource.zones" in verdict.message
