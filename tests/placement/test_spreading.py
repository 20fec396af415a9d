"""Nodes on which the scheduler spreads pods: the share binder and the planner place them alike."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.bind import read_settings
from plimsoll.bind.planning import HostRoom, SharePlacer, claimed
from plimsoll.cli.tables.status import as_json
from plimsoll.cluster.ledger import GpuLedger
from plimsoll.cluster.pods import read_request
from plimsoll.cluster.pools import Strategies
from plimsoll.errors import PlimsollError
from plimsoll.labels import NODEPOOL
from plimsoll.model.api import DemandSettings
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import ReservationSettings
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod, an_environment
from tests.demand.plans import on_nodes, only, planned, refused, requests_of, types

L4 = "NVIDIA-L4"
POOL = a_node_pool("l4", ["g6.xlarge"])
SPREAD = an_environment(demand={"placement": {"l4": "spread"}, "schedulers": ["plimsoll"]})
IN_POOL = {NODEPOOL: "l4"}


def a_host(number: int, gpus: int = 1, pool: str = "l4") -> Node:
    return a_gpu_node(f"node-{number}", L4, gpus=gpus, more_labels={NODEPOOL: pool})


def shares(*fractions: str, devices: int = 1, priority: int = 0) -> list[Pod]:
    more: dict[str, Any] = {"gpu_fraction_num_devices": str(devices)} if devices > 1 else {}
    return [
        a_waiting_pod(f"pod-{n:02}", gpu_fraction=each, scheduler="plimsoll", priority=priority, cpu="100m", **more)
        for n, each in enumerate(fractions)
    ]


def bound(nodes: list[Node], pods: list[Pod], strategies: Strategies) -> dict[str, str]:
    """The node of each pod that the share binder places, by UID."""
    ledger = GpuLedger(waits=lambda _: True)
    ledger.update(nodes, [])
    placer = SharePlacer(
        ledger.accounts(), HostRoom(ledger, ReservationSettings(image="example/plimsoll:1")), strategies=strategies
    )
    found: dict[str, str] = {}
    for pod in sorted(pods, key=lambda pod: (-pod.priority, pod.creation_timestamp, pod.namespace, pod.name)):
        share = read_request(pod).share
        assert share is not None
        place = placer.place(pod, share)
        if node := getattr(place, "node", ""):
            found[pod.uid] = node
            ledger.put_pod(claimed(pod, place))  # type: ignore[arg-type]
            account = ledger.account(node)
            assert account is not None
            placer.replace(account)
    return found


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        pytest.param({}, [3], id="packed"),
        pytest.param({"l4": "binpack", "*": "spread"}, [3], id="packed by name"),
        pytest.param({"l4": "spread"}, [1, 1, 1], id="spread"),
        pytest.param({"*": "spread"}, [1, 1, 1], id="spread everywhere"),
        pytest.param({"other": "spread"}, [3], id="another NodePool"),
    ],
)
def test_free_gpus_by_the_strategy_of_the_node_pool(placement: dict[str, Any], expected: list[int]) -> None:
    nodes, pods = [a_host(number) for number in range(3)], shares("0.2", "0.2", "0.2")
    environment = an_environment(demand={"placement": placement, "schedulers": ["plimsoll"]})
    plan = planned(POOL, *nodes, *pods, environment=environment)
    assert sorted(Counter(on_nodes(plan).values()).values()) == expected
    assert not plan.nodes
    assert sorted(Counter(bound(nodes, pods, Strategies(placement)).values()).values()) == expected
    warnings = [each for each in only(plan).warnings if "demand." in each]
    assert [each.endswith("there is no NodePool other") for each in warnings] == [True] * ("other" in placement)


def test_shared_devices_of_an_unknown_node_pool_are_told() -> None:
    """In demand and in `status`; a NodePool is known by its nodes, too."""
    devices = [{"nodePool": name, "resource": "nvidia.com/gpu.shared", "perGpu": 4} for name in ("l4", "gone", "l44")]
    environment = an_environment(demand={"sharedDevices": devices, "schedulers": ["plimsoll"]})
    node = a_gpu_node("left", more_labels={NODEPOOL: "gone"})
    said = only(planned(POOL, node, *shares("0.2"), environment=environment)).warnings
    shown = as_json(a_snapshot(POOL, node, environment=environment))["warnings"]
    for warnings in (said, shown):
        assert [each for each in warnings if "sharedDevices" in each and "NodePool l44 " in each], warnings
        assert not [each for each in warnings if "no NodePool l4 " in each or "no NodePool gone" in each]


def test_new_nodes_are_as_many_as_a_scheduler_that_spreads_needs() -> None:
    """0.3 and 0.3 would share a GPU and leave one for 0.8; spread over both, they leave none."""
    pods = shares("0.3", "0.3", "0.8")
    assert (
        types(planned(POOL, *pods, environment=an_environment(demand={"schedulers": ["plimsoll"]})))
        == ["g6.xlarge"] * 2
    )
    plan = planned(POOL, *pods, environment=SPREAD)
    assert (types(plan), plan.least_gpus, refused(plan)) == (["g6.xlarge"] * 3, 2, {})
    again = planned(POOL, *pods, requested=requests_of(plan.nodes), environment=SPREAD)
    assert not again.nodes, "requested nodes are spread over as well"
    assert len(again.needed) == 3


def test_the_order_is_that_of_the_scheduler() -> None:
    """The large pod comes first by its priority, and the small ones leave it its GPU."""
    (large,) = [pod.model_copy(update={"name": "z", "uid": "z"}) for pod in shares("0.8", priority=1)]
    assert len(planned(POOL, *shares("0.3", "0.3"), large, environment=SPREAD).nodes) == 2


def test_a_place_that_spreading_takes_is_not_promised() -> None:
    nodes, pods = [a_host(0), a_host(1)], shares("0.3", "0.3", "0.8")
    plan = planned(*nodes, *pods, environment=SPREAD)
    assert set(on_nodes(plan)) == set(bound(nodes, pods, Strategies({"l4": "spread"}))) == {"uid-pod-00", "uid-pod-01"}
    assert set(refused(plan)) == {"uid-pod-02"}


_fractions = st.lists(st.sampled_from(["0.1", "0.25", "0.3", "0.5", "0.7", "0.9"]), max_size=12)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["l4", "l4", "packed"])), max_size=4),
    _fractions,
    st.integers(1, 2),
)
@settings(max_examples=100, deadline=None)
def test_what_is_promised_is_what_the_binder_binds(hosts: list[Any], fractions: list[str], devices: int) -> None:
    """Pod by pod on nodes that are spread over; by number where pods are packed on some, as a packing may hold more."""
    nodes = [a_host(number, gpus, pool) for number, (gpus, pool) in enumerate(hosts)]
    pods = shares(*fractions, devices=devices)
    plan, found = planned(*nodes, *pods, environment=SPREAD), bound(nodes, pods, Strategies({"l4": "spread"}))
    if all(pool == "l4" for _, pool in hosts):
        assert len(on_nodes(plan)) == len(found)
        assert Counter(on_nodes(plan).values()) == Counter(found.values())
    for uid in on_nodes(plan).keys() - found.keys():
        assert any(pool != "l4" for _, pool in hosts), uid


@given(_fractions, st.integers(1, 2))
@settings(max_examples=60, deadline=None)
def test_once_the_new_nodes_are_there_all_are_bound(fractions: list[str], devices: int) -> None:
    pool = a_node_pool("l4", ["g6.12xlarge"])
    pods = shares(*fractions, devices=devices)
    plan = planned(pool, *pods, environment=SPREAD)
    assert not refused(plan)
    nodes = [a_host(number, each.gpus) for number, each in enumerate(plan.nodes)]
    assert len(bound(nodes, pods, Strategies({"l4": "spread"}))) == len(pods)
    assert plan.least_gpus <= sum(each.gpus for each in plan.nodes)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValidationError, match="placement"):
        DemandSettings.model_validate({"placement": {"l4": "pack"}})


def test_the_binder_reads_strategies() -> None:
    image = {"image": "example/plimsoll:1"}
    assert read_settings(None, image, None, ["l4=spread"]).placement == {"l4": "spread"}
    for wrong in ("l4", "=spread", "l4=fast"):
        with pytest.raises(PlimsollError, match="placement"):
            read_settings(None, image, None, [wrong])
