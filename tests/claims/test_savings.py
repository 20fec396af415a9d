"""Savings of nodes whose GPUs pods get by claims: no node leaves while claims have its devices, and pods move to where
their claims are met."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cost import Prices, Savings, savings
from tests.claims.objects import (
    DRIVER,
    L4,
    Manifest,
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
    a_template,
    asked,
    gpus,
    snapshot_of,
)
from tests.claims.test_demand import FOUR, ONE
from tests.command import plimsoll

PRICES = {ONE: 1.0, FOUR: 3.0}
COUNTS = (1, 2, 3)
TEMPLATES = tuple(a_template(f"t{count}", asked(count)) for count in COUNTS)


def found_in(folder: Path, *manifests: Manifest) -> Savings:
    return savings(snapshot_of(folder, a_class(), *TEMPLATES, *manifests), Prices(PRICES))


def leaving(found: Savings) -> set[str]:
    return {name for group in found.groups for name in group.removable}


def machine(name: str, number: int = 1, attributes: dict[str, Any] = L4) -> list[Manifest]:
    return [a_node(name, instance_type=FOUR if number > 1 else ONE), a_slice(name, gpus(number, attributes))]


def running(name: str, node: str, devices: Sequence[int] = (0,), **fields: Any) -> list[Manifest]:
    """A pod of a template, and its claim with these devices of the node."""
    pod = a_pod(name, f"t{len(devices)}", node=node, **fields)
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"claim-{name}"}]
    held = [(node, f"gpu-{device}") for device in devices]
    return [pod, a_claim(f"claim-{name}", asked(len(devices)), devices=held, pods=[name])]


def test_pods_with_claims_move_to_free_devices(tmp_path: Path) -> None:
    found = found_in(tmp_path, *machine("a"), *machine("b", 4), *running("x", "a"), *running("z", "b", (1, 2)))
    assert [(each.pod, each.source, each.target) for each in found.moving.moves] == [("team/x", "a", "b")]
    assert (leaving(found), found.now, found.saved, found.repacked, found.least) == ({"a"}, 4, 1, 3, 3)
    assert found.moving.gpus == 1


def test_a_node_without_claims_is_removable_and_one_with_them_is_not(tmp_path: Path) -> None:
    found = found_in(tmp_path, *machine("used"), *machine("idle"), *running("x", "used"))
    assert (leaving(found), found.moving.moves) == ({"idle"}, ())


def test_pods_with_claims_keep_their_node(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    manifests = [a_class(), *TEMPLATES, *machine("used", 4), *running("x", "used", (0, 1))]
    file.write_text(yaml.safe_dump_all(manifests))
    assert "kept by pod team/x (2 GPUs by claims)" in plimsoll("why", "node", "used", "-f", str(file)).stdout


def test_whole_gpus_of_a_class_move_to_devices_that_serve_them(tmp_path: Path) -> None:
    """The scheduler makes the claim of a pod that requests the extended resource of a DeviceClass."""

    def found(*classes: Manifest) -> Savings:
        pod = a_pod("x", node="a")
        del pod["spec"]["resourceClaims"]
        pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        claim = a_claim("x-extended", asked(1), devices=[("a", "gpu-0")], pods=["x"])
        snapshot = snapshot_of(tmp_path, *classes, *machine("a"), *machine("b", 4), pod, claim)
        return savings(snapshot, Prices(PRICES))

    assert leaving(found(a_class(extended_resource="nvidia.com/gpu"))) == {"b"}
    assert found(a_class(extended_resource="nvidia.com/gpu")).stays == {}
    assert "a" in found(a_class()).stays


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([a_claim("c", asked(), devices=[("a", "gpu-0")])], "ResourceClaim team/c"),
        (
            [
                a_claim("c", asked(), devices=[("a", "gpu-0")], pods=["x", "z"]),
                *(a_pod(name, claim="c", node="a") for name in "xz"),
            ],
            "used by other pods",
        ),
        (
            [
                a_claim("c", asked(), devices=[("a", "gpu-0")], pods=["x"]),
                a_pod("x", claim="c", node="a"),
                a_pod("z", claim="c"),
            ],
            "used by other pods",
        ),
        ([a_pod("x", "gone", node="a")], "ResourceClaimTemplate 'gone'"),
        (
            [a_template("admin", asked(1, adminAccess=True)), a_pod("x", "admin", node="a")],
            "adminAccess",
        ),
        (
            [a_class("dra.net", "device.driver == 'dra.net'"), a_template("net", asked(of="dra.net")),
             a_pod("x", "net", node="a")],
            "not known to be GPUs",
        ),
        ([a_pod("x", "t1", node="a")], "another number of devices"),
        ([*running("x", "a"), a_claim("more", asked(), devices=[("a", "gpu-1")], pods=["x"])], "another number"),
    ],
)  # fmt: skip
def test_a_node_stays_with_the_reason(tmp_path: Path, objects: list[Manifest], reason: str) -> None:
    found = found_in(tmp_path, *machine("a", 4), *machine("b", 4), *machine("spare", 4), *objects)
    assert reason in found.stays["a"]
    assert "a" not in leaving(found)
    assert (found.now, found.repacked) == (9, 3), "it is part of the figures"


def test_pods_move_only_to_devices_that_meet_their_claims(tmp_path: Path) -> None:
    wanted = f"device.attributes['{DRIVER}'].architecture == 'Ada Lovelace'"
    template = a_template("t1", asked(1, wanted))
    objects = [a_class(), template, *machine("a", 4), *running("x", "a"), *running("z", "a", (1,))]

    def found(other: dict[str, Any]) -> Savings:
        b = [a_node("b", instance_type=ONE), a_slice("b", gpus(2, other))]
        return savings(snapshot_of(tmp_path, *objects, *b), Prices(PRICES))

    assert leaving(found(L4)) == {"a"}
    assert leaving(found({**L4, "architecture": "Ampere"})) == {"b"}
    without = {key: value for key, value in L4.items() if key != "architecture"}
    assert "could not be placed there again" in found(without).stays["a"], "an error ends the scheduler's attempts"


def test_gpus_of_other_vendors_move_to_alike_ones_only(tmp_path: Path) -> None:
    """A claim of any GPU of AMD does not move to one of another product, unless any GPU may serve it."""
    driver = "gpu.amd.com"
    kinds = {"a": "AMD_Instinct_MI300X_OAM", "b": "AMD_Instinct_MI300X_OAM", "c": "AMD_Instinct_MI250X"}
    nodes = [a_node(name, instance_type=ONE) for name in kinds]
    slices = [
        a_slice(name, [a_device("card0", {"type": "amdgpu", "productName": product})], driver=driver)
        for name, product in kinds.items()
    ]
    template, (pod, claim) = a_template("t1", asked(1, of=driver)), running("x", "c")
    claim["status"]["allocation"]["devices"]["results"][0] |= {"driver": driver, "device": "card0"}
    amd = a_class(driver, f"device.driver == '{driver}'")
    snapshot = snapshot_of(tmp_path, amd, template, *nodes, *slices, pod, claim)
    assert leaving(savings(snapshot, Prices(PRICES))) == {"a", "b"}
    assert savings(snapshot, Prices(PRICES)).now == 3
    moved = savings(snapshot, Prices(PRICES), any_gpu=True)
    assert (moved.repacked, moved.least) == (1, 1)


def test_a_device_with_a_taint_is_neither_free_nor_in_use(tmp_path: Path) -> None:
    broken = [{**each, "taints": [{"key": "unhealthy", "effect": "NoSchedule"}]} for each in gpus(2)[1:]]
    b = [a_node("b", instance_type=FOUR), a_slice("b", [*gpus(1), *broken])]
    both = [*running("x", "a"), *running("z", "b")]
    assert not leaving(found_in(tmp_path, *machine("a"), *b, *both))
    assert leaving(found_in(tmp_path, *machine("a"), *b, *running("x", "a"))) == {"b"}


def test_nodes_with_slices_or_unlike_gpus_stay_and_take_no_pods(tmp_path: Path) -> None:
    mig = a_device("gpu-0", {**L4, "type": "mig", "profile": "1g.5gb"})
    unlike = [*gpus(1), a_device("gpu-1", {**L4, "productName": "NVIDIA T4"})]
    for devices in ([mig], unlike):
        other = [a_node("b", instance_type=FOUR), a_slice("b", devices)]
        found = found_in(tmp_path, *machine("a"), *other, *running("x", "a"))
        assert (set(found.stays), leaving(found), found.now) == ({"b"}, set(), 4)


def test_a_node_stays_while_claims_have_parts_of_its_devices(tmp_path: Path) -> None:
    """Two claims with half of one device each are no two devices."""
    shared = [{**each, "allowMultipleAllocations": True} for each in gpus(2)]
    half = asked(1, capacity={"requests": {"memory": "11517Mi"}})
    nodes = [each for name in "ab" for each in (a_node(name, instance_type=FOUR), a_slice(name, shared))]
    pods = list[Manifest]()
    for name in ("x", "z"):
        pod, claim = running(name, "a")
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        result |= {"shareID": name, "consumedCapacity": {"memory": "11517Mi"}}
        pods += [pod, {**claim, "spec": a_claim("c", half)["spec"]}]
    snapshot = snapshot_of(tmp_path, a_class(), a_template("t1", half), *nodes, *pods)
    found = savings(snapshot, Prices(PRICES))
    assert (set(found.stays), leaving(found)) == ({"a"}, {"b"})
    assert (found.now, found.repacked, found.least) == (6, 3, 3)


def test_waiting_claims_are_counted_and_the_command_lists_reasons(tmp_path: Path) -> None:
    shared = a_claim("c", asked(), devices=[("a", "gpu-0")])
    found = found_in(tmp_path, *machine("a"), shared, a_pod("waiting", "t1"))
    assert found.pending == 1
    shown = plimsoll("savings", "-f", str(tmp_path / "objects.yaml"))
    assert "a: cannot be removed: ResourceClaim team/c has devices of it" in shown.stdout, shown.stderr


class Placed(NamedTuple):
    """A pod with these devices of a node; `orphan`: only its claim is left."""

    name: str
    node: str
    devices: tuple[int, ...]
    orphan: bool = False


class Cluster(NamedTuple):
    sizes: tuple[int, ...]
    """GPUs of each node, of which the last one may be broken."""
    broken: tuple[bool, ...]
    pods: tuple[Placed, ...]

    @property
    def rooms(self) -> dict[str, int]:
        """GPUs by node that claims can have."""
        both = zip(self.sizes, self.broken, strict=True)
        return {f"n{number}": size - broken for number, (size, broken) in enumerate(both)}

    def manifests(self) -> Iterator[Manifest]:
        for number, (size, broken) in enumerate(zip(self.sizes, self.broken, strict=True)):
            devices = gpus(size)
            if broken:
                devices[-1]["taints"] = [{"key": "unhealthy", "effect": "NoSchedule"}]
            yield from (a_node(f"n{number}", instance_type=FOUR), a_slice(f"n{number}", devices))
        for each in self.pods:
            pod, claim = running(each.name, each.node, each.devices)
            if each.orphan:
                claim["status"]["reservedFor"] = []
                yield claim
            else:
                yield from (pod, claim)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    broken = tuple(draw(st.booleans()) and size > 1 for size in sizes)
    pods = list[Placed]()
    for number, size in enumerate(sizes):
        at = 0
        while (left := size - broken[number] - at) > 0 and (count := draw(st.integers(0, min(3, left)))):
            orphan = draw(st.integers(0, 9)) == 0
            pods.append(Placed(f"p{len(pods)}", f"n{number}", tuple(range(at, at + count)), orphan))
            at += count
    return Cluster(sizes, broken, tuple(pods))


def fits(counts: Sequence[int], rooms: Sequence[int]) -> bool:
    """Whether claims of so many devices have a place, by exhaustive search."""
    if not counts:
        return True
    return any(
        fits(counts[1:], [*rooms[:at], room - counts[0], *rooms[at + 1 :]])
        for at, room in enumerate(rooms)
        if room >= counts[0] and room not in rooms[:at]
    )


def most_removable(cluster: Cluster) -> int:
    rooms = cluster.rooms
    held = {each.node for each in cluster.pods if each.orphan}
    used = Counter[str]()
    for each in cluster.pods:
        used[each.node] += len(each.devices)

    def possible(gone: tuple[str, ...]) -> bool:
        moved = [len(each.devices) for each in cluster.pods if each.node in gone]
        left = [rooms[name] - used[name] for name in rooms if name not in gone]
        return fits(sorted(moved, reverse=True), left)

    able = sorted(rooms.keys() - held)
    return max(size for size in range(len(able) + 1) for gone in combinations(able, size) if possible(gone))


@given(clusters())
def test_no_node_leaves_with_an_allocated_device_and_all_moves_are_possible(cluster: Cluster) -> None:
    with TemporaryDirectory() as folder:
        found = found_in(Path(folder), *cluster.manifests())
    gone, moved = leaving(found), {each.pod: each.target for each in found.moving.moves}
    assert {f"team/{each.name}" for each in cluster.pods if each.node in gone} == set(moved)
    assert not any(each.orphan for each in cluster.pods if each.node in gone)
    after = Counter[str]()
    for each in cluster.pods:
        after[moved.get(f"team/{each.name}", each.node)] += len(each.devices)
    assert after.keys().isdisjoint(gone)
    assert all(number <= cluster.rooms[node] for node, number in after.items()), (after, cluster.rooms)
    assert len(gone) <= most_removable(cluster)
    assert found.now == 3 * len(cluster.sizes)
    assert found.least <= found.repacked <= found.now - found.saved
