"""A node that still has a startup taint: what was requested for it stays requested, and nothing is requested again."""

from datetime import datetime
from typing import Any

import pytest

from plimsoll.model import SignalReason
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Node
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.limits import DemandUsage
from plimsoll.plan.view import ClusterView
from tests.builders import an_environment
from tests.capacity_requests.cluster import Cluster, at, claim, demand_environment, node, pool, share_pod, text

TAINT = {"key": "example.com/starting", "value": "true", "effect": "NoSchedule"}
CLUSTER_AUTOSCALER = {**TAINT, "key": "startup-taint.cluster-autoscaler.kubernetes.io/gpu"}
UNREGISTERED = {**TAINT, "key": "karpenter.sh/unregistered", "effect": "NoExecute"}


def tainted(*taints: dict[str, str], created: datetime | None = None) -> Node:
    found = node("n1", created or at(30))
    return Node.read(
        {
            "metadata": {"name": "n1", "labels": found.labels, "creationTimestamp": found.creation_timestamp},
            "spec": {"taints": list(taints)},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": found.allocatable},
        }
    )


def its_claim(*, initialized: bool = False) -> NodeClaim:
    steps = {"Launched": True, "Registered": True, "Initialized": initialized, "Ready": initialized}
    conditions = [
        {"type": step, "status": str(passed), "lastTransitionTime": text(at(30))} for step, passed in steps.items()
    ]
    found = claim("gpu-abcde", at(10), nodeName="n1", conditions=conditions)
    # The value of a startup taint does not count, as in Karpenter.
    return found.model_copy(update={"spec": {**found.spec, "startupTaints": [{**TAINT, "value": ""}, "other"]}})


def a_cluster(*objects: Any, environment: Environment | None = None) -> Cluster:
    cluster = Cluster(pool(), share_pod("share"), environment=environment)
    assert len(cluster.run_round(at(0)).creations) >= 1
    cluster.objects += objects
    return cluster


@pytest.mark.parametrize("taint", [TAINT, UNREGISTERED])
def test_the_trigger_pod_stays_until_the_taint_is_removed(taint: dict[str, str]) -> None:
    cluster = a_cluster(tainted(taint), its_claim())
    plan = cluster.run_round(at(40))
    assert plan.empty
    assert not plan.signals
    assert cluster.phase() != "NodeReady"
    cluster.remove(Node)
    cluster.objects.append(tainted())
    plan = cluster.run_round(at(60))
    assert plan.empty
    assert [signal.reason for signal in plan.signals] == [SignalReason.CAPACITY_READY]


def test_the_buffer_keeps_its_replicas_until_the_taint_is_removed() -> None:
    cluster = a_cluster(tainted(TAINT), its_claim(), environment=demand_environment("capacity-buffer"))
    assert cluster.run_round(at(40)).empty
    cluster.remove(Node)
    cluster.objects.append(tainted())
    (update,) = cluster.run_round(at(60)).updates
    assert update.manifest["spec"]["replicas"] == 0


def test_a_startup_taint_of_cluster_autoscaler() -> None:
    cluster = a_cluster(tainted(CLUSTER_AUTOSCALER), environment=demand_environment("provisioning-request"))
    assert cluster.run_round(at(40)).empty


def test_pods_that_tolerate_the_taint_do_not_count_the_node_twice() -> None:
    cluster = Cluster(
        pool(), *(share_pod(f"share-{number}", tolerations=[{"operator": "Exists"}]) for number in range(17))
    )
    assert len(cluster.run_round(at(0)).creations) == 2
    cluster.objects += [tainted(TAINT), its_claim()]
    assert cluster.run_round(at(40)).empty


def test_limits_count_the_node_once() -> None:
    environment = an_environment(demand={"provisioner": "trigger-pod"}, limits={"gpus": 16})
    cluster = a_cluster(tainted(TAINT), its_claim(), environment=environment)
    cluster.run_round(at(40))
    assert DemandUsage.of(ClusterView(cluster.snapshot())) == DemandUsage(nodes=1, gpus=8)


def test_a_taint_that_stays_is_reported_and_another_type_is_requested() -> None:
    cluster = Cluster(pool("gpu", "p4d.24xlarge", "p4de.24xlarge"), share_pod("share"))
    cluster.run_round(at(0))
    cluster.objects += [tainted(TAINT), its_claim()]
    late = at(30 + cluster.environment.spec.node_claims.gpu_deadline_seconds + 1)
    plan = cluster.run_round(late)
    (deletion,) = plan.deletions
    assert "gpu-abcde" in deletion.reason
    assert "Initialized" in deletion.reason
    assert len(plan.creations) == 1


def test_the_same_taint_later_is_no_startup_taint() -> None:
    cluster = a_cluster(tainted(), its_claim(initialized=True))
    cluster.run_round(at(40))
    cluster.remove(Node)
    cluster.objects.append(tainted(TAINT))
    plan = cluster.run_round(at(60))
    assert len(plan.creations) == 1, "its pod cannot run there, and nothing says that the taint will be removed"
