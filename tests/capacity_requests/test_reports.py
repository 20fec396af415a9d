"""What the status of a GPUDemand contains, and what it must not contain."""

import json

from plimsoll.model.api import GPUDemand, GPUDemandStatus
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import Condition
from tests.capacity_requests.cluster import Cluster, at, demand_environment, node, pool, share_pod, text


def status_of(*fractions: str) -> GPUDemandStatus:
    pods = [share_pod(f"secret-{number:05}", fraction) for number, fraction in enumerate(fractions)]
    (report,) = Cluster(pool(), *pods).plan(at(0)).demands
    assert report.status is not None
    return report.status


def test_the_status_has_the_needed_gpus() -> None:
    status = status_of("0.6", "0.6", "0.4", "0.6")
    assert (status.pod_count, status.gpus, status.object_count) == (4, 8, 1), "the node has 8 GPUs"
    assert (status.free_pods, status.requested_pods, status.new_pods, status.refused_pods) == (0, 0, 4, 0)
    assert (status.gpu_milli, status.least_gpus) == (8000, 3), "the node serves this demand alone"
    assert status.objects[0].kind == "Pod"
    assert status.deadline == "2026-01-01T00:15:00Z"


def test_pods_are_counted_by_where_they_are_planned() -> None:
    cluster = Cluster(pool(), share_pod("a", "0.9"))
    cluster.run_round(at(0))
    cluster.objects += [share_pod(f"later-{number}", "0.9") for number in range(8)]
    huge = share_pod("huge", "0.5").model_copy(update={"annotations": {"gpu-memory": "99999"}})
    cluster.objects.append(huge)
    cluster.run_round(at(1))
    status = cluster.status()
    assert (status.free_pods, status.requested_pods, status.new_pods, status.refused_pods) == (0, 8, 1, 1)
    cluster.objects.append(node("n1", at(30)))
    cluster.run_round(at(31))
    status = cluster.status()
    assert (status.free_pods, status.requested_pods, status.new_pods, status.refused_pods) == (8, 1, 0, 1)
    assert status.gpu_milli == 8000, "of the node that is still requested"


def test_a_pod_in_its_grace_period_is_counted_and_told_nothing() -> None:
    def since(name: str, seconds: float) -> Pod:
        waiting = Condition(
            type="PodScheduled", status="False", reason="Unschedulable", last_transition_time=text(at(seconds))
        )
        return share_pod(name, "0.9").model_copy(update={"conditions": (waiting,)})

    environment = demand_environment(graceSeconds=600)
    cluster = Cluster(pool("gpu", "g6.xlarge"), since("old", -1000), since("young", 0), environment=environment)
    (report,) = cluster.run_round(at(1)).demands
    assert report.status is not None
    assert (report.status.pod_count, report.status.new_pods, report.status.grace_pods) == (2, 1, 1)
    assert [note.uid for note in report.notes] == ["uid-old"]


def test_a_demand_has_its_share_of_a_node_that_serves_several() -> None:
    pods = [
        share_pod("one", "0.9"),
        share_pod("other", "0.3", priorityClassName="x", nodeSelector={"kubernetes.io/os": "linux"}),
    ]
    cluster = Cluster(pool(), *pods)
    plan = cluster.run_round(at(0))
    assert len(plan.creations) == 1
    shares = sorted(demand.status.gpu_milli for demand in cluster.demands.values())
    assert shares == [2000, 6000]
    assert len({demand.status.objects for demand in cluster.demands.values()}) == 1, "both name the request"


def test_two_thousand_pods_stay_far_below_the_limit_of_an_object() -> None:
    status = status_of(*("0.5" for _ in range(2000)))
    assert len(json.dumps(status.as_manifest())) < 200_000
    assert (status.pod_count, len(status.pods)) == (2000, 500)


def test_the_status_has_no_names_of_pods() -> None:
    """Users who may read GPUDemands may not be allowed to read pods. Names are only in events in the pods'
    namespaces."""
    cluster = Cluster(pool(), share_pod("secret-pod"))
    plan = cluster.plan(at(0))
    message = json.dumps([report.model_dump(mode="json", exclude={"notes"}) for report in plan.demands])
    assert "secret-pod" not in message.replace("uid-secret-pod", "")
    assert "secret" not in json.dumps([creation.manifest for creation in plan.creations])


def test_the_same_demand_has_the_same_status() -> None:
    status = status_of("0.6", "0.5")
    assert status.as_manifest() == status_of("0.6", "0.5").as_manifest()
    read = GPUDemand.read({"metadata": {"name": "any"}, "status": status.as_manifest() | {"later": 1}})
    assert read.status == status


def test_without_demand_there_is_no_gpu_demand() -> None:
    assert Cluster(pool()).plan(at(0)).demands == ()
