"""Constraints on where devices are, such as `matchAttribute` of the NUMA node: how many claims a node meets."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.claims import selection
from plimsoll.cluster.profiles import learned_of
from plimsoll.model.dra import Claimable, ClaimRequest, DeviceRequest, Subrequest
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from tests.claims.objects import (
    DRIVER,
    L4,
    Manifest,
    a_claim,
    a_class,
    a_device,
    a_node,
    a_slice,
    a_template,
    asked,
    snapshot_of,
)
from tests.claims.test_demand import FOUR, a_node_pool, a_profile, an_environment, only, pods, refusals

NUMA: Final = "resource.kubernetes.io/numaNode"
MATCH: Final = [{"matchAttribute": NUMA}]
DISTINCT: Final = [{"distinctAttribute": NUMA}]


def a_numa_node(*nodes: int) -> list[Manifest]:
    """A node with a device at each of these NUMA nodes."""
    places = enumerate(nodes)
    devices = [a_device(f"gpu-{each}", {**L4, "uuid": f"GPU-{each}", NUMA: place}) for each, place in places]
    return [a_node("n1", instance_type=FOUR), a_slice("n1", devices)]


def planned(folder: Path, *manifests: Manifest) -> DemandPlan:
    return DemandPlanner().plan(snapshot_of(folder, an_environment(), a_class(), *manifests))


def placed(found: DemandPlan) -> int:
    return sum(map(len, only(found).on_nodes.values()))


@pytest.mark.parametrize(
    ("constraint", "count", "number"),
    [(MATCH, 1, 8), (MATCH, 2, 4), (MATCH, 3, 2), (MATCH, 4, 2), (DISTINCT, 1, 8), (DISTINCT, 2, 4)],
)
def test_a_node_meets_as_many_claims_as_its_numa_nodes_do(
    tmp_path: Path, constraint: list[Manifest], count: int, number: int
) -> None:
    """Eight devices at two NUMA nodes."""
    node = a_numa_node(0, 0, 0, 0, 1, 1, 1, 1)
    found = planned(tmp_path, *node, a_template("one", asked(count), constraints=constraint), *pods(9))
    assert placed(found) == number


@pytest.mark.parametrize(
    ("constraint", "count", "why"), [(MATCH, 5, "at most 4 have the same"), (DISTINCT, 3, "at most 2 have another")]
)
def test_a_claim_of_more_than_are_alike_is_told_so(
    tmp_path: Path, constraint: list[Manifest], count: int, why: str
) -> None:
    node = a_numa_node(0, 0, 0, 0, 1, 1, 1, 1)
    found = planned(tmp_path, *node, a_template("one", asked(count), constraints=constraint), *pods(1))
    assert not placed(found)
    (said,) = refusals(found)
    assert NUMA in said
    assert why in said


@pytest.mark.parametrize(("taken", "number"), [((0, 1), 1), ((0, 4), 0), ((0, 1, 2, 3), 1), ((), 2)])
def test_devices_in_use_leave_fewer_that_are_alike(tmp_path: Path, taken: tuple[int, ...], number: int) -> None:
    used = [a_claim("used", asked(1), devices=[("n1", f"gpu-{each}") for each in taken])] if taken else []
    node = a_numa_node(0, 0, 0, 0, 1, 1, 1, 1)
    found = planned(tmp_path, *node, *used, a_template("one", asked(4), constraints=MATCH), *pods(3))
    assert placed(found) == number


@pytest.mark.parametrize(
    ("places", "requests", "constraints", "feature"),
    [
        ((0, 0, 0, 1, 1, 1), (asked(2),), MATCH, f"matchAttribute {NUMA} of 2 of groups of 3, 3"),
        ((0, 0, 0, 1), (asked(2),), DISTINCT, f"distinctAttribute {NUMA} of 2 of groups of 1, 3"),
        ((0, 0, 1, 1), (asked(1), asked(1)), [*MATCH, *DISTINCT], f"beside distinctAttribute {NUMA}"),
    ],
)
def test_groups_that_devices_alone_do_not_count_are_told_by_name(
    tmp_path: Path, places: tuple[int, ...], requests: tuple[Manifest, ...], constraints: list[Manifest], feature: str
) -> None:
    """Six devices are three pairs, but these have one of each NUMA node."""
    node = a_numa_node(*places)
    found = planned(tmp_path, *node, a_template("one", *requests, constraints=constraints), *pods(1))
    assert not placed(found)
    (said,) = refusals(found)
    assert "ClaimNotPlanned" in said
    assert feature in said


@pytest.mark.parametrize("learned", [True, False])
def test_nodes_are_requested_for_devices_of_one_numa_node(tmp_path: Path, learned: bool) -> None:
    (node,) = snapshot_of(tmp_path, *a_numa_node(0, 0, 1, 1)).nodes
    said = learned_of([node]).claim_devices
    assert said is not None
    assert said.claimable == node.published.kinds[0][0].served_as(frozenset())
    assert said.attribute_groups == {NUMA: (2, 2)}
    fields = said.model_dump(by_alias=True, exclude_defaults=True, exclude={"count", "driver"}, mode="json")
    found = planned(
        tmp_path, a_node_pool(), a_profile(learned=learned, count=4, **fields),
        a_template("one", asked(2), constraints=MATCH), *pods(5),
    )  # fmt: skip
    assert not refusals(found)
    assert len(found.nodes) == 3


def test_all_devices_of_one_numa_node_are_alike(tmp_path: Path) -> None:
    request = asked(1) | {"allocationMode": "All"}
    found = planned(tmp_path, *a_numa_node(0, 0, 0), a_template("one", request, constraints=MATCH), *pods(2))
    assert placed(found) == 1


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(1, 4), st.booleans())
def test_a_number_of_pods_is_only_said_if_the_devices_suffice_in_their_places(
    places: list[int], count: int, matches: bool
) -> None:
    """Whatever a scheduler takes first, it has the devices for as many pods as these are packed."""
    sizes = tuple(sorted(Counter(places).values()))
    device = Claimable(DRIVER, groups=((NUMA, sizes),))
    asked_for = (DeviceRequest("gpu", (Subrequest(DRIVER, count=count),)),)
    request = ClaimRequest(asked_for, (NUMA,), ()) if matches else ClaimRequest(asked_for, (), (NUMA,))
    found = selection((request,), device, len(places))
    if found.number and count > 1:
        room = sum(size // count for size in sizes) if matches else min(sizes) if count == len(sizes) else 0
        assert len(places) // count == room
