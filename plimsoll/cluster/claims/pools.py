"""What the nodes' drivers publish: complete pools of the highest generation, less what claims have."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import is_, itemgetter
from typing import NamedTuple

from plimsoll.cluster.claims.counters import Divided, divided_devices
from plimsoll.cluster.claims.expression import NotEvaluatedError, SelectorError, is_of_one_device, lasting, selects
from plimsoll.cluster.claims.parts import free_part, held_part
from plimsoll.labels import DEVICE_CLASS_PREFIX
from plimsoll.model.dra import (
    GPU_DRIVERS,
    Allocated,
    Claimable,
    DeviceClass,
    Published,
    ResourceClaim,
    ResourceSlice,
    SharedDevice,
    SliceDevice,
    groups_of,
)
from plimsoll.packing import Milli

_Pool = tuple[str, str]
"""(driver, pool)"""
_Device = tuple[str, str, str]
"""(driver, pool, device)"""


class NodeParts(NamedTuple):
    """What the devices of one node are read from."""

    slices: tuple[ResourceSlice, ...]
    """Of complete pools in their highest generation."""
    claims: tuple[ResourceClaim, ...]
    """Those that have devices of these pools."""

    def same(self, other: "NodeParts | None") -> bool:
        """Whether both have the same objects."""
        if other is None or len(self.slices) != len(other.slices) or len(self.claims) != len(other.claims):
            return False
        return all(map(is_, self.slices, other.slices)) and all(map(is_, self.claims, other.claims))


def parts_by_node(slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]) -> Mapping[str, NodeParts]:
    """What the devices of each node are read from, by the node's name."""
    of_pools = defaultdict[_Pool, list[ResourceSlice]](list)
    for each in slices:
        if not each.deleting:
            of_pools[each.driver, each.pool].append(each)
    holders = defaultdict[_Pool, list[ResourceClaim]](list)
    for claim in claims:
        for pool in {(device.driver, device.pool) for device in claim.devices}:
            holders[pool].append(claim)
    on_node = defaultdict[str, list[ResourceSlice]](list)
    for of_pool in of_pools.values():
        for each in complete(of_pool):
            if each.node_name:
                on_node[each.node_name].append(each)
    return {name: NodeParts(tuple(parts), _holding(parts, holders)) for name, parts in on_node.items()}


def _holding(
    slices: Iterable[ResourceSlice], holders: Mapping[_Pool, Iterable[ResourceClaim]]
) -> tuple[ResourceClaim, ...]:
    pools = dict.fromkeys((each.driver, each.pool) for each in slices)
    return tuple({claim.key: claim for pool in pools for claim in holders.get(pool, ())}.values())


def complete(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of a pool in its highest generation; none if some of them are missing."""
    given = list(slices)
    newest = max((each.generation for each in given), default=0)
    found = [each for each in given if each.generation == newest]
    return found if found and len(found) == found[0].of_pool else []


class Served:
    """The extended resources by which DeviceClasses serve devices: that of its own name, and the one that it declares.
    Of two classes with one name, the newer."""

    def __init__(self, classes: Iterable[DeviceClass]) -> None:
        self._classes: dict[str, DeviceClass] = {}
        for each in sorted(classes, key=lambda each: (each.creation_timestamp, each.name)):
            self._classes[f"{DEVICE_CLASS_PREFIX}{each.name}"] = each
            if each.extended_resource:
                self._classes[each.extended_resource] = each
        self._known: dict[Claimable, Claimable] = {}
        """Most devices are alike."""

    def by(self, device: Claimable) -> Claimable:
        found = self._known.get(device)
        if found is None:
            resources = (
                resource
                for resource, of_class in self._classes.items()
                if all(_selects(expression, device) for expression in of_class.selectors)
            )
            found = self._known[device] = device.served_as(frozenset(resources))
        return found


def served(device: Claimable, classes: Iterable[DeviceClass]) -> Claimable:
    """The device with the extended resources by which pods may request it."""
    return Served(classes).by(device)


def _selects(expression: str, device: Claimable) -> bool:
    try:
        return selects(expression, device)
    except (SelectorError, NotEvaluatedError):
        return False


def published(parts: NodeParts, served: Served) -> Published:
    """The devices of a node."""
    alike, tainted = defaultdict[Claimable, list[tuple[str, SliceDevice]]](list), set[_Device]()
    divided = divided_devices(parts.slices)
    for each in parts.slices:
        for device in each.devices:
            key = each.driver, each.pool, device.name
            of_whole = divided.get(key)
            if device.tainted:
                tainted.add(of_whole.key if of_whole is not None else key)
            if of_whole is None:
                alike[lasting(device, each.driver)].append((each.pool, device))
            elif of_whole.key == key:
                alike[of_whole.claimable].append((each.pool, device))
    devices, places = list[tuple[str, str, Claimable]](), list[tuple[_Device, tuple[tuple[str, object], ...]]]()
    for claimable, found in alike.items():
        values = [_places(device) for _, device in found]
        groups = [each for each in groups_of(values) if sum(each[1]) == len(found)]
        distinct = tuple(name for name, sizes in groups if len(sizes) == len(found))
        shared_values = tuple(each for each in groups if each[0] not in distinct)
        of_kind = served.by(replace(claimable, distinct=distinct, groups=shared_values))
        devices += ((pool, device.name, of_kind) for pool, device in found)
        if shared_values:
            keys = ((claimable.driver, pool, device.name) for pool, device in found)
            places += zip(keys, map(tuple, values), strict=True)
    known = {(claimable.driver, pool, name): claimable for pool, name, claimable in devices}
    having = list(_having(parts.claims, known, divided))
    taken = tainted | {each.key for _, held in having for each in held if each.consumed is None}
    shared = [*_shared(having, known, taken), *_in_parts(having, divided, taken)]
    taken.update(each[:3] for each in shared if not each.free)
    return Published(
        tuple(sorted(devices, key=lambda each: (each[2].driver, each[0], each[1]))),
        tuple(sorted(taken)),
        tuple(sorted(_having_gpus(having))),
        tuple(sorted(each for each in shared if each.free)),
        tuple(sorted(places, key=itemgetter(0))),
    )


def _shared(
    having: Iterable[tuple[ResourceClaim, list[Allocated]]],
    known: Mapping[_Device, Claimable],
    taken: Container[_Device],
) -> Iterator[SharedDevice]:
    """The devices of which claims have parts."""
    holders = defaultdict[_Device, list[tuple[str, dict[str, str]]]](list)
    for claim, held in having:
        for each in held:
            if each.consumed is not None and each.key in known and each.key not in taken:
                holders[each.key].append((_name(claim), dict(each.consumed)))
    for device, consumed in holders.items():
        free = free_part(known[device], [amounts for _, amounts in consumed]) if known[device].shared else 0
        parts = defaultdict[str, Milli](int)
        for name, amounts in consumed:
            parts[name] += held_part(known[device], amounts)
        yield SharedDevice(*device, free, tuple(sorted(parts.items())))


def _in_parts(
    having: Iterable[tuple[ResourceClaim, list[Allocated]]],
    divided: Mapping[_Device, Divided],
    taken: Container[_Device],
) -> Iterator[SharedDevice]:
    """The divided devices of which claims have parts."""
    holders = defaultdict[_Device, list[tuple[str, str]]](list)
    for claim, held in having:
        for each in held:
            found = divided.get(each.key)
            if found is not None and found.key not in taken:
                holders[found.key].append((_name(claim), each.device))
    for key, parts in holders.items():
        yield SharedDevice(*key, *divided[key].shared_by(parts))


def _places(device: SliceDevice) -> list[tuple[str, object]]:
    """The attributes of one device alone, with their values."""
    return [(each.name, (each.kind, each.value)) for each in device.attributes if is_of_one_device(each.name)]


def _having(
    claims: Iterable[ResourceClaim], known: Container[_Device], divided: Container[_Device]
) -> Iterator[tuple[ResourceClaim, list[Allocated]]]:
    """The claims with what they have. Of a part of a divided device nothing is consumed but itself."""
    for claim in claims:
        held = [
            each if each.key in known else each._replace(consumed=())
            for each in claim.devices
            if each.key in known or each.key in divided
        ]
        if held:
            yield claim, held


def _having_gpus(
    having: Iterable[tuple[ResourceClaim, list[Allocated]]],
) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """As `Published.claims`."""
    for claim, held in having:
        gpus = [each for each in held if each.driver in GPU_DRIVERS]
        if gpus:
            yield _name(claim), claim.pods, sum(each.consumed is None for each in gpus)


def _name(claim: ResourceClaim) -> str:
    return f"{claim.namespace}/{claim.name}"
