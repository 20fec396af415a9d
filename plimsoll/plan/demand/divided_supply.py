"""Divides the supply between classes: what each uses of existing nodes, and what is left for the others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from plimsoll.packing.nodes import FilledNode, FreeNode, NodeUse, PodNeed
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.demand.free_parts import FreeParts, Ground
from plimsoll.plan.demand.packer import Given, PackedClass, PromisedNode
from plimsoll.plan.demand.supply import DemandSupply
from plimsoll.plan.pools import PoolShape

_LEAST_CHANGES: Final = 256
_NOTHING: Final[Mapping[str, NodeUse]] = {}

Needs = Mapping[str, PodNeed]


class _Seen(NamedTuple):
    """What a class was given, and how much of the log was written by then."""

    at: int
    given: Given


class _Place(NamedTuple):
    """What the places of a class are a function of."""

    packed: PackedClass
    needs: Needs


class DividedSupply:
    """What classes have of existing nodes stays their own from one round to the next; of nodes and classes that did
    not change nothing is looked at again.

    A round works on copies, the last of which is what the next round begins with.
    """

    def __init__(self) -> None:
        self._free: dict[str, FreeNode] = {}
        """What nobody has."""
        self._whole: dict[str, FreeNode] = {}
        """The same as if no class had anything."""
        self._kept: dict[DemandClass, Mapping[str, NodeUse]] = {}
        """By node."""
        self._places: dict[DemandClass, _Place] = {}
        self._log: list[str] = []
        """Nodes of which something else is free than before."""
        self._seen: dict[DemandClass, _Seen] = {}
        self._grounds: dict[object, Ground] = {}
        """By placement; those of the same nodes are one value."""
        self._supply: DemandSupply | None = None

    def copy(self) -> "DividedSupply":
        """The same, to be changed alone."""
        other = DividedSupply()
        other._free, other._whole = dict(self._free), self._whole
        other._kept, other._places = dict(self._kept), dict(self._places)
        other._log, other._seen, other._grounds = list(self._log), dict(self._seen), self._grounds
        other._supply = self._supply
        return other

    def renewed(self, supply: DemandSupply, classes: Sequence[DemandClass]) -> "DividedSupply":
        """For the next round: of what the supply is now, classes have what is left of theirs, the first ones first."""
        other = self.copy()
        if len(other._log) > _LEAST_CHANGES + len(other._free) // 4:
            other._log, other._seen, other._grounds = [], {}, {}
        other._supply, other._whole = supply, dict(self._whole)
        for of in other._kept.keys() - set(classes):
            other.release(of)
            del other._kept[of]
            other._places.pop(of, None)
        other._seen = {of: seen for of, seen in other._seen.items() if of in other._kept}
        before = self._supply
        changed = set(supply.names) if before is None else {*supply.changed, *supply.taken, *before.taken}
        for name in changed:
            other._renew(name, supply, classes)
        return other

    def _renew(self, name: str, supply: DemandSupply, classes: Iterable[DemandClass]) -> None:
        whole = supply.everybodys(name)
        if self._whole.get(name) == whole:
            self._log.append(name)  # it may serve others now
            return
        free = whole
        for of in classes:
            use = self._kept.get(of, _NOTHING).get(name)
            if use is not None and free is not None and supply.serves(of.placement, name) and use.fits(free):
                free = use.taken_from(free)
            elif use is not None:
                self._kept[of] = {other: use for other, use in self._kept[of].items() if other != name}
        if whole is None or free is None:
            del self._whole[name]
        else:
            self._whole[name] = whole
        self._set(name, free)

    def keep(self, of: DemandClass, packed: PackedClass, needs: Needs) -> None:
        """The class has what its pods that are still there have by that packing, as far as it is free."""
        place = self._places.get(of)
        if place is not None and place.packed is packed and place.needs is needs:
            return
        self._places[of] = _Place(packed, needs)
        self.take(of, self.uses(packed.on_nodes, needs))

    def keep_nothing(self, of: DemandClass) -> None:
        """Nothing is known of the class."""
        self.release(of)
        self._places.pop(of, None)

    def has(self, of: DemandClass) -> bool:
        """Whether it has anything."""
        return bool(self._kept.get(of))

    def uses(self, filled: Iterable[FilledNode], needs: Needs) -> dict[str, NodeUse]:
        """What these pods, as far as they are still there, take where they lie, of nodes that may hold them."""
        found = {}
        for each in filled:
            held = each.gpus
            if any(name not in needs for names in held for name in names):
                held = tuple(tuple(name for name in names if name in needs) for names in held)
            free = self._whole.get(each.node or "")
            if free is not None and any(held) and len(held) == len(free.gpus):
                use = NodeUse.of(free, held, needs)
                if use is not None:
                    found[free.name] = use
        return found

    def take(self, of: DemandClass, uses: Mapping[str, NodeUse]) -> None:
        """The class has these, as far as they are free, in place of what it had."""
        before, kept = self._kept.get(of, _NOTHING), dict(uses)
        for name in before.keys() | uses.keys():
            old, new, free = before.get(name), uses.get(name), self._free[name]
            if old == new:
                continue
            free = free if old is None else old.taken_from(free, -1)
            if new is not None and new.fits(free):
                free = new.taken_from(free)
            elif new is not None:
                del kept[name]
            self._set(name, free)
        self._kept[of] = kept

    def release(self, of: DemandClass) -> None:
        """The class has nothing any more."""
        self.take(of, _NOTHING)

    def again(self, of: DemandClass, before: "DividedSupply") -> None:
        """The class has what is left of what it had there."""
        self.take(of, before._kept.get(of, _NOTHING))

    def parts(self, of: DemandClass) -> FreeParts:
        """What the class may have: what is its own, and what nobody has."""
        seen = self._seen.get(of)
        if seen is None:
            return self._all_parts(of)
        parts, changes = seen.given.free, dict[str, FreeNode | None]()
        if len(self._log) == seen.at:
            return parts
        for name in set(self._log[seen.at :]):
            now, then = self._part(of, name), parts.get(name)
            if now is not then and now != then:
                changes[name] = now
        return parts.changed(changes)

    def given(
        self,
        of: DemandClass,
        needs: Needs,
        shapes: tuple[PoolShape, ...],
        promised: tuple[PromisedNode, ...],
    ) -> Given:
        """What the class is packed from now; the same value as the last time where nothing of it changed."""
        free, seen = self.parts(of), self._seen.get(of)
        asked = tuple(needs.values())
        given = Given(asked, shapes, free, promised)
        if seen is not None:
            last = seen.given
            if last.needs == asked:
                given = last if last == given else replace(given, needs=last.needs)
        self._seen[of] = _Seen(len(self._log), given)
        return given

    def _part(self, of: DemandClass, name: str) -> FreeNode | None:
        free = self._free.get(name)
        if free is None or self._supply is None or not self._supply.serves(of.placement, name):
            return None
        own = self._kept.get(of, _NOTHING).get(name)
        free = free if own is None else own.taken_from(free, -1)
        return free if any(free.gpus) else None

    def _all_parts(self, of: DemandClass) -> FreeParts:
        assert self._supply is not None, "a round has a supply"
        served = self._supply.served(of.placement)
        ground = self._grounds.get(of.placement)
        if ground is None:
            there = served & self._whole.keys()
            same = (each for each in self._grounds.values() if each.nodes.keys() == there)
            ground = next(same, None) or Ground({name: self._whole[name] for name in sorted(there)})
            self._grounds[of.placement] = ground
        names = {name for name, node in ground.nodes.items() if self._free.get(name) is not node}
        names |= (served ^ ground.nodes.keys()) | self._kept.get(of, _NOTHING).keys()
        return FreeParts(ground, {name: self._part(of, name) for name in names})

    def _set(self, name: str, free: FreeNode | None) -> None:
        if free is None:
            self._free.pop(name, None)
        else:
            self._free[name] = free
        self._log.append(name)
