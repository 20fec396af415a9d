"""If one node of a batch fails, only that node is given up and requested with other instance types; the others are
awaited."""

from typing import Any

import orjson
import pytest

from plimsoll import labels
from plimsoll.model.karpenter import ProvisioningRequest
from tests.capacity_requests.cluster import (
    TYPE,
    Cluster,
    at,
    claim,
    demand_environment,
    node,
    pool,
    share_pod,
    sold_out,
    text,
)

OTHER = "p4de.24xlarge"
STEPS = ("Launched", "Registered")


def a_cluster(provisioner: str = "capacity-buffer", count: int = 33, **rules: Any) -> Cluster:
    shares = [share_pod(f"share-{number:03}") for number in range(count)]
    environment = demand_environment(provisioner, **{"retrySeconds": 60, **rules})
    return Cluster(pool("gpu", TYPE), pool("more", OTHER), *shares, environment=environment)


def buffers(cluster: Cluster) -> dict[str, int]:
    """Replicas by instance type."""
    templates = {each["metadata"]["name"]: each["template"]["spec"] for each in cluster.requested("PodTemplate")}
    return {
        templates[each["spec"]["podTemplateRef"]["name"]]["nodeSelector"][labels.INSTANCE_TYPE]: each["spec"][
            "replicas"
        ]
        for each in cluster.requested("CapacityBuffer")
    }


def launched(name: str, node_name: str = "") -> Any:
    return claim(name, at(1), conditions=[{"type": "Launched", "status": "True"}], nodeName=node_name)


def test_a_buffer_shrinks_by_nodes_without_capacity_at_the_provider() -> None:
    cluster = a_cluster()
    cluster.run_round(at(0))
    assert buffers(cluster) == {TYPE: 3}
    cluster.objects += [launched("gpu-aaaaa", "n1"), launched("gpu-bbbbb", "n2")]
    cluster.objects += [sold_out("gpu-ccccc", at(1)), sold_out("gpu-ddddd", at(12)), sold_out("gpu-eeeee", at(23))]
    assert cluster.run_round(at(25)).empty
    cluster.run_round(at(32))
    assert buffers(cluster) == {TYPE: 2, OTHER: 1}, "tried three times for one node"
    assert cluster.status().failures == 1
    cluster.objects.append(sold_out("gpu-fffff", at(33), "said when it had been given up"))
    assert cluster.run_round(at(70)).empty
    cluster.objects += [node("n1", at(1)), node("n2", at(1)), node("n3", at(60), instance_type=OTHER, of_pool="more")]
    cluster.run_round(at(80))
    assert buffers(cluster) == {TYPE: 0, OTHER: 0}
    assert cluster.phase() == "NodeReady"
    assert cluster.run_round(at(81)).empty


def test_a_buffer_shrinks_by_a_late_node_claim_once() -> None:
    cluster = a_cluster(deadlineSeconds=10_000)
    cluster.run_round(at(0))
    cluster.objects += [launched("gpu-aaaaa"), launched("gpu-bbbbb", "n2"), launched("gpu-ccccc", "n3")]
    cluster.objects += [node("n2", at(1)), node("n3", at(1))]
    cluster.run_round(at(60))
    assert buffers(cluster) == {TYPE: 1}
    cluster.run_round(at(902))
    assert buffers(cluster) == {TYPE: 0, OTHER: 1}
    assert cluster.run_round(at(903)).empty
    assert cluster.run_round(at(1000)).empty
    assert cluster.status().failures == 1


@pytest.mark.parametrize("late", [True, False])
def test_a_node_is_given_up_only_once(late: bool) -> None:
    """The other node of the batch has no NodeClaim yet, and may still get the other requested type."""
    shares = [share_pod(f"share-{number:03}") for number in range(17)]
    cluster = Cluster(pool("gpu", TYPE, OTHER), *shares, environment=demand_environment("capacity-buffer"))
    cluster.run_round(at(0))
    (first,) = cluster.requested("CapacityBuffer")
    assert first["spec"]["replicas"] == 2
    if late:
        cluster.objects.append(claim("gpu-aaaaa", at(1), TYPE))
    else:
        cluster.gone_claims.append(claim("gpu-aaaaa", at(1), TYPE))
        cluster.objects.append(sold_out("gpu-aaaaa", at(1)))
    for second in (305, 306, 307):
        cluster.run_round(at(second))
        replicas = {each["metadata"]["name"]: each["spec"]["replicas"] for each in cluster.requested("CapacityBuffer")}
        assert replicas.pop(first["metadata"]["name"], 0) == 1
        assert list(replicas.values()) == [1]
    assert cluster.status().failures == 1


def test_registered_nodes_stay_when_the_others_expire() -> None:
    cluster = a_cluster(deadlineSeconds=100)
    cluster.run_round(at(0))
    cluster.objects.append(node("n1", at(30)))
    cluster.run_round(at(31))
    cluster.run_round(at(101))
    assert buffers(cluster) == {TYPE: 0, OTHER: 2}
    assert "within 100 s" in " ".join(cluster.status().reasons)
    assert cluster.run_round(at(102)).empty


def test_a_node_that_has_registered_waits_for_its_gpus_when_the_others_expire() -> None:
    cluster = a_cluster(deadlineSeconds=100)
    cluster.run_round(at(0))
    registered = [{"type": step, "status": "True", "lastTransitionTime": text(at(90))} for step in STEPS]
    cluster.objects += [launched("gpu-aaaaa"), claim("gpu-bbbbb", at(2), conditions=registered, nodeName="n2")]
    assert cluster.run_round(at(100)).empty
    for second in (101, 102):
        plan = cluster.run_round(at(second))
        assert buffers(cluster) == {TYPE: 1, OTHER: 2}
        assert plan.next_deadline is not None
        assert plan.next_deadline > at(second)
    assert plan.empty, "the NodeClaim that was late is not taken for the other one"
    cluster.objects.append(node("n2", at(2)))
    cluster.run_round(at(103))
    assert buffers(cluster) == {TYPE: 0, OTHER: 2}
    assert cluster.status().failures == 1


def test_a_request_records_the_nodes_that_it_no_longer_expects() -> None:
    cluster = a_cluster("provisioning-request", deadlineSeconds=100)
    cluster.run_round(at(0))
    (request,) = cluster.requested("ProvisioningRequest")
    cluster.objects.append(node("n1", at(30)))
    cluster.run_round(at(31))
    cluster.run_round(at(101))
    kept = cluster.requests["ProvisioningRequest", request["metadata"]["name"]]
    assert kept["spec"] == request["spec"], "it can never change"
    assert kept["metadata"]["annotations"]["plimsoll.dev/given-up"] == "2"
    counts = sorted(each["spec"]["podSets"][0]["count"] for each in cluster.requested("ProvisioningRequest"))
    assert counts == [2, 3], "the two that did not come, of another type"
    assert cluster.run_round(at(102)).empty
    assert cluster.status().failures == 1


def test_a_failed_provisioning_request_is_replaced_with_other_types() -> None:
    cluster = a_cluster("provisioning-request")
    cluster.run_round(at(0))
    (request,) = cluster.requested("ProvisioningRequest")
    failed = {"type": "Failed", "status": "True", "reason": "CapacityIsNotFound", "message": "no node group has it"}
    request["status"] = {"conditions": [failed]}
    assert ProvisioningRequest.read(request).says("Failed")
    cluster.run_round(at(20))
    (other,) = cluster.requested("PodTemplate")
    assert other["template"]["spec"]["nodeSelector"][labels.INSTANCE_TYPE] == OTHER
    (blocked,) = cluster.status().blocked
    assert "no node group has it" in blocked.reason


@pytest.mark.parametrize("shrunk", [True, False])
def test_a_restart_finds_given_up_nodes(shrunk: bool) -> None:
    """Both after the update without the status, and after the status without the update."""
    cluster = a_cluster()
    cluster.run_round(at(0))
    cluster.objects += [launched("gpu-aaaaa"), launched("gpu-bbbbb"), sold_out("gpu-ccccc", at(1))]
    asking, demands = {key: dict(each) for key, each in cluster.requests.items()}, dict(cluster.demands)
    cluster.run_round(at(32))
    if shrunk:
        cluster.demands = demands
    else:
        cluster.requests = asking
    cluster.run_round(at(40))
    cluster.run_round(at(41))
    assert sum(buffers(cluster).values()) == 3
    assert cluster.status().failures <= 1


def test_one_attempt_counts_once_for_each_of_its_demands() -> None:
    """Its two nodes fail one after the other, and the other demand has failed twice before."""
    cluster = Cluster(pool(), environment=demand_environment("capacity-buffer", retrySeconds=10, retries=5))
    cluster.objects += [share_pod(f"share-{number:03}") for number in range(17)]
    for attempt in (0, 100):
        cluster.run_round(at(attempt))
        cluster.objects += [sold_out(f"gpu-{name}{attempt:04}", at(attempt + 1)) for name in "ab"]
        cluster.run_round(at(attempt + 32))
    (former,) = cluster.demands
    assert cluster.status().failures == 2
    cluster.objects.append(share_pod("other", nodeSelector={labels.INSTANCE_TYPE: TYPE}))
    cluster.run_round(at(200))
    (buffer,) = cluster.requested("CapacityBuffer")
    assert buffer["spec"]["replicas"] == 2
    (other,) = cluster.demands.keys() - {former}
    assert orjson.loads(buffer["metadata"]["annotations"]["plimsoll.dev/demands"]) == {former: 3, other: 1}
    assert buffer["metadata"]["annotations"]["plimsoll.dev/attempt"] == "3"
    cluster.objects += [sold_out("gpu-ccccc", at(201)), claim("gpu-ddddd", at(202))]
    for second in (232, 520):
        cluster.run_round(at(second))
        assert {name: each.status.failures for name, each in cluster.demands.items()} == {former: 3, other: 1}
