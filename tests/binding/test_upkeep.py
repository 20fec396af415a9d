"""Reservations that fail, are late, are no longer needed, or are lost."""

import pytest

from plimsoll.bind.planning import Claim, DeleteReservation, Evict, MarkUnknown, Reserve, Unclaim
from plimsoll.cluster.pods import gpu_groups
from plimsoll.labels import MANAGED_BY, RESERVED_GPU, UNKNOWN_GPU, VISIBLE_DEVICES
from plimsoll.model.meta import Condition
from tests.binding.cluster import Cluster, a_gpu_node, a_plain_pod, a_share


def bound(gpus: int = 2, *names: str) -> Cluster:
    """A node with running shares."""
    cluster = Cluster([a_gpu_node(gpus=gpus)])
    cluster.add(*(a_share(name) for name in names or ("a",)))
    cluster.settle()
    return cluster


def test_a_failed_reservation_is_detected_at_once_and_the_pod_is_placed_elsewhere() -> None:
    cluster = Cluster([a_gpu_node("n1", gpus=1), a_gpu_node("n2", gpus=1)])
    cluster.lost = {("n1", "GPU-n1-0")}
    cluster.add(a_share("a"))
    cluster.settle()
    assert cluster.pod("a").node_name == "n2"
    assert cluster.now == 0.0
    assert [each.node_name for each in cluster.reservations()] == ["n2"]


def test_a_node_without_a_free_gpu_is_paused_instead_of_retried_at_once() -> None:
    cluster = Cluster([a_gpu_node("n1", gpus=1)])
    cluster.lost = {("n1", "GPU-n1-0")}
    cluster.add(a_share("a"))
    cluster.settle()
    assert cluster.pod("a").unschedulable
    tries = 0
    while cluster.now < 3600:
        cluster.now = cluster.plan().next_deadline or 0.0
        tries += sum(isinstance(step, Reserve) for step in cluster.settle())
    assert tries <= 8  # pauses of 60, 120, 240, 480, then 900 seconds
    cluster.lost = set()
    cluster.now = cluster.plan().next_deadline or 0.0
    cluster.settle()
    assert cluster.bound == ["a"]


@pytest.mark.parametrize("failure", ["refused", "failed"])
def test_a_node_is_paused_although_another_of_its_reservations_holds_a_gpu(failure: str) -> None:
    cluster = bound(2)
    cluster.lost = {("n1", "GPU-n1-1")}
    cluster.add(a_share("b", "0.9"))
    tries = 0
    for _ in range(30):
        cluster.now += 1
        for step in cluster.plan().steps:
            tries += isinstance(step, Reserve)
            if isinstance(step, Reserve) and failure == "refused":
                cluster.planner.refused(step.node, cluster.now)
            else:
                cluster.carry_out(step)
        cluster.play_kubelet()
    assert tries == 1
    assert cluster.pod("b").unschedulable


def test_a_reservation_that_gets_its_gpu_ends_the_pause_of_its_node_once() -> None:
    cluster = Cluster([a_gpu_node(gpus=2)])
    cluster.add(a_share("a", "0.9"), a_share("b", "0.9"))
    cluster.settle(kubelet=False)
    failed, other = cluster.reservations()
    cluster.add(failed.model_copy(update={"phase": "Failed"}))
    cluster.round()
    cluster.annotate(other, "GPU-n1-0")
    cluster.settle()
    assert sorted(cluster.bound) == ["a", "b"]


def test_a_deleted_reservation_is_detected_at_once() -> None:
    cluster = Cluster([a_gpu_node()])
    cluster.add(a_share("a"))
    cluster.settle(kubelet=False)
    cluster.delete(cluster.reservations()[0])
    assert [type(step) for step in cluster.round()] == [Reserve]
    cluster.settle()
    assert cluster.bound == ["a"]


def test_a_late_reservation_is_marked_unknown_and_its_pod_is_placed_elsewhere() -> None:
    cluster = Cluster([a_gpu_node("n1", gpus=1), a_gpu_node("n2", gpus=1)])
    cluster.add(a_share("a"))
    cluster.settle(kubelet=False)
    late = cluster.reservations()[0]
    cluster.now = cluster.settings.reservation.deadline_seconds - 0.1
    assert cluster.plan().steps == ()
    cluster.now += 0.1
    assert type(cluster.round()[0]) is MarkUnknown
    assert cluster.reservations()[0].annotations[RESERVED_GPU] == UNKNOWN_GPU
    assert {type(step) for step in cluster.round()} == {DeleteReservation, Unclaim}
    cluster.settle()
    assert cluster.pod("a").node_name != late.node_name


def test_each_reservation_has_its_own_deadline() -> None:
    cluster = Cluster([a_gpu_node("n1", gpus=1), a_gpu_node("n2", gpus=1)])
    cluster.add(a_share("a", "0.8"))
    cluster.settle(kubelet=False)
    cluster.now = 30.0
    cluster.add(a_share("b", "0.8"))
    cluster.settle(kubelet=False)
    cluster.now = 41.0
    marked = [step.reservation.node_name for step in cluster.plan().steps if isinstance(step, MarkUnknown)]
    assert marked == ["n1"]


def test_reservations_of_others_are_never_deleted_or_marked() -> None:
    cluster = Cluster([a_gpu_node("n1", gpus=1), a_gpu_node("n2", gpus=1)])
    cluster.add(a_share("a"))
    cluster.settle(kubelet=False)
    (reservation,) = cluster.reservations()
    foreign = reservation.model_copy(
        update={"labels": {key: value for key, value in reservation.labels.items() if key != MANAGED_BY}}
    )
    cluster.add(foreign)
    cluster.plan()
    cluster.now = 50.0
    cluster.settle(kubelet=False)
    cluster.settle()
    assert cluster.pod("a").node_name == "n2"
    cluster.now = 1000.0
    cluster.settle()
    assert foreign.key in cluster.pods


def test_an_empty_reservation_is_deleted_after_the_grace_period() -> None:
    cluster = bound()
    cluster.delete(cluster.pod("a"))
    cluster.settle()
    assert len(cluster.reservations()) == 1
    cluster.now = cluster.plan().next_deadline or 0.0
    assert cluster.now == cluster.settings.reservation.grace_seconds
    cluster.settle()
    assert not cluster.reservations()


def test_the_reservation_of_a_gpu_stays_while_a_pod_without_its_group_label_uses_it() -> None:
    cluster = bound()
    cluster.add(cluster.pod("a").model_copy(update={"labels": {}}))
    cluster.settle()
    cluster.now = 60.0
    cluster.settle()
    assert len(cluster.reservations()) == 1
    cluster.delete(cluster.pod("a"))
    cluster.settle()
    assert not cluster.reservations()


def test_a_pod_without_a_share_is_in_no_group_whatever_its_label_says() -> None:
    cluster = bound()
    cluster.add(a_plain_pod("plain").model_copy(update={"labels": cluster.pod("a").labels}), a_share("b"))
    cluster.settle()
    assert cluster.gpus_of("b") == cluster.gpus_of("a")
    cluster.delete(cluster.pod("a"))
    cluster.delete(cluster.pod("b"))
    cluster.settle()
    cluster.now = 31.0
    cluster.settle()
    assert not cluster.reservations()


def test_a_reservation_that_is_joined_in_the_grace_period_stays() -> None:
    cluster = bound()
    gpu = cluster.gpus_of("a")
    cluster.delete(cluster.pod("a"))
    cluster.settle()
    cluster.now = 20.0
    cluster.add(a_share("b", "0.9"))
    cluster.settle()
    cluster.now = 100.0
    cluster.settle()
    assert cluster.gpus_of("b") == gpu
    assert len(cluster.reservations()) == 1


def test_a_reservation_that_is_joined_at_the_end_of_the_grace_period_stays() -> None:
    cluster = bound(1)
    cluster.delete(cluster.pod("a"))
    cluster.settle()
    cluster.now = 31.0
    cluster.add(a_share("b"))
    assert [type(step) for step in cluster.plan().steps] == [Claim]
    cluster.settle()
    assert cluster.bound == ["a", "b"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_keep_no_reservation(phase: str) -> None:
    cluster = bound()
    cluster.add(cluster.pod("a").model_copy(update={"phase": phase}))
    cluster.settle()
    cluster.now = 31.0
    cluster.settle()
    assert not cluster.reservations()


def test_a_lost_reservation_is_created_again_for_the_same_gpu() -> None:
    cluster = bound(2, "a", "b")
    cluster.delete(cluster.reservations()[0])
    cluster.settle()
    (reservation,) = cluster.reservations()
    assert reservation.annotations[RESERVED_GPU] == cluster.gpus_of("a")
    assert not cluster.evicted


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_lost_reservations_on_a_full_node_are_created_again(lost: int) -> None:
    cluster = Cluster([a_gpu_node(gpus=3)])
    cluster.add(*(a_share(name, "0.9") for name in "abc"))
    cluster.settle()
    for reservation in cluster.reservations()[-lost:]:
        cluster.delete(reservation)
    cluster.settle()
    reserved = {each.annotations[RESERVED_GPU] for each in cluster.reservations()}
    assert reserved == {cluster.gpus_of(name) for name in "abc"}
    assert len(cluster.reservations()) == 3
    assert not cluster.evicted


def test_a_lost_reservation_on_a_node_without_room_for_pods_waits() -> None:
    cluster = Cluster([a_gpu_node(pods=2)])
    cluster.add(a_share("a"))
    cluster.settle()
    (lost,) = cluster.reservations()
    cluster.delete(lost)
    plain = a_plain_pod("plain")
    cluster.add(plain)
    assert cluster.settle() == []
    cluster.delete(plain)
    cluster.settle()
    assert len(cluster.reservations()) == 1
    assert not cluster.evicted


def test_no_share_joins_a_group_without_its_reservation() -> None:
    cluster = bound(2)
    cluster.delete(cluster.reservations()[0])
    cluster.settle(kubelet=False)
    cluster.add(a_share("b"))
    cluster.settle(kubelet=False)
    assert cluster.bound == ["a"]
    assert gpu_groups(cluster.pod("b")) != gpu_groups(cluster.pod("a"))


def test_reservations_with_wrong_gpus_stay_until_one_has_the_right_gpu() -> None:
    cluster = bound(4)
    cluster.add(a_share("b", "0.9"))
    cluster.settle()
    first = next(each for each in cluster.reservations() if each.annotations[RESERVED_GPU] == cluster.gpus_of("b"))
    # GPU 0 becomes free, so that the plugin gives it first; the pods of b run on GPU 1.
    cluster.delete(cluster.pod("a"))
    cluster.now = 5.0
    cluster.settle()
    cluster.now = 40.0
    cluster.settle()
    assert len(cluster.reservations()) == 1
    cluster.delete(first)
    cluster.settle()
    assert [each.annotations[RESERVED_GPU] for each in cluster.reservations()] == [cluster.gpus_of("b")]
    assert not cluster.evicted


def test_pods_whose_gpu_was_assigned_to_others_are_evicted() -> None:
    cluster = bound(1, "a", "b")
    cluster.lost = {("n1", cluster.gpus_of("a"))}
    cluster.delete(cluster.reservations()[0])
    cluster.settle()
    assert sorted(cluster.evicted) == ["a", "b"]


@pytest.mark.parametrize(("bound_at", "changed"), [("10:00:30", True), ("09:59:00", False)])
def test_a_pod_whose_annotation_somebody_changed_takes_no_further_gpu(bound_at: str, changed: bool) -> None:
    """It was bound while the reservation held its GPU; one that is older has lost its GPU."""
    cluster = bound(4)
    (reservation,) = cluster.reservations()
    cluster.add(reservation.model_copy(update={"creation_timestamp": "2026-11-20T10:00:00Z"}))
    pod, since = cluster.pod("a"), f"2026-11-20T{bound_at}Z"
    scheduled = Condition.model_validate({"type": "PodScheduled", "status": "True", "lastTransitionTime": since})
    annotations = {**pod.annotations, VISIBLE_DEVICES: "GPU-of-nobody"}
    cluster.add(pod.model_copy(update={"annotations": annotations, "conditions": (scheduled,)}))
    steps = cluster.settle()
    assert (not steps) == changed
    assert bool(cluster.evicted) != changed


def test_pods_that_a_disruption_budget_keeps_do_not_take_the_other_gpus_of_the_node() -> None:
    cluster = bound(3)
    cluster.disruption_budget = True
    cluster.lost = {("n1", cluster.gpus_of("a"))}
    cluster.delete(cluster.reservations()[0])
    cluster.add(a_plain_pod("whole", gpus=1))
    tries = 0
    for _ in range(40):
        steps = cluster.round()
        tries += sum(isinstance(step, Reserve) for step in steps)
        cluster.play_kubelet()
        cluster.now += 1.0
    assert [type(step) for step in steps] == [Evict]
    assert tries == 2
    assert not cluster.reservations()
    # Later the GPU may be free again.
    cluster.lost = set()
    cluster.now += cluster.settings.hold_limit_seconds
    for _ in range(3):
        cluster.round()
        cluster.play_kubelet()
    assert [each.annotations[RESERVED_GPU] for each in cluster.reservations()] == [cluster.gpus_of("a")]
    assert cluster.plan().steps == ()
    assert not cluster.evicted


def test_a_terminating_reservation_is_awaited_before_the_next_is_created() -> None:
    cluster = bound()
    (reservation,) = cluster.reservations()
    cluster.add(reservation.model_copy(update={"deletion_timestamp": "2026-01-01T00:00:00Z"}))
    assert cluster.plan().steps == ()
    cluster.delete(reservation)
    assert [type(step) for step in cluster.plan().steps] == [Reserve]


def test_pods_that_kai_bound_are_never_evicted_or_repaired() -> None:
    cluster = bound()
    cluster.add(cluster.pod("a").model_copy(update={"scheduler_name": "kai-scheduler"}))
    cluster.delete(cluster.reservations()[0])
    assert not [step for step in cluster.plan().steps if isinstance(step, Evict | Reserve)]
