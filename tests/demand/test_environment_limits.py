"""The Environment's limits apply to demand and to the Workspaces' nodes together."""

from typing import Any

import pytest

from plimsoll.explaining import explain
from plimsoll.labels import GPU_RESOURCE, INSTANCE_TYPE
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan import plan, validate
from plimsoll.plan.limits import DemandUsage
from plimsoll.plan.view import ClusterView
from tests.builders import a_claim, a_node_pool, a_snapshot, a_workspace, an_environment, placed
from tests.capacity_requests.cluster import TYPE, Cluster, at, claim, node, pool, share_pod


def bounded(nap: bool = False, provisioner: str = "trigger-pod", **limits: int) -> Environment:
    return an_environment(nap, demand={"provisioner": provisioner}, limits=limits)


def a_cluster(*objects: Any, count: int = 33, environment: Environment) -> Cluster:
    shares = [share_pod(f"share-{number:03}") for number in range(count)]
    return Cluster(pool(), *shares, *objects, environment=environment)


@pytest.mark.parametrize("provisioner", ["trigger-pod", "capacity-buffer"])
@pytest.mark.parametrize("limits", [{"gpus": 20}, {"nodes": 2}])
def test_demand_stops_at_the_limit_with_a_reason(provisioner: str, limits: dict[str, Any]) -> None:
    cluster = a_cluster(environment=bounded(provisioner=provisioner, **limits))
    cluster.run_round(at(0))
    objects = [*cluster.requested("Pod"), *cluster.requested("CapacityBuffer")]
    assert sum(each["spec"].get("replicas", 1) for each in objects) == 2, "33 halves are 3 nodes of 8 GPUs"
    ((key, value),) = limits.items()
    assert f"limits.{key} of the Environment is {value}" in " ".join(cluster.status().reasons)
    assert cluster.phase() == "Scheduled"
    assert cluster.run_round(at(1)).empty


def test_nodes_for_demand_count_as_long_as_they_exist() -> None:
    """Also when its pods are bound and nothing is requested any more."""
    cluster = a_cluster(environment=bounded(gpus=8), count=16)
    cluster.run_round(at(0))
    cluster.objects += [claim("gpu-aaaaa", at(1), nodeName="n1"), node("n1", at(1))]
    cluster.run_round(at(30))
    cluster.remove(Pod)
    shares = [share_pod(f"share-{number:03}", "0.5", unschedulable=False) for number in range(16)]
    cluster.objects += [placed(share, "n1", f"group-{number // 2}") for number, share in enumerate(shares)]
    cluster.run_round(at(31))
    assert not cluster.requested()
    cluster.objects.append(share_pod("later", "0.9"))
    cluster.run_round(at(40))
    assert not cluster.requested()
    (later,) = (each.status for each in cluster.demands.values() if each.status.phase == "Pending")
    assert "limits.gpus of the Environment is 8" in later.reasons[0]


def test_workspaces_and_demand_share_the_limit() -> None:
    environment = bounded(nap=True, gpus=16)
    of_workspace = a_claim("ws-claim", instance_type=TYPE, gpus=8)
    workspace = a_workspace("ws", instance_type=TYPE)
    cluster = a_cluster(of_workspace, environment=environment, count=33)
    cluster.objects.append(workspace)
    snapshot = cluster.snapshot().model_copy(update={"workspaces": (workspace,)})
    made = plan(snapshot, validate(snapshot), at(0))
    assert [each.key.kind for each in made.creations] == ["Pod"], "8 GPUs are left"


def test_workspaces_cannot_use_the_room_that_demand_has_requested() -> None:
    environment = bounded(nap=True, gpus=8)
    cluster = a_cluster(environment=environment, count=1)
    cluster.run_round(at(0))
    assert len(cluster.requested()) == 1
    snapshot = cluster.snapshot().model_copy(update={"workspaces": (a_workspace("ws", instance_type=TYPE),)})
    (verdict,) = validate(snapshot)
    assert verdict.reason == "LimitExceeded"
    assert "limits.gpus of the Environment is 8, 8 are in use" in verdict.message
    explanation = explain(snapshot, plan(snapshot, (verdict,), at(0)), verdict.workspace, at(0))
    assert "limits.gpus of the Environment is 8, 8 in use" in explanation.bounds
    without = snapshot.model_copy(update={"environment": bounded(nap=True, provisioner="none", gpus=8)})
    (verdict,) = validate(without)
    assert verdict.reason == "Accepted"


@pytest.mark.parametrize(
    ("launched", "requests", "usage"),
    [
        ("m5.4xlarge", {"cpu": "4"}, DemandUsage()),
        ("p4d.24xlarge", {"cpu": "4"}, DemandUsage(nodes=1, gpus=8)),
        ("unknown-type", {GPU_RESOURCE: "4"}, DemandUsage(nodes=1, gpus=4)),
        ("", {"cpu": "4"}, DemandUsage(nodes=1, gpus=8)),
    ],
)
def test_a_launched_node_claim_counts_as_its_own_type(
    launched: str, requests: dict[str, str], usage: DemandUsage
) -> None:
    types = {"key": INSTANCE_TYPE, "operator": "In", "values": ["m5.4xlarge", "p4d.24xlarge"]}
    labels = {INSTANCE_TYPE: launched} if launched else {}
    spec = {"requirements": [types], "resources": {"requests": requests}}
    claim = NodeClaim.read({"metadata": {"name": "claim", "labels": labels}, "spec": spec})
    mixed = a_node_pool("mixed", ["m5.4xlarge", "p4d.24xlarge"])
    assert DemandUsage.of(ClusterView(a_snapshot(claim, mixed, environment=bounded(gpus=8)))) == usage
