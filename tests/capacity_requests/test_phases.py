"""Every phase of a GPUDemand is reached, and left when its condition ends."""

from typing import Any

from plimsoll.model.cluster import Node, Pod
from plimsoll.model.karpenter import NodePool
from tests.builders import a_queue
from tests.capacity_requests.cluster import TYPE, Cluster, at, demand_environment, node, pool, share_pod

RULES = {"deadlineSeconds": 60, "retries": 1, "retrySeconds": 10, "pauseSeconds": 100, "retentionSeconds": 300}


def a_cluster(*objects: Any, **rules: Any) -> Cluster:
    return Cluster(share_pod("share"), *objects, environment=demand_environment(**{**RULES, **rules}))


def test_pending_until_capacity_can_be_requested() -> None:
    cluster = a_cluster()
    cluster.run_round(at(0))
    assert cluster.phase() == "Pending"
    assert "NodePool" in cluster.status().reasons[0]
    cluster.objects.append(pool())
    cluster.run_round(at(5))
    assert cluster.phase() == "Scheduled"
    assert cluster.status().since == "2026-01-01T00:00:05Z"
    assert not cluster.status().reasons


def test_scheduled_becomes_pending_if_the_node_pool_is_deleted() -> None:
    cluster = a_cluster(pool())
    cluster.run_round(at(0))
    assert cluster.status().deadline == "2026-01-01T00:01:00Z"
    cluster.remove(NodePool)
    cluster.run_round(at(5))
    assert cluster.phase() == "Pending"
    assert not cluster.requested()
    assert not cluster.status().deadline


def test_node_ready_ends_if_the_node_is_deleted_before_the_pods_are_bound() -> None:
    cluster = a_cluster(pool(), deadlineSeconds=900)
    cluster.run_round(at(0))
    cluster.objects.append(node("n1", at(30)))
    cluster.run_round(at(31))
    assert cluster.phase() == "NodeReady"
    cluster.remove(Node)
    plan = cluster.run_round(at(40))
    assert (len(plan.deletions), len(plan.creations)) == (1, 1)
    assert cluster.phase() == "Scheduled"
    assert cluster.run_round(at(41)).empty
    cluster.objects.append(node("n2", at(60)))
    cluster.run_round(at(61))
    assert cluster.phase() == "NodeReady"


def test_completed_ends_when_pods_are_pending_again() -> None:
    cluster = a_cluster(pool())
    cluster.run_round(at(0))
    cluster.remove(Pod)
    cluster.run_round(at(5))
    assert cluster.phase() == "Completed"
    cluster.objects.append(share_pod("again"))
    cluster.run_round(at(20))
    assert cluster.phase() == "Scheduled"
    assert cluster.status().failures == 0
    cluster.remove(Pod)
    cluster.run_round(at(30))
    cluster.run_round(at(331))
    assert not cluster.demands


def test_so_many_completed_demands_are_kept_the_newest_and_those_that_say_what_to_skip() -> None:
    """A tenant may replace its pods by pods of other classes, without end."""

    def of_new_class(number: int) -> Pod:
        return share_pod(f"odd-{number}", tolerations=[{"key": f"key-{number}", "operator": "Exists"}])

    cluster = a_cluster(pool(), retentionSeconds=3600)
    cluster.run_round(at(0))
    (first,) = cluster.demands
    cluster.run_round(at(61))
    assert cluster.status().blocked, "its request expired"
    names = set[str]()
    for number in range(130):
        cluster.remove(Pod)
        cluster.objects.append(of_new_class(number))
        cluster.run_round(at(62 + number / 20))
        names |= cluster.demands.keys()
    assert len(names) == 131
    completed = [name for name, each in cluster.demands.items() if each.status.phase.value == "Completed"]
    assert len(completed) == 100
    assert first in completed, "it is skipped for a while, whoever asks next"
    cluster.remove(Pod)
    cluster.run_round(at(80))
    assert first not in cluster.demands, "its time is over"


def test_expired_then_failed_then_requested_again() -> None:
    cluster = a_cluster(pool())
    cluster.run_round(at(0))
    cluster.run_round(at(61))
    assert cluster.phase() == "Expired"
    assert cluster.run_round(at(62)).empty
    cluster.run_round(at(72))
    assert cluster.phase() == "Scheduled"
    cluster.run_round(at(133))
    assert cluster.phase() == "Failed"
    assert cluster.run_round(at(200)).next_deadline == at(233)
    cluster.run_round(at(234))
    assert cluster.phase() == "Scheduled"
    assert cluster.status().failures == 0


def test_expired_ends_if_the_node_registers_late() -> None:
    cluster = a_cluster(pool())
    cluster.run_round(at(0))
    cluster.run_round(at(61))
    cluster.objects.append(node("late", at(1)))
    cluster.run_round(at(65))
    assert cluster.phase() == "NodeReady"
    cluster.remove(Pod)
    cluster.run_round(at(66))
    assert cluster.phase() == "Completed"


def test_failed_ends_with_its_pods() -> None:
    cluster = a_cluster(pool(), retries=0)
    cluster.run_round(at(0))
    cluster.run_round(at(61))
    assert cluster.phase() == "Failed"
    cluster.remove(Pod)
    cluster.run_round(at(70))
    assert cluster.phase() == "Completed"
    assert [each.instance_type for each in cluster.status().blocked] == [TYPE], "it is still not asked for"


def test_quota_blocked_until_the_queue_admits_the_pods() -> None:
    root = a_queue("root", parent="")
    cluster = a_cluster(pool(), root, a_queue("team", limit=0))
    cluster.objects[0] = share_pod("share").model_copy(update={"labels": {"kai.scheduler/queue": "team"}})
    cluster.run_round(at(0))
    assert cluster.phase() == "QuotaBlocked"
    assert "OverLimit" in cluster.status().reasons[0]
    assert not cluster.requested()
    cluster.objects[-1] = a_queue("team", limit=1)
    cluster.run_round(at(10))
    assert cluster.phase() == "Scheduled"
    cluster.objects[-1] = a_queue("team", limit=0)
    cluster.run_round(at(20))
    assert cluster.phase() == "QuotaBlocked"
    assert not cluster.requested(), "nothing is provisioned for it any more"
