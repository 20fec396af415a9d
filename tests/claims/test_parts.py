"""Parts of devices that several claims share: what a claim takes, what is left, and the nodes for them."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.claims import free_part, part_of
from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.pods import size_by_kind
from plimsoll.cluster.profiles import learned_of
from plimsoll.cost import Prices
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.cluster import Device
from plimsoll.model.dra import Claimable, RequestPolicy
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from plimsoll.ui.view import NodeRows
from tests.claims.objects import (
    DRIVER,
    L4,
    Manifest,
    a_claim,
    a_class,
    a_node,
    a_pod,
    a_slice,
    a_template,
    asked,
    gpus,
    snapshot_of,
)
from tests.claims.test_demand import FOUR, a_node_pool, a_profile, an_environment, only, pods, refusals
from tests.command import plimsoll

OF_TEN: Manifest = {"default": "10Gi", "validRange": {"min": "1Gi", "max": "10Gi", "step": "3Gi"}}


def a_shared(policy: Manifest | None = None, **capacity: str) -> Claimable:
    """With 10Gi of memory."""
    policies = ((f"{DRIVER}/memory", RequestPolicy.model_validate(policy)),) if policy else ()
    amounts = {"memory": "10Gi", **capacity}
    found = tuple(sorted((f"{DRIVER}/{name}", amount) for name, amount in amounts.items()))
    return Claimable(DRIVER, capacity=found, shared=True, policies=policies)


@pytest.mark.parametrize(
    ("policy", "asked_for", "taken"),
    [
        (None, None, 10),  # all of it
        (None, "4Gi", 4),
        ({"default": "2Gi"}, None, 2),
        ({"default": "2Gi"}, "3Gi", 3),
        (OF_TEN, None, 10),
        (OF_TEN, "500Mi", 1),
        (OF_TEN, "1Gi", 1),
        (OF_TEN, "1025Mi", 4),
        (OF_TEN, "7Gi", 7),
        (OF_TEN, "7169Mi", 10),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi"}}, "1500Mi", Fraction(1500, 1024)),
        ({"default": "2Gi", "validValues": ["2Gi", "5Gi"]}, "3Gi", 5),
        ({"default": "2Gi", "validValues": ["2Gi", "5Gi"]}, None, 2),
    ],
)
def test_a_claim_takes_what_the_policy_rounds_its_request_to(
    policy: Manifest | None, asked_for: str | None, taken: int
) -> None:
    wanted = (("memory", asked_for),) if asked_for else ()
    assert part_of(a_shared(policy), wanted).milli == taken * 100


@pytest.mark.parametrize(
    ("policy", "amounts", "why"),
    [
        (None, {"memory": "11Gi"}, "capacity memory of 11Gi"),
        (OF_TEN, {"memory": "10241Mi"}, "capacity memory"),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi"}}, {"memory": "9Gi"}, "capacity memory of 9Gi"),
        ({"default": "2Gi", "validValues": ["2Gi", "5Gi"]}, {"memory": "6Gi"}, "capacity memory of 6Gi"),
        (None, {"cores": "1"}, "capacity cores of 1"),
    ],
)
def test_more_than_a_device_gives_is_no_part_of_it(policy: Manifest | None, amounts: dict[str, str], why: str) -> None:
    part = part_of(a_shared(policy), tuple(amounts.items()))
    assert (part.milli, part.not_planned) == (0, "")
    assert why in part.why


@pytest.mark.parametrize(
    ("device", "amounts", "feature"),
    [
        (a_shared({"default": "0"}), {}, "takes nothing"),
        (a_shared({"default": "1500m", "validRange": {"min": "1", "step": "500m"}}), {"memory": "1200m"}, "fraction"),
    ],
)
def test_parts_that_are_not_planned_are_told_by_name(device: Claimable, amounts: dict[str, str], feature: str) -> None:
    part = part_of(device, tuple(amounts.items()))
    assert part.milli == 0
    assert feature in part.not_planned


CORES: Manifest = {"default": "10", "validRange": {"min": "10", "max": "80", "step": "10"}}


@pytest.mark.parametrize(
    ("amounts", "number"),
    [
        ({}, 10),  # 1Gi and 10 cores by default
        ({"memory": "2Gi"}, 5),
        ({"memory": "2Gi", "cores": "25"}, 3),  # 30 cores
        ({"memory": "5Gi", "cores": "20"}, 2),
        ({"memory": "1500Mi", "cores": "20"}, 5),  # 2Gi
        ({"cores": "51"}, 1),
        ({"memory": "1Gi", "cores": "81"}, 0),
    ],
)
def test_claims_take_memory_and_cores_of_a_device(tmp_path: Path, amounts: dict[str, str], number: int) -> None:
    """Of one with 10Gi and 100 cores."""
    steps = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    (device,) = shared_gpus(1)
    device["capacity"] = {
        "memory": {"value": "10Gi", "requestPolicy": steps}, "cores": {"value": "100", "requestPolicy": CORES},
    }  # fmt: skip
    node = a_node("n1", instance_type=FOUR), a_slice("n1", [device])
    request = asked(1, capacity={"requests": amounts} if amounts else None)
    found = planned(tmp_path, *node, a_template("one", request), *pods(11))
    assert sum(map(len, only(found).on_nodes.values())) == number


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 90)), min_size=1, max_size=6),
    st.integers(1, 9),
    st.integers(1, 90),
)
def test_claims_of_two_capacities_have_room_where_a_plan_says_so(
    used: list[tuple[int, int]], memory: int, cores: int
) -> None:
    """Whatever others take; and of a free device, as many as there are."""
    device = a_shared(cores="100")
    part = part_of(device, (("memory", f"{memory}Gi"), ("cores", str(cores)))).milli
    assert GPU_MILLI // part == min(10 // memory, 100 // cores)
    consumed = [{f"{DRIVER}/memory": f"{own}Gi", f"{DRIVER}/cores": str(of)} for own, of in used]
    room = min((10 - sum(own for own, _ in used)) // memory, (100 - sum(of for _, of in used)) // cores)
    assert free_part(device, consumed) // part <= max(0, room)


@given(st.integers(0, 40), st.integers(1, 10), st.integers(1, 6), st.integers(0, 5), st.integers(0, 60))
def test_steps_are_rounded_up_to_the_next_amount(least: int, step: int, steps: int, more: int, wanted: int) -> None:
    """Against all amounts that the range has."""
    most = least + steps * step
    policy = {"default": str(least), "validRange": {"min": str(least), "max": str(most), "step": str(step)}}
    device = Claimable(
        DRIVER,
        capacity=((f"{DRIVER}/memory", str(most + more)),),
        shared=True,
        policies=((f"{DRIVER}/memory", RequestPolicy.model_validate(policy)),),
    )
    allowed = [amount for amount in range(least, most + 1, step) if amount >= wanted]
    part = part_of(device, (("memory", str(wanted)),))
    assert part.milli == (Fraction(allowed[0] * 1000, most + more) if allowed else 0)


def shared_gpus(number: int, policy: Manifest | None = None) -> list[Manifest]:
    """L4 of which several claims may have parts of the memory."""
    memory = {"value": "20Gi", **({"requestPolicy": policy} if policy else {})}
    return [each | {"allowMultipleAllocations": True, "capacity": {"memory": memory}} for each in gpus(number)]


def a_share(name: str, device: str, memory: str, **fields: Any) -> Manifest:
    """A claim that has a part of a device of the node n1."""
    claim = a_claim(name, asked(1), devices=[("n1", device)], **fields)
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    result |= {"shareID": f"share-{name}", "consumedCapacity": {"memory": memory}}
    return claim


def planned(folder: Path, *manifests: Manifest) -> DemandPlan:
    return DemandPlanner().plan(snapshot_of(folder, an_environment(), a_class(), *manifests))


def memory(amount: str, count: int = 1) -> Manifest:
    return asked(count, capacity={"requests": {"memory": amount}})


NODE = (a_node("n1", instance_type=FOUR), a_slice("n1", shared_gpus(2)))


def test_what_is_left_of_a_device_is_its_capacity_less_what_claims_have(tmp_path: Path) -> None:
    shares = a_share("a", "gpu-0", "5Gi"), a_share("b", "gpu-0", "5Gi"), a_share("c", "gpu-1", "20Gi")
    (account,) = gpu_ledger(snapshot_of(tmp_path, *NODE, *shares)).accounts()
    assert (account.gpus, account.whole, account.free_gpus, account.free_milli) == (2, 1, 0, (500, 0))
    whole = a_claim("d", asked(1), devices=[("n1", "gpu-0")])
    (account,) = gpu_ledger(snapshot_of(tmp_path, *NODE, whole, *shares)).accounts()
    assert account.free_milli == (0, 0)


@pytest.mark.parametrize(("amount", "placed"), [("5Gi", 6), ("6Gi", 4), ("10Gi", 3), ("11Gi", 1), ("21Gi", 0)])
def test_several_pods_have_parts_of_a_free_device(tmp_path: Path, amount: str, placed: int) -> None:
    """20Gi are left of one, and 10Gi of the other."""
    used = a_share("a", "gpu-0", "10Gi")
    found = planned(tmp_path, *NODE, used, a_template("one", memory(amount)), *pods(7))
    assert sum(map(len, only(found).on_nodes.values())) == placed


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(
    ("amount", "number", "nodes"), [("10Gi", 8, 1), ("10Gi", 9, 2), ("500Mi", 17, 2), ("5Gi", 16, 1)]
)
def test_nodes_are_requested_for_parts_of_devices(
    tmp_path: Path, learned: bool, amount: str, number: int, nodes: int
) -> None:
    """Four devices, of which a claim takes 5Gi, 10Gi, 15Gi or 20Gi."""
    steps = {"default": "20Gi", "validRange": {"min": "5Gi", "max": "20Gi", "step": "5Gi"}}
    profile = a_profile(
        learned=learned, count=4, strings=L4, capacity={"memory": "20Gi"}, allowMultipleAllocations=True,
        requestPolicies={"memory": steps},
    )  # fmt: skip
    found = planned(tmp_path, a_node_pool(), profile, a_template("one", memory(amount)), *pods(number))
    assert len(found.nodes) == nodes
    assert found.least_gpus == 4 * nodes
    assert not refusals(found)


def test_what_is_learned_of_shared_devices_says_so(tmp_path: Path) -> None:
    policy = {"default": "20Gi", "validRange": {"min": "5Gi", "step": "5Gi"}}
    snapshot = snapshot_of(tmp_path, a_node("n1", instance_type=FOUR), a_slice("n1", shared_gpus(2, policy)))
    said = learned_of(snapshot.nodes).claim_devices
    assert said is not None
    ((seen, _),) = snapshot.nodes[0].published.kinds
    assert said.claimable == seen.served_as(frozenset())
    assert seen.shared


@pytest.mark.parametrize(
    ("requests", "why"),
    [
        ((memory("5Gi"), memory("5Gi")), "ClaimNotPlanned: several requests for parts"),
        ((memory("5Gi"), memory("20Gi")), "ClaimNotPlanned: several requests for parts"),
        ((memory("20Gi"), memory("20Gi")), "matchAttribute uuid: it is another one on each device"),
        ((memory("5Gi"), memory("15Gi", 2)), "matchAttribute uuid: it is another one on each device"),
    ],
)
def test_two_requests_may_have_parts_of_one_device(tmp_path: Path, requests: tuple[Manifest, ...], why: str) -> None:
    """Which the scheduler gives to those that have to be of one; two devices of one request are never the same."""
    of_one = [{"matchAttribute": f"{DRIVER}/uuid"}]
    found = planned(tmp_path, *NODE, a_template("one", *requests, constraints=of_one), *pods(1))
    assert not only(found).on_nodes
    (said,) = refusals(found)
    assert why.replace("uuid", of_one[0]["matchAttribute"]) in said


@pytest.mark.parametrize(
    ("request_", "feature"),
    [
        ((memory("5Gi"), memory("5Gi")), "several requests for parts"),
        ((memory("5Gi", 2),), "parts of several devices"),
        ((asked(1) | {"allocationMode": "All"},), "all of the devices that claims share"),
        (
            ({"firstAvailable": [{"name": "a", **memory("10Gi")}, {"name": "b", **memory("5Gi")}]},),
            "or parts of them",
        ),
    ],
)
def test_claims_of_parts_that_are_not_planned_are_told_by_name(
    tmp_path: Path, request_: tuple[Manifest, ...], feature: str
) -> None:
    found = planned(tmp_path, *NODE, a_template("one", *request_), *pods(1))
    assert not only(found).on_nodes
    (why,) = refusals(found)
    assert "ClaimNotPlanned" in why
    assert feature in why


def test_parts_of_more_than_a_half_may_be_of_several_devices(tmp_path: Path) -> None:
    found = planned(tmp_path, *NODE, a_template("one", memory("11Gi", 2)), *pods(2))
    assert [len(each) for each in only(found).on_nodes.values()] == [1]


@pytest.mark.parametrize(("default", "able"), [("10Gi", True), ("5Gi", False)])
def test_whole_gpus_are_devices_that_are_taken_whole_by_default(default: str, able: bool) -> None:
    """The claim of a pod that requests `nvidia.com/gpu` asks for no amount."""
    claimable = a_shared({"default": default}).served_as(frozenset({GPU_RESOURCE}))
    kinds = {"gpu": Device("NVIDIA-L4", 10240, 2, resource=DRIVER, claimable=claimable)}
    assert bool(size_by_kind(GPUShare(milli=GPU_MILLI), kinds).milli) is able


def test_gpus_and_top_count_the_parts(tmp_path: Path) -> None:
    share = a_share("a", "gpu-0", "5Gi", pods=["user"])
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([*NODE, share, a_class(), a_pod("user", claim="a", node="n1")]))
    said = json.loads(plimsoll("gpus", "-f", str(file), "--output", "json").stdout)
    (node,) = said["nodes"]
    assert node["freeMilli"] == [750, 1000]
    assert node["sharedDevices"] == [
        {"device": "gpu-0", "freeMilli": 750, "claims": [{"claim": "team/a", "milli": 250}]}
    ]
    shown = plimsoll("gpus", "-f", str(file)).stdout
    assert "0.25" in shown
    assert "team/user" in shown


def test_pages_show_the_parts_with_the_queues_of_their_pods(tmp_path: Path) -> None:
    queued = a_pod("queued", claim="a", node="n1", schedulerName="kai-scheduler")
    queued["metadata"]["labels"] = {"kai.scheduler/queue": "research"}
    shares = a_share("a", "gpu-0", "5Gi", pods=["queued"]), a_share("b", "gpu-0", "10Gi", pods=["other"])
    (row,) = NodeRows().update(snapshot_of(tmp_path, *NODE, *shares, a_class(), queued), Prices({}))
    found = {(use.value, queue): milli for (use, queue), milli in row.amounts.items()}
    assert found == {("queue", "research"): 250, ("other", ""): 500, ("free", ""): 1250}
