"""Keeps the last packings of classes: repairs them while that is as good, and packs again otherwise."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.packing.gpus import Clock, Effort, Price
from plimsoll.packing.nodes import FreeNode, PackingProof, PodNeed, ShareWorth
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.demand.packer import ClassPacker, Given, PackedClass, as_node_shape
from plimsoll.plan.demand.repair import ClassRepair
from plimsoll.plan.pools import PoolLimits, PoolShape

SECONDS: Final = 2.0
"""For the packing of one class."""
_ALL_SECONDS: Final = 10.0
"""For the packing of all."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A packing with what it was made of."""

    given: Given
    limits: tuple[object, ...]
    """Their state before it."""
    packed: PackedClass
    gap: int
    """GPUs that it awaits above what is proven to be needed; repairs may not make more of it."""
    recalled: bool = False
    """It began with what another engine left."""

    def answers(self, given: Given, limits: PoolLimits) -> bool:
        if self.given is not given and self.given != given:
            return False
        return self._bare or self.limits == limits.state()

    def stands(self, given: Given, limits: PoolLimits) -> bool:
        """Whether a repair would change nothing: something else is free only where the class has nothing, and it needs
        no more."""
        last, unplaced = self.given, self.packed.unplaced
        same = last.needs == given.needs and last.shapes == given.shapes and last.promised == given.promised
        if not same or not (self._bare or self.limits == limits.state()):
            return False
        own = self.packed.pods_on_nodes
        changes = given.free.changes_since(last.free)
        return not any(
            (then and then.name in own) or (unplaced and now and _roomier(now, then)) for then, now in changes
        )

    @property
    def _bare(self) -> bool:
        """Whether limits do not matter to it."""
        return not self.packed.new and not self.packed.unplaced


@dataclass(frozen=True, slots=True)
class _Worth:
    """What shares are worth, and by which pods, shapes and prices."""

    of: tuple[tuple[PodNeed, ...], tuple[PoolShape, ...], tuple[Price, ...]]
    worth: ShareWorth


class ClassPackings:
    """The packings that the last round came to, and those that were tried on the way to them.

    Not safe to share between threads.
    """

    def __init__(self, seconds: float = SECONDS, clock: Clock | None = None) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: dict[DemandClass, _Made] = {}
        self._tried: dict[DemandClass, list[_Made]] = {}
        """In the last round."""
        self._used: dict[DemandClass, list[_Made]] = {}
        """In this round."""
        self._worths: dict[DemandClass, _Worth] = {}

    def begin(self, classes: Collection[DemandClass]) -> None:
        """A new round, over these classes; all others are forgotten."""
        self._last = {of: made for of, made in self._last.items() if of in classes}
        self._worths = {of: worth for of, worth in self._worths.items() if of in classes}
        self._tried, self._used = self._used, {}

    def end(self, packed: Mapping[DemandClass, PackedClass]) -> None:
        """The round came to these packings."""
        self._last = {of: next(made for made in self._used[of] if made.packed is each) for of, each in packed.items()}

    def last(self, of: DemandClass) -> PackedClass | None:
        """What the last round came to."""
        made = self._last.get(of)
        return None if made is None else made.packed

    def pack(
        self,
        of: DemandClass,
        given: Given,
        limits: PoolLimits,
        classes: int,
        *,
        recalled: PackedClass | None = None,
        onto_promised: bool = False,
    ) -> PackedClass:
        """The packing of one of so many classes, within the limits. A class that is new begins with what is `recalled`
        of it, or goes first `onto_promised`.
        """
        if of in self._last:
            recalled = None
        used = self._used.setdefault(of, [])
        if onto_promised and recalled is None and of not in self._last:
            packed = self._packer(given, limits, classes).pack_onto_promised(given.needs)
            used.append(_Made(given, limits.state(), packed, self._gap(of, given, packed)))
            return packed
        began = recalled is not None
        known = (*(each for each in used if each.recalled == began), *self._tried.get(of, ()))
        made = next((each for each in known if each.answers(given, limits)), None)
        if made is None:
            made = self._make(of, recalled, given, limits, classes)
        if not any(each is made for each in used):
            used.append(made)
        return made.packed

    def _make(
        self, of: DemandClass, recalled: PackedClass | None, given: Given, limits: PoolLimits, classes: int
    ) -> _Made:
        state, last = limits.state(), self._last.get(of)
        repaired = None if recalled is None else ClassRepair(recalled, given, limits).pack()
        if last is not None:
            repaired = last.packed if last.stands(given, limits) else ClassRepair(last.packed, given, limits).pack()
            if repaired is not None and (proven := self._proven(of, last, given, repaired)) is not None:
                return _Made(given, state, proven, last.gap)
        packed = self._packer(given, limits, classes).pack(given.needs)
        gap = self._gap(of, given, packed)
        if repaired is not None and _cost(given, repaired) <= _cost(given, packed):
            gap += repaired.awaited(given) - packed.awaited(given)
            least = min(packed.packing.least, repaired.packing.gpus)
            bound = min(packed.packing.lower_bound, least)
            packing = replace(repaired.packing, least=least, lower_bound=bound, prices=packed.packing.prices)
            packed = replace(repaired, packing=packing)
        return _Made(given, state, packed, gap, recalled is not None)

    def _packer(self, given: Given, limits: PoolLimits, classes: int) -> ClassPacker:
        seconds = min(self._seconds, _ALL_SECONDS / classes)
        effort = Effort(seconds, self._clock)
        return ClassPacker(given.shapes, given.free.useful(given.needs), given.promised, limits.copy(), effort)

    def _gap(self, of: DemandClass, given: Given, packed: PackedClass) -> int:
        """GPUs that a packing from nothing awaits above what is proven to be needed."""
        awaited = packed.awaited(given)
        if not awaited:
            return 0
        if not given.came and awaited == packed.packing.gpus:
            return packed.packing.gap
        return max(0, awaited - self._proof(of, given, packed, given.came).least_with_hosts())

    def _proven(self, of: DemandClass, last: _Made, given: Given, repaired: PackedClass) -> PackedClass | None:
        """The repaired packing with its bound, where nothing that packs all anew could prove to be better."""
        awaited = repaired.awaited(given)
        if awaited and (repaired.packing.gpus > last.packed.packing.gpus or _eased(last.given, given)):
            proof = self._proof(of, given, repaired, given.came)
            if awaited - proof.least > last.gap and awaited - proof.least_with_hosts() > last.gap:
                return None
            if given.came:
                proof = self._proof(of, given, repaired, ())
            least, bound = proof.least, max(0.0, proof.lower_bound)
        elif awaited:
            least, bound = repaired.packing.least, repaired.packing.lower_bound
        else:
            least, bound = 0, 0.0
        least = min(least, repaired.packing.gpus)
        bound = min(bound, least)
        if (least, bound) == (repaired.packing.least, repaired.packing.lower_bound):
            return repaired
        return replace(repaired, packing=replace(repaired.packing, least=least, lower_bound=bound))

    def _proof(self, of: DemandClass, given: Given, packed: PackedClass, came: Sequence[FreeNode]) -> PackingProof:
        needs = given.needs
        if packed.unplaced:
            needs = tuple(need for need in needs if need.name not in packed.unplaced)
        shapes = [as_node_shape(shape) for shape in given.shapes]
        prices, known = packed.packing.prices, self._worths.get(of)
        if known is None or known.of != (needs, given.shapes, prices):
            known = _Worth((needs, given.shapes, prices), ShareWorth(needs, shapes, prices))
            self._worths[of] = known
        return PackingProof(needs, shapes, [*given.free.useful(needs), *came], known.worth)


def _cost(given: Given, packed: PackedClass) -> tuple[int, int, int]:
    """Pods without a place, GPUs to be asked for, GPUs that are awaited."""
    return (len(packed.unplaced), sum(len(node.gpus) for node in packed.new), packed.awaited(given))


def _eased(last: Given, given: Given) -> bool:
    """Whether less might be enough now: pods are gone or smaller, more is free, or other shapes are allowed."""
    if last.shapes is not given.shapes and _offers(last) != _offers(given):
        return True
    needs = {need.name: need for need in given.needs}
    if any((need := needs.get(old.name)) is None or _lighter(need, old) for old in last.needs):
        return True
    return any(now is not None and _roomier(now, then) for then, now in given.free.changes_since(last.free))


def _offers(given: Given) -> list[tuple[object, ...]]:
    return [(shape.name, shape.weight, shape.gpus, shape.price) for shape in given.shapes]


def _lighter(need: PodNeed, old: PodNeed) -> bool:
    if need is old:
        return False
    smaller = min(need.milli.values(), default=0) < min(old.milli.values(), default=0)
    less = need.cpu_milli < old.cpu_milli or need.memory_mib < old.memory_mib
    return smaller or less or need.devices < old.devices


def _roomier(node: FreeNode, old: FreeNode | None) -> bool:
    if old is None:
        return True
    more = node.cpu_milli > old.cpu_milli or node.memory_mib > old.memory_mib or node.pods > old.pods
    return more or len(node.gpus) != len(old.gpus) or any(a > b for a, b in zip(node.gpus, old.gpus, strict=True))
