"""What the deletions of a Plan release: of the nodes that each stands for, and nothing where there are none."""

import pytest

from plimsoll.cost import PlannedCost, PriceBasis, Prices, planned_cost
from plimsoll.labels import GROUP
from plimsoll.model import Deletion, DemandRef, ObjectKey, Plan, Snapshot
from plimsoll.model.karpenter import CapacityBuffer, ProvisioningRequest
from plimsoll.plan.requests import NodeRequest
from tests.builders import NC24, a_claim, a_node_pool, a_pod, a_snapshot, metadata

NODE = f"{GROUP}/node"
PRICES = Prices({NC24: 4.0})
OWN = PriceBasis(own=True)
REQUEST = {NODE: NodeRequest(instance_types=(NC24,), gpus=1, kind="A100").text}
UNPRICED = {NODE: NodeRequest(instance_types=("other",), gpus=1, kind="A100").text}
OTHER_POOL = a_node_pool("x", ["other"]).model_copy(update={"replicas": 3})
STATIC_POOL = a_node_pool("x", [NC24]).model_copy(update={"replicas": 3})


def a_buffer(replicas: int) -> CapacityBuffer:
    return CapacityBuffer.read({"metadata": metadata("x", annotations=REQUEST), "spec": {"replicas": replicas}})


def a_request(*counts: int, provisioned: bool = False) -> ProvisioningRequest:
    conditions = [{"type": "Provisioned", "status": str(provisioned)}]
    return ProvisioningRequest.read(
        {
            "metadata": metadata("x", annotations=REQUEST),
            "spec": {"podSets": [{"count": count} for count in counts]},
            "status": {"conditions": conditions},
        }
    )


def asking(**objects: object) -> Snapshot:
    return a_snapshot().model_copy(update=objects)


@pytest.mark.parametrize(
    ("kind", "snapshot", "expected"),
    [
        ("NodeClaim", a_snapshot(a_claim("x")), PlannedCost(removed=4.0, basis=OWN)),
        ("NodeClaim", a_snapshot(), PlannedCost()),
        ("NodeClaim", a_snapshot(a_claim("x", instance_type="other")), PlannedCost(unpriced=1)),
        ("NodePool", a_snapshot(STATIC_POOL), PlannedCost(removed=12.0, basis=OWN)),
        ("NodePool", a_snapshot(OTHER_POOL), PlannedCost(unpriced=3)),
        ("NodePool", a_snapshot(a_node_pool("x", [NC24])), PlannedCost()),
        ("Pod", a_snapshot(a_pod("x", annotations=REQUEST)), PlannedCost(removed=4.0, basis=OWN)),
        ("Pod", a_snapshot(a_pod("x", annotations=UNPRICED)), PlannedCost(unpriced=1)),
        ("Pod", a_snapshot(a_pod("x", node="n", annotations=REQUEST)), PlannedCost()),
        ("CapacityBuffer", asking(capacity_buffers=(a_buffer(2),)), PlannedCost(removed=8.0, basis=OWN)),
        ("CapacityBuffer", asking(capacity_buffers=(a_buffer(0),)), PlannedCost()),
        ("ProvisioningRequest", asking(provisioning_requests=(a_request(2, 3),)), PlannedCost(removed=20.0, basis=OWN)),
        ("ProvisioningRequest", asking(provisioning_requests=(a_request(2, provisioned=True),)), PlannedCost()),
        ("Deployment", a_snapshot(), PlannedCost()),
    ],
)
def test_a_deletion_releases_the_nodes_that_the_object_stands_for(
    kind: str, snapshot: Snapshot, expected: PlannedCost
) -> None:
    key = ObjectKey(api_version="v1", kind=kind, namespace="", name="x")
    uid = next((each.uid for each in snapshot.pods), "u")
    deletion = Deletion(key=key, uid=uid, owner=DemandRef(name="demand"), reason="not wanted")
    assert planned_cost(Plan(deletions=(deletion,)), snapshot, PRICES) == expected
