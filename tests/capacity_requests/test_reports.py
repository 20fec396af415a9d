"""What a GPUDemand says of its pods, and what it must not."""

import json

from plimsoll.model.api import GPUDemand, GPUDemandStatus
from tests.capacity_requests.cluster import Cluster, at, pool, share_pod


def status_of(*fractions: str) -> GPUDemandStatus:
    pods = [share_pod(f"secret-{number:05}", fraction) for number, fraction in enumerate(fractions)]
    (report,) = Cluster(pool(), *pods).plan(at(0)).demands
    assert report.status is not None
    return report.status


def test_what_is_needed() -> None:
    status = status_of("0.6", "0.6", "0.4", "0.6")
    assert (status.pod_count, status.gpus, status.object_count) == (4, 8, 1), "the node has 8 GPUs"
    assert [(each.gpus, each.shares) for each in status.patterns] == [(2, (600,)), (1, (600, 400))]
    assert status.objects[0].kind == "Pod"
    assert status.deadline == "2026-01-01T00:15:00Z"


def test_two_thousand_pods_stay_far_below_the_limit_of_an_object() -> None:
    status = status_of(*("0.5" for _ in range(2000)))
    assert len(json.dumps(status.as_manifest())) < 200_000
    assert (status.pod_count, len(status.pods)) == (2000, 500)


def test_names_of_pods_are_not_told() -> None:
    """Whoever may read demand need not be allowed to read pods; notes are for events in the pods' namespace."""
    cluster = Cluster(pool(), share_pod("secret-pod"))
    plan = cluster.plan(at(0))
    said = json.dumps([report.model_dump(mode="json", exclude={"notes"}) for report in plan.demands])
    assert "secret-pod" not in said.replace("uid-secret-pod", "")
    assert "secret" not in json.dumps([creation.manifest for creation in plan.creations])


def test_equal_demand_is_written_equally_and_read_back() -> None:
    status = status_of("0.6", "0.5")
    assert status.as_manifest() == status_of("0.6", "0.5").as_manifest()
    read = GPUDemand.read({"metadata": {"name": "any"}, "status": status.as_manifest() | {"later": 1}})
    assert read.status == status


def test_no_demand_is_no_object() -> None:
    assert Cluster(pool()).plan(at(0)).demands == ()
