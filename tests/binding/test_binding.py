"""Pending shares get a place, a reservation and a GPU, and are bound."""

from fractions import Fraction
from typing import Any

import pytest

from plimsoll.bind.planning import Bind, Claim, NodeBackoff, Reserve, UnscheduledReason
from plimsoll.cluster.ledger import GpuAccount
from plimsoll.cluster.pods import gpu_groups
from plimsoll.labels import GPU_GROUP, RESERVED_GPU, SELECTED_NODE, VISIBLE_DEVICES
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import GPU_FRACTION, ReservationSettings
from tests.binding.cluster import Cluster, a_gpu_node, a_plain_pod, a_share


def test_a_further_pod_with_the_same_request_looks_at_changed_nodes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is the same as if it came alone."""
    looked: list[str] = []

    def recorded(account: GpuAccount, pod: Pod) -> str:
        looked.append(account.node.name)
        return ""

    monkeypatch.setattr("plimsoll.bind.planning.placement.unsuitable_because", recorded)
    together, apart = (Cluster([a_gpu_node(f"n{number:02}") for number in range(20)]) for _ in range(2))
    pods = [a_share(f"p{number:02}", "0.3" if number % 2 else "0.5") for number in range(12)]
    together.add(*pods)
    together.round()
    assert len(looked) <= 2 * (20 + 11)
    for pod in pods:
        apart.add(pod)
        for step in apart.plan().steps:
            if isinstance(step, Claim):
                apart.carry_out(step)
    labels = [[cluster.pod(pod.name).labels for pod in pods] for cluster in (together, apart)]
    assert labels[0] == labels[1]


def test_a_further_pod_with_the_same_request_compares_few_nodes_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[Any] = []
    equal = Fraction.__eq__

    def counted(one: Fraction, other: object) -> bool:
        compared.append(one)
        return equal(one, other)

    cluster = Cluster([a_gpu_node(f"n{number:03}") for number in range(100)])
    cluster.add(*[a_share(f"p{number:02}", "0.6667") for number in range(30)])
    monkeypatch.setattr(Fraction, "__eq__", counted)
    assert len(cluster.plan().steps) == 30
    assert len(compared) < 10 * 100


def test_two_halves_share_a_gpu_and_a_third_gets_another() -> None:
    cluster = Cluster([a_gpu_node()])
    cluster.add(a_share("a"), a_share("b"), a_share("c"))
    cluster.settle()
    assert cluster.bound == ["a", "b", "c"]
    assert cluster.gpus_of("a") == cluster.gpus_of("b") != cluster.gpus_of("c")
    assert len(cluster.reservations()) == 2


def test_steps_are_in_an_order_that_survives_a_kill() -> None:
    cluster = Cluster([a_gpu_node()])
    cluster.add(a_share("a"))
    order = []
    for _ in range(4):
        order += [type(step) for step in cluster.round()]
        cluster.play_kubelet()
    assert order == [Claim, Reserve, Bind]
    (reservation,) = cluster.reservations()
    assert reservation.labels[GPU_GROUP] == cluster.pod("a").labels[GPU_GROUP]
    assert cluster.gpus_of("a") == reservation.annotations[RESERVED_GPU]


def test_the_uuid_is_awaited() -> None:
    cluster = Cluster([a_gpu_node()])
    cluster.add(a_share("a"))
    cluster.settle(kubelet=False)
    assert not cluster.bound
    assert cluster.plan().next_deadline == cluster.settings.reservation.deadline_seconds
    cluster.play_kubelet()
    cluster.settle()
    assert cluster.bound == ["a"]


def test_an_existing_reservation_that_is_not_annotated_yet_is_awaited_and_joined() -> None:
    cluster = Cluster([a_gpu_node(gpus=1)])
    cluster.add(a_share("a"))
    cluster.settle(kubelet=False)
    cluster.restart()
    cluster.add(a_share("b"))
    cluster.settle(kubelet=False)
    assert len(cluster.reservations()) == 1
    cluster.settle()
    assert sorted(cluster.bound) == ["a", "b"]
    assert cluster.gpus_of("a") == cluster.gpus_of("b")


def test_best_fit_chooses_the_gpu_with_the_least_left() -> None:
    cluster = Cluster([a_gpu_node(gpus=3)])
    cluster.add(a_share("a", "0.6"))
    cluster.settle()
    cluster.add(a_share("b", "0.7"))
    cluster.settle()
    cluster.add(a_share("c", "0.3"), a_share("d", "0.4"))
    cluster.settle()
    assert cluster.gpus_of("c") == cluster.gpus_of("b")
    assert cluster.gpus_of("d") == cluster.gpus_of("a")
    assert len(cluster.reservations()) == 2


def test_shares_of_several_gpus_get_as_many_reservations() -> None:
    cluster = Cluster([a_gpu_node(gpus=1), a_gpu_node("n2", gpus=2)])
    cluster.add(a_share("a", devices=2), a_share("b", devices=2))
    cluster.settle()
    assert cluster.pod("a").node_name == cluster.pod("b").node_name == "n2"
    assert cluster.gpus_of("a").split(",") == cluster.gpus_of("b").split(",")
    assert len(set(cluster.gpus_of("a").split(","))) == 2
    assert len(gpu_groups(cluster.pod("a"))) == 2


def test_a_share_in_mib_is_a_part_of_the_node_s_gpus() -> None:
    cluster = Cluster([a_gpu_node(gpus=1, memory=20480), a_gpu_node("n2", gpus=1, memory=81920)])
    cluster.add(a_share("a", None, memory="40960"))
    cluster.settle()
    assert cluster.pod("a").node_name == "n2"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cordoned": True}, "1 cordoned"),
        ({"ready": False}, "1 not ready"),
        ({"taints": ["sku"]}, "1 with a taint that is not tolerated"),
        ({"pool": "b"}, "1 not matching the node selector or affinity"),
        ({"cpu": "1"}, "1 without enough CPU"),
        ({"pods": 1}, "1 without room for more pods"),
        ({"more_labels": {"nvidia.com/gpu.replicas": "4"}}, "1 with devices that are not whole GPUs"),
    ],
)
def test_the_message_says_what_nodes_lack(fields: dict[str, Any], message: str) -> None:
    cluster = Cluster([a_gpu_node(**fields)])
    cluster.add(a_share("a", cpu="4", selector={"pool": "a"}))
    cluster.settle()
    assert cluster.messages == {"a": f"0/1 nodes are available: {message}"}
    assert cluster.pod("a").unschedulable


def test_a_node_needs_room_for_the_pod_and_its_reservation() -> None:
    cluster = Cluster([a_gpu_node("n1", pods=3), a_gpu_node("n2", gpus=4, pods=3)])
    cluster.add(a_plain_pod("plain"), a_plain_pod("other"), a_share("a"))
    cluster.settle()
    assert cluster.pod("a").node_name == "n2"


def test_finished_pods_do_not_count() -> None:
    cluster = Cluster([a_gpu_node(pods=2)])
    cluster.add(a_plain_pod("plain", phase="Succeeded"), a_plain_pod("other", phase="Failed"), a_share("a"))
    cluster.settle()
    assert cluster.bound == ["a"]


def test_a_share_that_joins_a_group_needs_no_second_pod() -> None:
    cluster = Cluster([a_gpu_node(pods=3)])
    cluster.add(a_share("a"), a_share("b"), a_share("c"))
    cluster.settle()
    assert cluster.bound == ["a", "b"]
    assert cluster.messages == {"c": "0/1 nodes are available: 1 without room for more pods"}


@pytest.mark.parametrize("later", [False, True])
def test_a_planned_reservation_counts_as_a_pod(later: bool) -> None:
    """Also if another share comes, or a binder is killed, in between."""
    cluster = Cluster([a_gpu_node(pods=3)])
    cluster.add(a_share("a", "0.8"))
    if later:
        cluster.round()
        cluster.restart()
    cluster.add(a_share("b", "0.8"))
    cluster.settle()
    assert cluster.bound == ["a"]
    assert cluster.messages == {"b": "0/1 nodes are available: 1 without room for more pods"}
    assert len(cluster.pods) - 1 == 2


def test_a_planned_reservation_counts_its_cpu() -> None:
    reservation = ReservationSettings(image="example/plimsoll:1", requests={"cpu": "1"})
    cluster = Cluster([a_gpu_node(cpu="1")], BinderSettings(reservation=reservation))
    cluster.add(a_share("a", "0.8"), a_share("b", "0.8"), a_share("c", "0.2"))
    cluster.settle()
    assert cluster.bound == ["a", "c"]
    assert cluster.messages == {"b": "0/1 nodes are available: 1 without enough CPU"}


def test_a_claim_on_a_node_that_others_have_filled_is_removed() -> None:
    cluster = Cluster([a_gpu_node("n1", pods=2), a_gpu_node("n2", gpus=4, pods=2)])
    cluster.add(a_share("a"))
    cluster.round()
    cluster.add(a_plain_pod("plain"))
    cluster.settle()
    assert cluster.pod("a").node_name == "n2"


@pytest.mark.parametrize(("cpu", "node"), [("2", "n2"), ("0", "n1")])
def test_a_claim_on_a_node_whose_cpu_others_have_taken_is_removed(cpu: str, node: str) -> None:
    """The kubelet would reject the pod, unless it requests no CPU."""
    cluster = Cluster([a_gpu_node("n1", cpu="4"), a_gpu_node("n2", gpus=4, cpu="4")])
    cluster.add(a_share("a", cpu=cpu))
    cluster.settle(kubelet=False)
    assert cluster.reservations()[0].node_name == "n1"
    cluster.add(a_plain_pod("plain", cpu="4"))
    cluster.settle()
    assert cluster.pod("a").node_name == node


@pytest.mark.parametrize(
    ("resource", "amount", "others"),
    [("rdma/hca", "1", "1"), ("hugepages-2Mi", "2Gi", "1Gi"), ("ephemeral-storage", "2Gi", "1G")],
)
def test_every_resource_that_a_share_requests_counts(resource: str, amount: str, others: str) -> None:
    cluster = Cluster([a_gpu_node("n1"), a_gpu_node("n2", gpus=4, more={resource: amount})])
    cluster.add(a_share("a", more={resource: others}), a_share("b", more={resource: amount}), a_share("c"))
    cluster.settle()
    assert sorted(cluster.bound) == ["a", "c"]
    assert cluster.pod("a").node_name == "n2"
    assert cluster.messages == {"b": f"0/2 nodes are available: 2 without enough {resource}"}


def test_pods_without_gpus_use_the_ephemeral_storage_of_their_node() -> None:
    cluster = Cluster([a_gpu_node("n1", more={"ephemeral-storage": "10Gi"})])
    cluster.add(a_plain_pod("plain", "n1", storage="8Gi"), a_share("a", more={"ephemeral-storage": "3Gi"}))
    cluster.settle()
    assert cluster.messages == {"a": "0/1 nodes are available: 1 without enough ephemeral-storage"}


def test_a_claim_on_a_node_whose_devices_others_have_taken_is_removed() -> None:
    cluster = Cluster([a_gpu_node("n1", more={"rdma/hca": "1"}), a_gpu_node("n2", gpus=4, more={"rdma/hca": "1"})])
    cluster.add(a_share("a", more={"rdma/hca": "1"}))
    cluster.settle(kubelet=False)
    assert cluster.reservations()[0].node_name == "n1"
    cluster.add(a_share("other", more={"rdma/hca": "1"}).model_copy(update={"node_name": "n1"}))
    cluster.settle()
    assert cluster.pod("a").node_name == "n2"


def test_a_full_node_is_reported_once() -> None:
    cluster = Cluster([a_gpu_node(gpus=1)])
    cluster.add(a_share("a", "0.8"), a_share("b", "0.8"))
    cluster.settle()
    assert cluster.bound == ["a"]
    assert cluster.messages["b"] == "0/1 nodes are available: 1 without 0.8 of a GPU free"
    assert cluster.plan().steps == ()


def test_pods_that_no_node_could_serve_are_refused_and_are_not_demand() -> None:
    cluster = Cluster([a_gpu_node()])
    cluster.add(a_share("a", obstacle="it uses a port"), a_share("b", "2"), a_share("c", None))
    cluster.settle()
    assert not cluster.bound
    assert cluster.messages["a"] == "it uses a port"
    assert "gpu-fraction '2'" in cluster.messages["b"]
    assert "no share" in cluster.messages["c"]
    assert not any(cluster.pod(name).unschedulable for name in "abc")


def test_a_placed_pod_is_not_demand_any_more() -> None:
    cluster = Cluster([])
    cluster.add(a_share("a"))
    cluster.settle()
    assert cluster.pod("a").unschedulable
    cluster.nodes = [a_gpu_node()]
    cluster.settle(kubelet=False)
    assert cluster.pod("a").conditions[0].reason == UnscheduledReason.RESERVING
    assert not cluster.pod("a").unschedulable


def test_pods_of_other_schedulers_are_not_changed() -> None:
    cluster = Cluster([a_gpu_node()])
    cluster.add(a_share("a", scheduler="kai-scheduler"))
    assert cluster.plan().steps == ()


def test_pods_with_higher_priority_go_first() -> None:
    cluster = Cluster([a_gpu_node(gpus=1)])
    cluster.add(a_share("a", "0.8"), a_share("b", "0.8", priority=100))
    cluster.settle()
    assert cluster.bound == ["b"]


def test_a_copy_of_a_bound_pod_gets_its_own_place() -> None:
    cluster = Cluster([a_gpu_node(gpus=1)])
    cluster.add(a_share("a", "0.8"))
    cluster.settle()
    bound = cluster.pod("a")
    copy = a_share("copy", "0.2", labels=bound.labels)
    brought = {key: bound.annotations[key] for key in (SELECTED_NODE, VISIBLE_DEVICES)}
    cluster.add(copy.model_copy(update={"annotations": copy.annotations | brought}))
    cluster.settle()
    assert cluster.gpus_of("copy") == cluster.gpus_of("a")
    assert cluster.pod("copy").annotations[SELECTED_NODE].endswith("/uid-copy")


def test_a_copy_of_a_bound_pod_that_has_no_place_keeps_none_from_others() -> None:
    cluster = Cluster([a_gpu_node(gpus=1)])
    cluster.add(a_share("a", "0.2"))
    cluster.settle()
    cluster.add(a_share("copy", "0.7", selector={"no": "such"}, labels=cluster.pod("a").labels), a_share("b"))
    cluster.settle()
    assert cluster.bound == ["a", "b"]


def test_a_forged_claim_that_does_not_fit_is_removed() -> None:
    cluster = Cluster([a_gpu_node(gpus=2)])
    cluster.add(a_share("a", "0.8"))
    cluster.settle()
    group = cluster.pod("a").labels[GPU_GROUP]
    forged = a_share("forged", "0.8", labels={GPU_GROUP: group})
    cluster.add(forged.model_copy(update={"annotations": {**forged.annotations, SELECTED_NODE: "n1/uid-forged"}}))
    cluster.settle()
    assert cluster.gpus_of("forged") != cluster.gpus_of("a")
    assert not cluster.evicted


@pytest.mark.parametrize(
    "fields", [{"scheduling_gates": ("example.com/hold",)}, {"scheduler_name": "another"}], ids=["gate", "scheduler"]
)
def test_a_forged_claim_on_a_pod_that_the_binder_does_not_bind_takes_no_gpu(fields: dict[str, Any]) -> None:
    cluster = Cluster([a_gpu_node(gpus=2)])
    forged = a_share("forged", "0.99", devices=2, labels={f"runai-gpu-group/{name}": name for name in "gh"})
    claim = {**forged.annotations, SELECTED_NODE: "n1/uid-forged"}
    cluster.add(forged.model_copy(update={"annotations": claim, **fields}), a_share("a"))
    cluster.settle()
    assert cluster.bound == ["a"]


def test_shares_join_a_reserved_gpu_of_a_node_whose_pods_request_too_many() -> None:
    cluster = Cluster([a_gpu_node(gpus=1), a_gpu_node("n2", gpus=1)])
    cluster.add(a_share("a", "0.9"), a_share("b", "0.9"))
    cluster.settle(kubelet=False)
    first = cluster.reservations()[0]
    cluster.annotate(first, "GPU-0")
    for node in ("n1", "n2"):
        plain = a_plain_pod(f"plain-{node}", node)
        cluster.add(plain.model_copy(update={"annotations": {GPU_FRACTION: "unreadable"}}))
    cluster.add(a_share("c", "0.1"), a_share("d", "0.1"))
    cluster.settle(kubelet=False)
    # The GPU of the other node is not known to exist.
    assert len(cluster.bound) == 2
    assert {cluster.pod(name).node_name for name in cluster.bound} == {first.node_name}


def test_a_claim_on_a_deleted_node_is_removed() -> None:
    cluster = Cluster([a_gpu_node()])
    cluster.add(a_share("a"))
    cluster.round()
    cluster.nodes = [a_gpu_node("n2")]
    cluster.settle()
    assert cluster.pod("a").node_name == "n2"


def test_a_pod_that_cannot_get_its_gpu_loses_its_claim() -> None:
    cluster = Cluster([a_gpu_node(gpus=1)])
    cluster.add(a_share("a", "0.8"), a_share("b", "0.8"))
    cluster.settle(kubelet=False)
    cluster.planner.leave("uid-a", cluster.now)
    cluster.settle()
    assert cluster.bound == ["b"]
    assert SELECTED_NODE not in cluster.pod("a").annotations


@pytest.mark.parametrize(
    ("count", "fraction", "gpus"),
    [(16, "0.0625", 1), (17, "0.0625", 2), (3, "0.3333", 1), (3, "0.3334", 2)],
)
def test_fractions_are_exact(count: int, fraction: str, gpus: int) -> None:
    cluster = Cluster([a_gpu_node(gpus=2)])
    cluster.add(*(a_share(f"share-{number:02}", fraction) for number in range(count)))
    cluster.settle()
    assert len(cluster.bound) == count
    assert len(cluster.reservations()) == gpus


def test_two_shares_of_more_than_half_of_the_whole_hundreds_of_mib_have_a_gpu_each() -> None:
    """KAI divides 81900 of 81920 MiB."""
    for mib, gpus in (("40960", 2), ("40950", 1)):
        cluster = Cluster([a_gpu_node(gpus=2, memory=81920)])
        cluster.add(a_share("a", None, memory=mib), a_share("b", None, memory=mib))
        cluster.settle()
        assert len(cluster.reservations()) == gpus
    full = Cluster([a_gpu_node(gpus=2, memory=81920)])
    full.add(a_share("a", None, memory="81920"))
    full.settle()
    assert not full.bound


def test_a_pod_that_could_not_be_bound_is_tried_again_after_a_pause() -> None:
    cluster = Cluster([a_gpu_node(gpus=1)])
    cluster.add(a_share("a", "0.8"))
    cluster.planner.leave("uid-a", cluster.now)
    cluster.settle()
    assert cluster.bound == []
    assert cluster.plan().next_deadline == cluster.now + 60
    cluster.now += 60
    cluster.settle()
    assert cluster.bound == ["a"]


def test_a_node_that_refuses_reservations_is_paused_longer_each_time() -> None:
    """However many reservations it refuses at once."""
    backoff = NodeBackoff(60, 900)
    ends = []
    now = 0.0
    for _ in range(6):
        for _ in range(3):
            backoff.refused("n1", now)
        assert backoff.paused(now) == {"n1"}
        ends.append((backoff.next_end(now) or 0) - now)
        now += ends[-1]
        assert not backoff.paused(now)
    assert ends == [60, 120, 240, 480, 900, 900]


def test_reservations_that_stay_failed_count_once_each() -> None:
    backoff = NodeBackoff(60, 900)
    for now in range(0, 600, 10):
        backoff.failed("n1", "uid-1", now)
        backoff.failed("n1", "uid-2", now)
    assert not backoff.paused(600)
