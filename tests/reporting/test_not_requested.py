"""Demands whose requests for capacity could not be created: they are not reported as requested."""

from plimsoll.model import ObjectKey, Plan, Withheld
from plimsoll.model.api import DemandPhase, GPUDemand, GPUDemandStatus, PodState
from plimsoll.report import with_failed_requests
from tests.capacity_requests.cluster import Cluster, at, pool, share_pod


def a_cluster(*fractions: str) -> Cluster:
    return Cluster(pool("gpu", "g6.xlarge"), *(share_pod(f"pod-{n}", each) for n, each in enumerate(fractions)))


def status_of(plan: Plan) -> GPUDemandStatus:
    (report,) = plan.demands
    assert report.status is not None
    return report.status


def states(plan: Plan) -> list[PodState]:
    return [note.state for note in plan.demands[0].notes]


def keys(plan: Plan) -> list[ObjectKey]:
    return [each.key for each in plan.creations]


def test_a_demand_without_a_request_is_pending_and_its_pods_are_told_why() -> None:
    cluster = a_cluster("0.9")
    plan = cluster.plan(at(0))
    assert status_of(plan).phase is DemandPhase.SCHEDULED
    assert states(plan) == [PodState.REQUESTED]

    found = with_failed_requests(plan, cluster.snapshot(), dict.fromkeys(keys(plan), "Refused: no rights"))

    status = status_of(found)
    assert (status.phase, status.object_count, status.objects, status.deadline) == (DemandPhase.PENDING, 0, (), "")
    assert "no rights" in status.reasons[0]
    assert states(found) == [PodState.NOT_REQUESTED]
    assert "no rights" in found.demands[0].notes[0].note


def test_a_demand_with_other_requests_stays_requested_and_says_what_is_missing() -> None:
    cluster = a_cluster("0.9", "0.9")
    plan = cluster.plan(at(0))
    lost, there = keys(plan)
    found = with_failed_requests(plan, cluster.snapshot(), {lost: "Refused: a quota"})
    status = status_of(found)
    assert status.phase is DemandPhase.SCHEDULED
    assert [each.name for each in status.objects] == [there.name]
    assert status.object_count == 1
    assert "a quota" in status.reasons[0]


def test_a_withheld_request_is_not_created() -> None:
    cluster = a_cluster("0.9")
    plan = cluster.plan(at(0))
    (change,) = plan.creations
    withheld = Withheld(key=change.key, owner=change.owner, findings=())
    plan = plan.model_copy(update={"creations": (), "withheld": (withheld,)})
    assert status_of(with_failed_requests(plan, cluster.snapshot(), {})).phase is DemandPhase.PENDING


def test_a_request_that_exists_counts_whatever_failed_for_it() -> None:
    cluster = a_cluster("0.9")
    cluster.run_round(at(0))
    key = ObjectKey.of(cluster.requested()[0])
    plan = cluster.plan(at(1))
    assert with_failed_requests(plan, cluster.snapshot(), {key: "a deletion that failed"}) is plan


def test_the_start_of_waiting_is_kept_while_each_attempt_fails() -> None:
    cluster = a_cluster("0.9")
    for second in (0, 60):
        plan = cluster.plan(at(second))
        found = with_failed_requests(plan, cluster.snapshot(), dict.fromkeys(keys(plan), "Refused"))
        (report,) = found.demands
        manifest = {"metadata": {"name": report.name}, "status": status_of(found).as_manifest()}
        cluster.demands[report.name] = GPUDemand.read(manifest)
        assert status_of(found).since == "2026-01-01T00:00:00Z"
