"""An engine that starts anew goes on from what GPUDemands tell of the one before it, and trusts none of it."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.api import MAX_HELD, MAX_LISTED, DemandPlace, GPUDemand, GPUDemandStatus
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.meta import HostRequest
from plimsoll.plan.demand import Demand, DemandPlanner, demands
from plimsoll.plan.requests import figures
from tests.builders import a_gpu_node, a_snapshot, a_waiting_pod
from tests.demand.cluster_over_time import told
from tests.demand.test_properties import MEMORY, POOL, check, nodes, pods, promises_of

A10G, L4 = "NVIDIA-A10G", "NVIDIA-L4"


def gpus_of(found: tuple[Demand, ...]) -> int:
    """Of nodes that would be asked for."""
    return sum(node.gpus for demand in found for node in demand.nodes)


def cost(found: tuple[Demand, ...]) -> tuple[int, int]:
    return sum(len(demand.refused) for demand in found), gpus_of(found)


def two_nodes() -> list[Node]:
    return [a_gpu_node("node-a10g", A10G, gpus=1, memory=MEMORY), a_gpu_node("node-l4", L4, gpus=1, memory=MEMORY)]


def of_a10g(name: str, fraction: str) -> Pod:
    return a_waiting_pod(name, gpu_fraction=fraction, queue="team-a", selector={"nvidia.com/gpu.product": A10G})


def test_a_class_keeps_its_part_of_a_node_that_another_would_choose() -> None:
    """The pod of any GPU, more urgent and so the first to choose, would take the only A10G."""
    early, late = of_a10g("early", "0.5"), a_waiting_pod("late", gpu_fraction="0.7", priority=10)
    planner = DemandPlanner()
    before = planner.demands(a_snapshot(*two_nodes(), POOL, early))
    lived = planner.demands(a_snapshot(*two_nodes(), POOL, early, late))
    assert not gpus_of(before) and not gpus_of(lived)
    assert gpus_of(demands(a_snapshot(*two_nodes(), POOL, early, late))) == 1, "else this shows nothing"
    for known in (before, lived):
        objects = [*two_nodes(), POOL, early, late, *map(told, known)]
        assert not gpus_of(DemandPlanner().demands(a_snapshot(*objects)))


def test_a_place_that_would_cost_a_node_is_not_kept() -> None:
    """Written by somebody else, or of a cluster that was another then: the only L4 for the pod of any GPU."""
    of_l4 = a_waiting_pod("of-l4", gpu_fraction="0.5", queue="team-a", selector={"nvidia.com/gpu.product": L4})
    objects = [*two_nodes(), POOL, of_l4, a_waiting_pod("any", gpu_fraction="0.7")]
    found = demands(a_snapshot(*objects))
    assert not gpus_of(found), "else this shows nothing"
    honest = told(next(demand for demand in found if "l4" not in demand.name))
    (place,) = honest.status.places
    assert place.node == "node-a10g"
    forged = honest.status.model_copy(update={"places": (place.model_copy(update={"node": "node-l4"}),)})
    assert demands(a_snapshot(*objects, honest.model_copy(update={"status": forged}))) == found


def test_places_are_told_by_what_is_asked() -> None:
    snapshot = a_snapshot(a_gpu_node("node", L4, gpus=2, memory=MEMORY), *(share(n) for n in range(3)))
    (demand,) = demands(snapshot)
    status = figures(demand)
    assert status.requests == ("0.5 of a GPU, 500m CPU, 0 MiB",)
    assert status.places in [(DemandPlace(node="node", holds=holds),) for holds in (((0, 0), (0,)), ((0,), (0, 0)))]


def share(number: int, fraction: str = "0.5", **more: Any) -> Pod:
    return a_waiting_pod(f"secret-{number:05}", gpu_fraction=fraction, cpu="500m", uid=f"{number:05}", **more)


def test_nodes_alike_that_are_to_come_are_counted() -> None:
    found = demands(a_snapshot(POOL, *(share(n) for n in range(16))))
    asked = demands(a_snapshot(POOL, *(share(n) for n in range(16))), promises_of(found))
    (status,) = {figures(demand) for demand in found}
    assert sum(each.nodes * len(each.holds) for each in status.places) == 8
    assert figures(asked[0]).places == status.places, "what was asked for is told alike, so nothing is written again"


def test_five_thousand_pods_are_told_in_a_part_of_an_object() -> None:
    alike = [share(n, f"0.{1 + n % 9}") for n in range(5000)]
    different = [share(n, f"0.{1 + n % 9}").model_copy(update={"host": HostRequest(n, n)}) for n in range(5000)]
    spread = [a_gpu_node(f"node-{n:04}", L4, gpus=1, memory=MEMORY) for n in range(2000)]
    for snapshot in (a_snapshot(POOL, *alike), a_snapshot(POOL, *different), a_snapshot(POOL, *spread, *alike)):
        (demand,) = demands(snapshot)
        status = figures(demand)
        assert len(status.places) <= MAX_LISTED and len(status.requests) <= MAX_LISTED
        assert sum(len(gpu) for place in status.places for gpu in place.holds) <= MAX_HELD
        said = json.dumps(status.as_manifest())
        assert len(said) < 200_000
        assert "secret" not in said, "who may read it need not be allowed to read pods"


@st.composite
def nonsense(draw: st.DrawFn, honest: GPUDemandStatus) -> GPUDemandStatus:
    """What might stand in a status that somebody else wrote."""
    names = st.sampled_from(["", "", "node-0", "node-1", "node-2", "no-node", "x" * 300])
    place = st.builds(
        DemandPlace,
        node=names,
        node_pool=st.sampled_from(["pool", "", "no-pool"]),
        instance_type=st.sampled_from(["g6.xlarge", "g6.12xlarge", "g5.48xlarge", "no-type", ""]),
        nodes=st.sampled_from([1, 2, 10**9]),
        holds=st.lists(st.lists(st.integers(-2, 5), max_size=12).map(tuple) | st.just((0,) * 50), max_size=9).map(
            tuple
        ),
    )
    requests = draw(st.lists(st.sampled_from(["", "junk", *honest.requests]), max_size=6))
    places = draw(st.lists(place | st.sampled_from([*honest.places] or [DemandPlace(holds=())]), max_size=6))
    return honest.model_copy(update={"requests": (*honest.requests, *requests), "places": tuple(places)})


@settings(max_examples=25, deadline=None)
@given(pods(), nodes(), st.booleans(), st.data())
def test_nonsense_asks_for_no_more_than_nothing(
    given_pods: list[Pod], given_nodes: list[Node], on_their_way: bool, data: st.DataObject
) -> None:
    objects = [*given_nodes, *given_pods, POOL]
    found = demands(a_snapshot(*objects))
    promises = promises_of(found) if on_their_way else []
    forged = [
        GPUDemand(metadata={"name": demand.name}, status=data.draw(nonsense(figures(demand)), demand.name))  # type: ignore[call-arg]
        for demand in found
    ]
    alone = demands(a_snapshot(*objects), promises)
    misled = demands(a_snapshot(*objects, *forged), promises)
    free = {node.name: 1000 * int(node.allocatable["nvidia.com/gpu"]) for node in given_nodes}
    check(misled, given_pods, free)
    assert cost(misled) <= cost(alone)
