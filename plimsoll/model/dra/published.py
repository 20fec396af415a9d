"""What a node's drivers publish: devices that pods get by claims."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from plimsoll.labels import DEVICE_CLASS_PREFIX
from plimsoll.model.dra.attribute import Attribute
from plimsoll.model.dra.request_policy import RequestPolicy
from plimsoll.packing import Milli

GPU_DRIVERS: Final[Mapping[str, str]] = {"gpu.nvidia.com": "nvidia", "gpu.amd.com": "amd", "gpu.intel.com": "intel"}
"""Vendors of GPUs by the driver that publishes these. Devices of other drivers are not GPUs."""


WHOLE_GPUS: Final = ("", "gpu", "amdgpu")
"""Types of devices that are whole GPUs. Intel's have none."""


class DevicePart(NamedTuple):
    """A device that claims may have instead of a whole one, such as a MIG slice of a GPU."""

    device: "Claimable"
    number: int
    """So many can be had of one whole device, without others."""


@dataclass(frozen=True)
class Placements:
    """Where the parts of a device can be, by the counters that they consume."""

    counters: tuple[tuple[str, str], ...]
    """(counter, quantity) of the whole device, sorted."""
    of_parts: tuple[tuple[tuple[tuple[str, str], ...], ...], ...]
    """For each of `Claimable.parts`: what it consumes at each of its placements, without what is 0. Sorted, which is
    the order of NVIDIA's driver: slices of a pool may have another on each node."""

    def __hash__(self) -> int:
        """Devices are compared often, and these are long."""
        return hash(self.counters)


@dataclass(frozen=True, slots=True)
class Claimable:
    """What is the same of a device on each such node, by which claims select it. Attributes of one device alone, or of
    how its node runs at the moment, are left out."""

    driver: str
    attributes: tuple[Attribute, ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    """(name with its domain, quantity), sorted."""
    special: str = ""
    """As of SliceDevice."""
    shared: bool = False
    """As of SliceDevice."""
    policies: tuple[tuple[str, RequestPolicy], ...] = ()
    """As of SliceDevice."""
    distinct: tuple[str, ...] = ()
    """Attributes of one device alone that each device of the node has, with another value than the others; sorted."""
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Attributes of the place of a device, such as a NUMA node, that all devices of the node have and some share, each
    with the numbers of devices that have the same value, ascending; sorted."""
    parts: tuple[DevicePart, ...] = ()
    """What claims may have instead of all of it, by counters that these consume; sorted."""
    placements: Placements | None = None
    """Of the parts; None: not known."""
    extended_resources: frozenset[str] = frozenset()
    """Extended resources by which pods may request it, too, by a DeviceClass."""

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of that name in the driver's domain."""
        return next((each for each in self.attributes if each.name == f"{self.driver}/{name}"), None)

    def text(self, name: str) -> str:
        """Value of an attribute of text; empty if it has none."""
        found = self.attribute(name)
        return str(found.value) if found is not None and found.kind == "string" else ""

    def amount(self, name: str) -> str:
        """The capacity of that name in the driver's domain; empty if it has none."""
        return dict(self.capacity).get(f"{self.driver}/{name}", "")

    @property
    def own_class(self) -> str:
        """The DeviceClass of its driver's name, as charts of drivers create it; empty where that does not select it."""
        return self.driver if f"{DEVICE_CLASS_PREFIX}{self.driver}" in self.extended_resources else ""

    def served_as(self, resources: frozenset[str]) -> "Claimable":
        """The same with these extended resources."""
        return self if resources == self.extended_resources else replace(self, extended_resources=resources)


class SharedDevice(NamedTuple):
    """A device of which claims have parts."""

    driver: str
    pool: str
    device: str
    free: Milli
    """Thousandths that claims can get."""
    claims: tuple[tuple[str, Milli], ...]
    """(`namespace/name`, thousandths that it has), sorted."""


@dataclass(frozen=True)
class Published:
    """The devices of one node, of all its drivers' complete pools in their highest generation."""

    devices: tuple[tuple[str, str, Claimable], ...] = ()
    """(pool, device, what it is), sorted by driver, pool and name."""
    taken: tuple[tuple[str, str, str], ...] = ()
    """(driver, pool, device) of those that no claim can get now: allocated, or tainted; sorted."""
    claims: tuple[tuple[str, tuple[str, ...], int], ...] = ()
    """(`namespace/name`, names of its pods, number of GPUs) of the claims that have some of these, or parts of some,
    which are not counted; sorted."""
    shared: tuple[SharedDevice, ...] = ()
    """Those of which claims have parts, sorted. None is in `taken`."""
    places: tuple[tuple[tuple[str, str, str], tuple[tuple[str, object], ...]], ...] = ()
    """(driver, pool, device) with its values of `groups`, of those that have some."""

    @cached_property
    def kinds(self) -> tuple[tuple[Claimable, int], ...]:
        """What it has, with the number of each."""
        counts: dict[Claimable, int] = {}
        for _, _, claimable in self.devices:
            counts[claimable] = counts.get(claimable, 0) + 1
        return tuple(counts.items())

    def taken_of(self, claimable: Claimable) -> int:
        """Number of such devices that no claim can get now."""
        taken = set(self.taken)
        return sum((each.driver, pool, name) in taken for pool, name, each in self.devices if each == claimable)

    def groups_left(self, claimable: Claimable) -> Claimable:
        """What the device is by the groups of those that are entirely free."""
        if not claimable.groups:
            return claimable
        used = {*self.taken, *(each[:3] for each in self.shared)}
        free = [values for key, values in self.places if key[0] == claimable.driver and key not in used]
        left = dict(groups_of(free))
        return replace(claimable, groups=tuple((name, left.get(name, ())) for name, _ in claimable.groups))

    def shared_of(self, claimable: Claimable) -> tuple[SharedDevice, ...]:
        """Those of which claims have parts, among such devices."""
        own = {(pool, name) for pool, name, each in self.devices if each == claimable} if self.shared else ()
        return tuple(
            each for each in self.shared if (each.pool, each.device) in own and each.driver == claimable.driver
        )


def groups_of(devices: Iterable[Iterable[tuple[str, object]]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """As `Claimable.groups`, of devices by their (attribute, value)."""
    counts: dict[str, Counter[object]] = {}
    for values in devices:
        for name, value in values:
            counts.setdefault(name, Counter())[value] += 1
    return tuple((name, tuple(sorted(found.values()))) for name, found in sorted(counts.items()))


NOTHING_PUBLISHED = Published()
