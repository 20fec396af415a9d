"""Used and free parts of the GPUs of one node."""

import math
from fractions import Fraction
from typing import Any

import pytest

from plimsoll.cluster.ledger import GpuAccount, GpuLedger
from plimsoll.cluster.profiles import DiscrepancyReason
from plimsoll.labels import UNKNOWN_GPU
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import FORMER_NAMESPACE, shareable_memory_mib
from plimsoll.packing import UNBOUNDED
from tests.builders import A100, a_pod, placed
from tests.ledger.cluster import a_gpu_node, a_reservation, a_share, a_whole

SHAREABLE_MIB = 81900
"""Of an A100 with 81920: KAI divides whole hundreds."""


def account(*objects: Node | Pod, node: str = "n1") -> GpuAccount:
    ledger = GpuLedger()
    nodes = [each for each in objects if isinstance(each, Node)] or [a_gpu_node()]
    ledger.update(nodes, [each for each in objects if isinstance(each, Pod)])
    found = ledger.account(node)
    assert found is not None
    return found


def reasons(found: GpuAccount) -> set[str]:
    return {each.reason.value for each in found.discrepancies}


def test_an_empty_node_is_wholly_free() -> None:
    found = account()
    assert (found.kind, found.gpus, found.free_milli, found.discrepancies) == (A100, 2, (1000, 1000), ())


def test_shares_of_one_group_use_one_gpu() -> None:
    found = account(a_reservation("g"), a_share("a", "n1", "g"), a_share("b", "n1", "g", fraction="0.25"))
    assert found.free_milli == (250, 1000)
    (group,) = found.groups
    assert (group.used_milli, group.used_mib, group.releasing_mib) == (750, SHAREABLE_MIB * 3 // 4, 0)
    assert (group.gpu, group.pods, group.reservations) == (
        "GPU-1", ("team/a", "team/b"), ("kai-resource-reservation/gpu-reservation-g",),
    )  # fmt: skip
    assert not found.discrepancies


def test_shares_in_mib_are_parts_of_the_memory_in_whole_hundreds_of_mib() -> None:
    found = account(a_reservation("g"), a_share("a", "n1", "g", fraction=None, memory="20480"))
    assert found.free_milli == (1000 - Fraction(20480 * 1000, SHAREABLE_MIB), 1000)
    assert found.groups[0].used_mib == 20480


def test_terminating_pods_are_releasing_and_not_free() -> None:
    found = account(
        a_reservation("g"), a_share("a", "n1", "g"), a_share("b", "n1", "g", fraction="0.25", deleting=True)
    )
    (group,) = found.groups
    assert (group.used_mib, group.releasing_mib) == (61425, 20475)
    assert not group.releasing
    assert found.free_milli == (250, 1000)
    only = account(a_reservation("g"), a_share("b", "n1", "g", deleting=True)).groups[0]
    assert only.releasing


def test_shares_of_several_gpus_are_in_several_groups() -> None:
    found = account(a_reservation("g"), a_reservation("h", gpu="GPU-2"), a_share("a", "n1", "g", "h", devices=2))
    assert found.free_milli == (500, 500)
    assert not found.discrepancies


def test_the_former_namespace_s_reservations_count_and_others_do_not() -> None:
    found = account(a_reservation("g", name="runai-x", namespace=FORMER_NAMESPACE), a_share("a", "n1", "g"))
    assert found.free_milli == (500, 1000)
    forged = account(a_reservation("g", namespace="team"), a_share("a", "n1", "g"))
    assert forged.free_milli == (1000, 0), "it holds a GPU for nobody"
    assert reasons(forged) == {"NoReservation"}


def test_whole_gpus_count_as_used() -> None:
    found = account(a_gpu_node(gpus=8), a_whole("w", gpus=3), a_whole("v", gpus=2, deleting=True))
    assert (found.whole, found.releasing_whole, found.free_milli) == (5, 2, (1000,) * 3 + (0,) * 5)


def test_finished_and_unbound_pods_use_nothing() -> None:
    found = account(a_share("a", "n1", phase="Succeeded"), a_share("b", ""), a_whole("w", ""))
    assert found.free_milli == (1000, 1000)
    assert not found.discrepancies


def test_a_share_that_is_being_bound_counts_on_the_node_of_its_reservation() -> None:
    assert account(a_reservation("g"), a_share("a", "", "g")).free_milli == (500, 1000)


def test_a_share_that_is_being_bound_counts_on_its_selected_node() -> None:
    found = account(a_share("a", "", "g", selected="n1"))
    assert (found.free_milli, found.discrepancies) == ((500, 1000), ())


def test_the_selected_node_of_a_copied_pod_does_not_count() -> None:
    pod = a_share("a", "", "g", selected="n1").model_copy(update={"uid": "another"})
    assert account(pod).free_milli == (1000, 1000)


def test_an_empty_reservation_is_joinable_unless_it_terminates() -> None:
    assert account(a_reservation("g", gpu=None)).free_milli == (1000, 1000)
    assert account(a_reservation("g", deleting=True)).free_milli == (0, 1000)
    assert account(a_reservation("g", gpu=UNKNOWN_GPU)).free_milli == (0, 1000)


def test_cpu_and_memory_of_pods_count() -> None:
    node = a_gpu_node()
    node = node.model_copy(update={"allocatable": {**node.allocatable, "cpu": "8", "memory": "64Gi"}})
    found = account(node, a_reservation("g"), a_share("a", "n1", "g", cpu="1500m"))
    assert (found.cpu_milli, found.host_memory_mib) == (8000 - 1 - 1500, 65536 - 10)


def test_pods_and_missing_reservations_count_as_pods() -> None:
    assert account(a_gpu_node(), a_share("a", "n1")).pod_room >= UNBOUNDED
    node = a_gpu_node()
    node = node.model_copy(update={"allocatable": {**node.allocatable, "pods": "3"}})
    claimed = a_share("a", "", "g", selected="n1")
    assert (account(node, claimed).free_pods, account(node, claimed).pod_room) == (2, 1)
    assert account(node, claimed, a_reservation("g")).pod_room == 1
    more = [a_share(name, "n1") for name in "bcd"]
    assert account(node, claimed, *more).pod_room == -2


def test_groups_without_a_reservation_are_reported_together() -> None:
    found = account(placed(a_share("a"), "n1", "g"), placed(a_share("b"), "n1", "h"))
    (discrepancy,) = found.discrepancies
    assert discrepancy.reason == DiscrepancyReason.NO_RESERVATION
    assert "groups g, h" in discrepancy.message


@pytest.mark.parametrize(
    ("pods", "free", "reason"),
    [
        ([placed(a_share("a"), "n1", "g")], (1000, 0), DiscrepancyReason.NO_RESERVATION),
        (
            [a_reservation("g"), a_reservation("g", name="second"), a_share("a", "n1", "g")],
            (0, 0),
            DiscrepancyReason.SEVERAL_RESERVATIONS,
        ),
        (
            [a_reservation("g"), a_share("a", "n1", "g", fraction="0.7"), a_share("b", "n1", "g", fraction="0.7")],
            (0, 1000),
            DiscrepancyReason.OVERBOOKED,
        ),
        (
            [a_reservation("g"), a_reservation("h"), a_reservation("i"), a_share("a", "n1", "g")],
            (0, 0),
            DiscrepancyReason.TOO_MANY_GPUS,
        ),
        ([a_reservation("g"), a_whole("w", gpus=2)], (0, 0), DiscrepancyReason.TOO_MANY_GPUS),
        (
            [a_reservation("g"), a_share("a", "n1", "g", fraction="half")],
            (0, 1000),
            DiscrepancyReason.UNREADABLE_SHARE,
        ),
        ([a_whole("w", gpus="1.5")], (1000, 0), DiscrepancyReason.UNREADABLE_SHARE),
        (
            [a_reservation("g"), a_share("a", "n1", "g", "h", devices=3), a_reservation("h")],
            (500, 500),
            DiscrepancyReason.WRONG_GROUPS,
        ),
        (
            [a_reservation("g"), a_share("a", "n1", "g", fraction=None, memory="999999")],
            (0, 1000),
            DiscrepancyReason.OVERBOOKED,
        ),
    ],
)
def test_contradictions_are_reported_and_count_as_used(
    pods: list[Pod], free: tuple[int, ...], reason: DiscrepancyReason
) -> None:
    found = account(*pods)
    assert tuple(sorted(found.free_milli, reverse=True)) == tuple(sorted(free, reverse=True))
    assert reason in {each.reason for each in found.discrepancies}
    assert all(each.node == "n1" and each.message for each in found.discrepancies)


def test_a_share_in_mib_of_a_gpu_with_unknown_memory_counts_as_all_of_it() -> None:
    node = a_gpu_node(memory=None)
    assert account(node, a_reservation("g"), a_share("a", "n1", "g", fraction=None, memory="1")).free_milli == (0, 1000)
    assert account(node, a_reservation("g"), a_share("a", "n1", "g")).free_milli == (500, 1000)


@pytest.mark.parametrize("gpus", ["many", "-3", "1000000000"])
def test_a_node_with_invalid_quantities_has_no_gpus(gpus: str) -> None:
    found = account(a_gpu_node(gpus=gpus))
    assert (found.free_milli, reasons(found)) == ((), {"UnreadableNode", "InvalidLabel"})


@pytest.mark.parametrize(
    "fields", [{"product": f"{A100}-MIG-1g.10gb"}, {"more_labels": {"nvidia.com/gpu.replicas": "4"}}]
)
def test_devices_that_are_not_whole_gpus_are_not_shareable(fields: dict[str, Any]) -> None:
    node = a_gpu_node(**fields)
    assert not account(node).shareable
    assert "NotShareable" in reasons(account(node, a_reservation("g"), a_share("a", "n1", "g")))


def test_pods_with_other_requests_use_no_gpu() -> None:
    assert account(a_pod("p", node="n1", devices=1, resource="example.com/nic")).free_milli == (1000, 1000)


def test_a_gpu_whose_reservation_is_created_again_is_likely_free() -> None:
    """A binder must know that a GPU is free; the demand planner uses the likely amount."""
    held = account(placed(a_share("a"), "n1", "g"))
    assert (held.free_milli, held.likely_free_milli) == ((0, 1000), (500, 1000))


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (a_share("a", "n1"), "NoGroup"),
        (a_share("a", "n1", devices=2), "NoGroup"),
        (a_share("a", "n1", fraction="7"), "UnreadableShare"),
        (a_share("a", "n1", "g"), "NoReservation"),
        (a_share("a", "n1", "g", "h", devices=2), "NoReservation"),
        (a_share("a", "n1", "g", fraction="7"), "NoReservation"),
    ],
)
def test_a_share_that_nobody_placed_counts_for_nothing_and_is_reported(pod: Pod, reason: str) -> None:
    """Anyone may create a pod with a node's name, annotations of a share and the label of a group."""
    found = account(pod)
    assert found.free_milli == found.likely_free_milli == (1000, 1000)
    assert reason in reasons(found)
    assert found.discrepancies[0].message
    real = placed(a_share("real", fraction="0.25"), "n1", "g")
    assert sorted(account(pod, real, a_reservation("g"), a_reservation("h")).free_milli)[0] <= 750


def test_a_share_without_a_place_takes_nothing_of_the_groups_of_others() -> None:
    """Not even by the name of a group whose reservation is elsewhere."""
    elsewhere = a_reservation("g", "n2")
    nodes = (a_gpu_node("n1"), a_gpu_node("n2"))
    found = account(*nodes, elsewhere, a_share("a", "n1", "g"), a_share("b", "n2", "g"))
    assert found.free_milli == (1000, 1000)
    assert account(*nodes, elsewhere, a_share("b", "n2", "g"), node="n2").free_milli == (500, 1000)


def test_two_groups_on_one_gpu_are_reported() -> None:
    pods = (a_reservation("g"), a_reservation("h"), a_share("a", "n1", "g"), a_share("b", "n1", "h"))
    assert [each.reason for each in account(*pods).discrepancies] == [DiscrepancyReason.SHARED_GPU]
    apart = (a_reservation("g"), a_reservation("h", gpu="GPU-2"), *pods[2:])
    assert account(*apart).discrepancies == ()


@pytest.mark.parametrize(
    ("fraction", "count", "free"),
    [
        pytest.param("0.0625", 16, 0, id="sixteenths fill it"),
        pytest.param("0.3333", 3, Fraction(1, 10), id="0.3333"),
        pytest.param("0.00001", 1, Fraction(99_999, 100), id="next to nothing"),
    ],
)
def test_fractions_are_exact(fraction: str, count: int, free: Fraction | int) -> None:
    shares = [a_share(f"share-{number}", "n1", "g", fraction=fraction) for number in range(count)]
    found = account(a_reservation("g"), *shares)
    assert found.free_milli == (free, 1000)
    assert not found.discrepancies
    used = (1000 - free) * shareable_memory_mib(found.memory_mib or 0) / 1000
    assert found.groups[0].used_mib == math.ceil(used), "not rounded for each share"


def test_more_than_the_whole_hundreds_of_mib_is_too_much() -> None:
    """Two shares of 40960 MiB exceed 81900 MiB, and two of 40950 do not."""
    for mib, overbooked in (("40960", True), ("40950", False)):
        shares = [a_share(name, "n1", "g", fraction=None, memory=mib) for name in "ab"]
        found = account(a_reservation("g"), *shares)
        assert reasons(found) == ({"Overbooked"} if overbooked else set())
        assert found.free_milli == (0, 1000)


def test_thirds_of_the_mib_fill_a_gpu() -> None:
    shares = [a_share(name, "n1", "g", fraction=None, memory="27300") for name in "abc"]
    found = account(a_reservation("g"), *shares)
    assert (found.free_milli, found.discrepancies) == ((0, 1000), ())
