"""Parts of devices by counters, such as MIG slices: how many can be had of a GPU, what is left, the nodes for them."""

import random
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.claims import Divided, divided_devices, together
from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.profiles import learned_of
from plimsoll.cost import Prices, savings
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api import ClaimDevices
from plimsoll.model.dra import Placements, ResourceSlice
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from plimsoll.plan.limits import NamespaceBudget
from plimsoll.plan.view import ClusterView
from tests.claims.objects import (
    DRIVER,
    MIG,
    Manifest,
    a_claim,
    a_class,
    a_device,
    a_mig_class,
    a_node,
    a_pod,
    a_slice,
    a_slice_of,
    a_template,
    asked,
    divided,
    recorded,
    snapshot_of,
)
from tests.claims.test_demand import FOUR, a_node_pool, a_profile, an_environment, only, pods, refusals

Placed = tuple[str, int]
"""(MIG profile, first slice of the memory)"""
GPUS = ("h100", "h200")


def a_gpu(gpu: str = "h100") -> Divided:
    slices = [ResourceSlice.model_validate(each) for each in divided("n1", 1, gpu)]
    return divided_devices(slices)[DRIVER, "n1", "gpu-0"]


def numbers(gpu: Divided) -> dict[str, int]:
    return {part.device.text("profile"): part.number for part in gpu.claimable.parts}


def fits(gpu: str, taken: Sequence[Placed]) -> bool:
    """Whether the GPU can be divided so, by what NVML says of its profiles."""
    known = {each["name"].removeprefix("MIG "): each for each in recorded(gpu)["profiles"]}
    rows = [known[name] for name, _ in taken]
    memory = [at for name, start in taken for at in range(start, start + known[name]["size"])]
    whole = max(known.values(), key=lambda each: int(each["memorySizeMB"]))
    return (
        len(memory) == len(set(memory))
        and sum(row["memorySizeMB"] for row in rows) <= whole["memorySizeMB"]
        and sum(row["multiprocessorCount"] for row in rows) <= whole["multiprocessorCount"]
        and sum("+me" in row["name"] or row["sliceCount"] == 7 for row in rows) <= 1
    )


def most(gpu: str, profile: str, held: Sequence[Placed]) -> int:
    """How many slices of the profile fit beside those that are held: all ways are tried."""
    free = [each for each in placements(gpu) if each[0] == profile and each not in held]
    sizes = range(len(free), 0, -1)
    return next((n for n in sizes if any(fits(gpu, (*held, *way)) for way in combinations(free, n))), 0)


def placements(gpu: str) -> list[Placed]:
    return [(each["name"].removeprefix("MIG "), at) for each in recorded(gpu)["profiles"] for at in each["starts"]]


def left_by(gpu: Divided, held: Sequence[Placed], kind: str = "h100") -> Milli:
    """Thousandths that are left beside slices that claims have."""
    ids = {each["name"].removeprefix("MIG "): each["id"] for each in recorded(kind)["profiles"]}
    return gpu.shared_by([(f"team/{n}", f"gpu-0-mig-{ids[name]}-{at}") for n, (name, at) in enumerate(held)])[0]


@pytest.mark.parametrize("gpu", GPUS)
def test_as_many_slices_of_a_profile_can_be_had_as_the_driver_says(gpu: str) -> None:
    said = {each["name"].removeprefix("MIG "): each["instanceCount"] for each in recorded(gpu)["profiles"]}
    assert numbers(a_gpu(gpu)) == said


@given(st.randoms(use_true_random=False))
def test_what_is_left_promises_no_slice_that_cannot_be_had(choose: random.Random) -> None:
    """Beside slices that are held anywhere."""
    found, held = a_gpu(), list[Placed]()
    for each in choose.choices(placements("h100"), k=choose.randint(1, 5)):
        if each not in held and fits("h100", [*held, each]):
            held.append(each)
    left = left_by(found, held)
    for profile, number in numbers(found).items():
        assert left * number // GPU_MILLI <= most("h100", profile, held)


@pytest.mark.parametrize(
    ("held", "left"),
    [
        ([("1g.10gb", 0)], {"1g.10gb": 6, "1g.20gb": 3, "2g.20gb": 2, "3g.40gb": 1, "7g.80gb": 0}),
        ([("3g.40gb", 0)], {"1g.10gb": 3, "1g.20gb": 2, "3g.40gb": 1, "4g.40gb": 0}),
        ([("3g.40gb", 4)], {"2g.20gb": 2, "3g.40gb": 1, "7g.80gb": 0}),
        ([("4g.40gb", 0)], {"1g.10gb": 3, "1g.20gb": 2, "2g.20gb": 1, "3g.40gb": 1, "4g.40gb": 0}),
        ([("7g.80gb", 0)], {"1g.10gb": 0}),
        ([("1g.10gb", each) for each in range(7)], {"1g.10gb": 0}),
    ],
)
def test_what_is_left_is_read_from_the_counters(held: list[Placed], left: dict[str, int]) -> None:
    found, free = a_gpu(), left_by(a_gpu(), held)
    assert {profile: free * numbers(found)[profile] // GPU_MILLI for profile in left} == left


def first_fit(gpu: str, wanted: Sequence[str], held: Sequence[Placed]) -> Sequence[Placed] | None:
    """The first placements of these profiles that fit beside those that are held: all are tried, in their order."""
    every = [[each for each in placements(gpu) if each[0] == name] for name in wanted]
    ways = (way for way in product(*every) if len({*way, *held}) == len(way) + len(held))
    return next((way for way in ways if fits(gpu, [*held, *way])), None)


def claims_of(gpu: str, wanted: Sequence[str], held: Sequence[Placed]) -> int:
    """How many claims for these profiles the scheduler has place for, one after the other."""
    way = first_fit(gpu, wanted, held)
    return 0 if way is None else 1 + claims_of(gpu, wanted, [*held, *way])


@given(st.sampled_from(GPUS), st.randoms(use_true_random=False))
def test_claims_for_different_slices_are_as_many_as_the_scheduler_places(gpu: str, choose: random.Random) -> None:
    """Of an unused GPU exactly, and of one of which slices are held no more than that."""
    found, held = a_gpu(gpu), list[Placed]()
    profiles = [part.device.text("profile") for part in found.claimable.parts]
    wanted = choose.choices(profiles, k=choose.randint(2, 3))
    assert found.claimable.placements is not None
    number = together(found.claimable.placements, tuple(map(profiles.index, wanted)))
    assert number == claims_of(gpu, wanted, [])
    for each in choose.choices(placements(gpu), k=choose.randint(1, 4)):
        if each not in held and fits(gpu, [*held, each]):
            held.append(each)
    if len(set(wanted)) > 1:
        assert left_by(found, held, gpu) * number // GPU_MILLI <= claims_of(gpu, wanted, held)


def test_a_part_is_claimed_once_although_its_counters_have_more() -> None:
    """Two devices of one kind and one of another consume one of eight each."""
    at = (("engines", "1"),)
    placements = Placements((("engines", "8"),), ((at, at), (at,)))
    assert [together(placements, parts) for parts in ((0,), (0, 0), (0, 1), (0, 0, 0))] == [2, 1, 1, 0]


def a_part(name: str, device: str, **fields: Any) -> Manifest:
    return a_claim(name, asked(1), devices=[("n1", device)], **fields)


ONE_GPU = [{"matchAttribute": f"{DRIVER}/parentUUID"}]
ALIKE = [{"matchAttribute": f"{DRIVER}/productName"}]
NODE = (a_node("n1", instance_type=FOUR), *divided("n1", 2), a_class(), a_mig_class())


def planned(folder: Path, *manifests: Manifest) -> DemandPlan:
    return DemandPlanner().plan(snapshot_of(folder, an_environment(), *manifests))


def placed(found: DemandPlan) -> int:
    return sum(map(len, only(found).on_nodes.values()))


def test_a_divided_gpu_counts_once_with_what_claims_have_of_it(tmp_path: Path) -> None:
    (account,) = gpu_ledger(snapshot_of(tmp_path, *NODE)).accounts()
    assert (account.gpus, account.free_milli, account.device.memory_mib) == (2, (1000, 1000), 81152)
    halves = a_part("a", "gpu-0-mig-9-0"), a_part("b", "gpu-1")
    (account,) = gpu_ledger(snapshot_of(tmp_path, *NODE, *halves)).accounts()
    assert account.free_milli == (500, 0)
    (shared,) = account.shared
    assert (shared.device, shared.claims) == ("gpu-0", (("team/a", 500),))
    several = a_claim("a", asked(1), devices=[("n1", "gpu-0-mig-19-0"), ("n1", "gpu-0-mig-19-1")])
    (account,) = gpu_ledger(snapshot_of(tmp_path, *NODE, several)).accounts()
    (shared,) = account.shared
    assert shared.claims == (("team/a", 250),)
    sevenths = [a_part(f"c{each}", f"gpu-0-mig-19-{each}") for each in range(7)]
    (account,) = gpu_ledger(snapshot_of(tmp_path, *NODE, *sevenths)).accounts()
    assert account.free_milli == (1000, 0)


@pytest.mark.parametrize(
    ("profile", "number"), [("1g.10gb", 14), ("2g.20gb", 6), ("3g.40gb", 4), ("4g.40gb", 2), ("7g.80gb", 2)]
)
def test_pods_have_slices_of_free_gpus(tmp_path: Path, profile: str, number: int) -> None:
    found = planned(tmp_path, *NODE, a_template("one", a_slice_of(profile)), *pods(16))
    assert placed(found) == number


def test_whole_gpus_of_a_divided_node_are_claimed_too(tmp_path: Path) -> None:
    used = a_part("a", "gpu-0-mig-19-3")
    assert placed(planned(tmp_path, *NODE, a_template("one", asked(1)), *pods(3))) == 2
    assert placed(planned(tmp_path, *NODE, used, a_template("one", asked(1)), *pods(3))) == 1
    assert placed(planned(tmp_path, *NODE, used, a_template("one", a_slice_of("3g.40gb")), *pods(5))) == 3


@pytest.mark.parametrize(("slices", "free"), [((), 2), (("gpu-1-mig-19-2",), 1)])
def test_pods_with_gpus_of_an_extended_resource_have_them_whole(
    tmp_path: Path, slices: tuple[str, ...], free: int
) -> None:
    """The pod has the higher priority, and its class serves whole GPUs alone."""
    whole = a_pod("whole", priority=10)
    del whole["spec"]["resourceClaims"]
    whole["spec"]["containers"][0]["resources"] = {"limits": {GPU_RESOURCE: "1", "cpu": "1"}}
    by_class = a_class("whole", extended_resource=GPU_RESOURCE)
    used = [a_part(each, each) for each in slices]
    objects = (*NODE, by_class, *used, a_template("one", a_slice_of("3g.40gb")), *pods(5))
    left = placed(planned(tmp_path, *objects, whole))
    assert placed(planned(tmp_path, *objects)) - left == (2 if free else 0)
    assert left == 2 * (free - 1) + len(slices)


@pytest.mark.parametrize(("count", "number"), [(1, 3), (2, 1), (3, 1)])
def test_slices_count_in_what_a_namespace_may_have(tmp_path: Path, count: int, number: int) -> None:
    """Each as one GPU, also if they are of one."""
    environment = an_environment()
    environment["spec"]["access"] = [{"namespaces": ["team"], "gpus": 3}]
    template = a_template("one", a_slice_of("1g.10gb", count), constraints=ONE_GPU)
    objects = (environment, *NODE, template, *pods(5))
    snapshot = snapshot_of(tmp_path, *objects)
    found = DemandPlanner().plan(snapshot, namespaces=NamespaceBudget(ClusterView(snapshot)))
    assert placed(found) == number


def test_a_node_stays_while_claims_have_slices_of_it(tmp_path: Path) -> None:
    running = a_pod("running", claim="a", node="n1")
    spare = [a_node("n2", instance_type=FOUR), *divided("n2", 2)]
    held = a_part("a", "gpu-0-mig-19-0", pods=["running"])
    found = savings(snapshot_of(tmp_path, *NODE, *spare, running, held), Prices({FOUR: 3.0}))
    assert set(found.stays) == {"n1"}
    assert {name for group in found.groups for name in group.removable} == {"n2"}


@pytest.mark.parametrize(("profile", "number", "nodes"), [("3g.40gb", 8, 1), ("1g.10gb", 29, 2), ("2g.20gb", 12, 1)])
@pytest.mark.parametrize("learned", [True, False])
def test_nodes_are_requested_for_slices(tmp_path: Path, profile: str, number: int, nodes: int, learned: bool) -> None:
    """Of types with four GPUs, which nodes show no more."""
    (node,) = snapshot_of(tmp_path, *NODE).nodes
    said = learned_of([node]).claim_devices
    assert said is not None
    assert said.claimable == node.published.kinds[0][0].served_as(frozenset())
    fields = said.model_dump(by_alias=True, exclude_defaults=True, exclude={"count", "driver"})
    found = planned(
        tmp_path, a_node_pool(), a_class(), a_mig_class(), a_profile(learned=learned, count=4, **fields),
        a_template("one", a_slice_of(profile)), *pods(number),
    )  # fmt: skip
    assert not refusals(found)
    assert (len(found.nodes), found.least_gpus) == (nodes, 4 * nodes)


def test_different_slices_share_a_gpu(tmp_path: Path) -> None:
    """3g.40gb, 2g.20gb and 1g.10gb take a half, a third and a seventh."""
    templates = [a_template(name, a_slice_of(name)) for name in ("3g.40gb", "2g.20gb", "1g.10gb")]
    waiting = [{**pod, "spec": {**pod["spec"], "resourceClaims": claims}} for pod, claims in zip(
        pods(6), ([{"name": "gpu", "resourceClaimTemplateName": t["metadata"]["name"]}] for t in templates * 2),
        strict=True,
    )]  # fmt: skip
    found = planned(tmp_path, *NODE, *templates, *waiting)
    assert sum(len(uids) for demand in found.demands for uids in demand.on_nodes.values()) == 6


@pytest.mark.parametrize(
    ("requested", "constraints", "number"),
    [
        ([a_slice_of("1g.10gb", 2)], ONE_GPU, 6),
        ([a_slice_of("1g.10gb", 2), a_slice_of("1g.10gb")], ONE_GPU, 4),
        ([a_slice_of("2g.20gb", 2)], [*ONE_GPU, *ALIKE], 2),
        ([a_slice_of("3g.40gb", 2)], ONE_GPU, 2),
        ([a_slice_of("1g.10gb", 3)], [], 4),
        ([a_slice_of("1g.20gb", 2)], ALIKE, 4),
        ([a_slice_of("1g.20gb"), a_slice_of("1g.20gb")], [], 4),
        ([a_slice_of("3g.40gb", 4)], [], 1),
        ([a_slice_of("7g.80gb", 2)], [], 1),
        ([a_slice_of("7g.80gb")], ONE_GPU, 2),
        ([a_slice_of("1g.10gb", 2), a_slice_of("2g.20gb"), a_slice_of("3g.40gb")], ONE_GPU, 2),
        ([a_slice_of("4g.40gb"), a_slice_of("3g.40gb")], ONE_GPU, 2),
        ([a_slice_of("2g.20gb"), a_slice_of("1g.10gb")], [*ONE_GPU, *ALIKE], 4),
        ([a_slice_of("1g.10gb+me"), a_slice_of("1g.10gb", 3)], ONE_GPU, 2),
    ],
)
def test_a_claim_has_several_slices(
    tmp_path: Path, requested: list[Manifest], constraints: list[Manifest], number: int
) -> None:
    """As many pods as a node with two GPUs has them for, and as many GPUs of new ones as these need at least."""
    template = a_template("one", *requested, constraints=constraints)
    found = planned(tmp_path, *NODE, template, *pods(9))
    assert placed(found) == number
    (node,) = snapshot_of(tmp_path, *NODE).nodes
    said = learned_of([node]).claim_devices
    assert said is not None
    fields = said.model_dump(by_alias=True, exclude_defaults=True, exclude={"count", "driver"})
    profile = a_profile(learned=True, count=2, **fields)
    found = planned(tmp_path, a_node_pool(), a_class(), a_mig_class(), profile, template, *pods(number))
    assert not refusals(found)
    assert len(found.nodes) == 1


@pytest.mark.parametrize(
    ("requested", "constraints", "why"),
    [
        (a_slice_of("2g.20gb", 4), ONE_GPU, "more than the 3 that one device has"),
        (a_slice_of("7g.80gb", 2), ONE_GPU, "more than the 1 that one device has"),
        (a_slice_of("2g.20gb", 7), [], "more than the 6 of a node"),
        (asked(1), ONE_GPU, "matchAttribute of what parts of a device have"),
        ((a_slice_of("3g.40gb", 2), a_slice_of("1g.10gb")), ONE_GPU, "parts that one device has not together"),
    ],
)
def test_more_slices_than_there_are_get_no_capacity(
    tmp_path: Path, requested: Manifest | tuple[Manifest, ...], constraints: list[Manifest], why: str
) -> None:
    requests = requested if isinstance(requested, tuple) else (requested,)
    found = planned(tmp_path, *NODE, a_template("one", *requests, constraints=constraints), *pods(1))
    assert not placed(found)
    assert why in min(refusals(found))


def test_slices_of_one_gpu_beside_those_in_use(tmp_path: Path) -> None:
    """Of one GPU five are left, of the other four: two pods have two of each."""
    used = [a_part(f"u{at}", f"gpu-{at // 3}-mig-19-{at % 3}") for at in (0, 1, 3, 4, 5)]
    template = a_template("one", a_slice_of("1g.10gb", 2), constraints=ONE_GPU)
    assert placed(planned(tmp_path, *NODE, *used, template, *pods(9))) == 4


@pytest.mark.parametrize(
    ("requested", "feature"),
    [
        ((a_slice_of("1g.10gb"), a_slice_of("1g.10gb")), "2 parts that may be of several devices, which have 7 each"),
        ((a_slice_of("2g.20gb", 2),), "2 parts that may be of several devices, which have 3 each"),
        ((a_slice_of("2g.20gb", 4),), "4 parts that may be of several devices"),
        ((a_slice_of("3g.40gb"), a_slice_of("2g.20gb")), "different parts of a device"),
        ((a_slice_of("1g.10gb"), asked(1)), "different parts of a device"),
        ((asked(1, of=MIG),), "several kinds of parts"),
        ((asked(1, of=MIG) | {"allocationMode": "All"},), "several kinds of parts"),
        ((a_slice_of("7g.80gb") | {"allocationMode": "All"},), "all of the devices that claims share"),
        ((asked(1) | {"allocationMode": "All"},), "all of the devices that claims share"),
    ],
)
def test_slices_that_are_not_planned_are_told_by_name(
    tmp_path: Path, requested: tuple[Manifest, ...], feature: str
) -> None:
    found = planned(tmp_path, *NODE, a_template("one", *requested), *pods(1))
    assert not placed(found)
    (why,) = refusals(found)
    assert "ClaimNotPlanned" in why
    assert feature in why


@pytest.mark.parametrize(
    ("constraint", "feature"),
    [
        ({"distinctAttribute": f"{DRIVER}/parentUUID"}, "distinctAttribute gpu.nvidia.com/parentUUID"),
        ({"matchAttribute": f"{DRIVER}/profile"}, "matchAttribute gpu.nvidia.com/profile"),
        ({"matchAttribute": f"{DRIVER}/uuid"}, "constraints of parts of devices"),
    ],
)
def test_other_constraints_of_slices_are_told_by_name(tmp_path: Path, constraint: Manifest, feature: str) -> None:
    template = a_template("one", a_slice_of("1g.20gb"), constraints=[constraint])
    assert f"ClaimNotPlanned: {feature}" in min(refusals(planned(tmp_path, *NODE, template, *pods(1))))


def test_different_slices_of_a_type_whose_placements_are_not_said_are_told(tmp_path: Path) -> None:
    parts = [{"number": 2, "strings": {"type": "mig", "profile": "3g.40gb"}}]
    parts += [{"number": 3, "strings": {"type": "mig", "profile": "2g.20gb"}}]
    profile = a_profile(count=4, strings={"type": "gpu"}, parts=parts)
    template = a_template("one", a_slice_of("3g.40gb"), a_slice_of("2g.20gb"), constraints=ONE_GPU)
    objects = (a_node_pool(), a_class(), a_mig_class(), profile, template, *pods(1))
    assert "placements are not known" in min(refusals(planned(tmp_path, *objects)))


def test_a_placement_consumes_counters_that_the_device_has() -> None:
    part = {"number": 1, "placements": [{"memory-slice-0": "1"}]}
    with pytest.raises(ValueError, match=r"parts\[0\].placements\[0\]: 'memory-slice-0' is not in counters"):
        ClaimDevices.model_validate({"driver": DRIVER, "parts": [part], "counters": {"memory": "80Gi"}})


def test_a_selector_that_ends_in_an_error_on_a_part_is_no_promise(tmp_path: Path) -> None:
    """A whole GPU has no profile: with a class of the driver's devices alone, the scheduler ends there."""
    everything = a_class("all", f"device.driver == '{DRIVER}'")
    request = asked(1, f"device.attributes['{DRIVER}'].profile == '1g.10gb'", of="all")
    found = planned(tmp_path, *NODE, everything, a_template("one", request), *pods(1))
    assert not placed(found)
    assert "ends in an error on some parts" in min(refusals(found))


@pytest.mark.parametrize(
    ("profiles", "feature"),
    [(("1g.10gb", "1g.10gb"), "a fixed configuration of MIG"), (("", "1g.10gb"), "unlike ones beside them")],
)
def test_slices_without_counters_are_told_by_name(tmp_path: Path, profiles: tuple[str, ...], feature: str) -> None:
    kinds = [{"type": "mig", "profile": each} if each else {"type": "gpu"} for each in profiles]
    devices = [a_device(f"device-{at}", {"productName": "NVIDIA H100", **each}) for at, each in enumerate(kinds)]
    found = planned(
        tmp_path, a_node("n1", instance_type=FOUR), a_slice("n1", devices), a_class(), a_mig_class(),
        a_template("one", a_slice_of("1g.10gb")), *pods(1),
    )  # fmt: skip
    assert not placed(found)
    assert f"ClaimNotPlanned: devices with {feature}" in min(refusals(found))


@pytest.mark.parametrize("change", ["several sets", "unknown set", "no whole", "shared"])
def test_counters_of_another_form_are_told_by_name(tmp_path: Path, change: str) -> None:
    slices = divided("n1", 1)
    devices = slices[0]["spec"]["devices"]
    if change == "several sets":
        devices[1]["consumesCounters"] *= 2
    elif change == "unknown set":
        slices[1]["spec"]["sharedCounters"][0]["name"] = "other"
    elif change == "no whole":
        del devices[0]
    else:
        devices[0]["allowMultipleAllocations"] = True
    found = planned(
        tmp_path, a_node("n1", instance_type=FOUR), *slices, a_class(), a_mig_class(),
        a_template("one", a_slice_of("1g.10gb")), *pods(1),
    )  # fmt: skip
    assert not placed(found)
    assert "ClaimNotPlanned: devices with consumesCounters" in min(refusals(found))
