"""Devices that are parts of another, by the counters that all of them consume, such as the slices of MIG.

What a set of counters has left says which of its devices can still be had. Plans count each part as an equal share of
the whole device: of seven that can be had of it, a seventh. That is exact for claims of parts that are alike. For
different ones the next plan corrects it, as what is left is read from the counters. A claim for different parts of one
device counts as an equal share, too: of two such claims that it can have, a half.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

from plimsoll.cluster.claims.expression import lasting
from plimsoll.model.dra import WHOLE_GPUS, Claimable, DevicePart, Placements, ResourceSlice
from plimsoll.packing import GPU_MILLI, Milli, exact_milli
from plimsoll.quantity import parse_quantity

_Amounts = Sequence[tuple[str, Decimal]]
_Device = tuple[str, str, str]
"""(driver, pool, device)"""


class _Member(NamedTuple):
    """A device that consumes counters."""

    kind: Claimable
    amounts: tuple[tuple[str, str], ...]
    """(counter, quantity)"""


@dataclass(frozen=True)
class _Set:
    """The counters of one whole device, and the devices that consume them, in the order of the slices. Those are
    numbered."""

    counters: tuple[tuple[str, str], ...]
    members: tuple[_Member, ...]

    def number_of(self, kind: Claimable, held: Collection[int] = ()) -> int:
        """How many of a kind can be had beside devices that claims hold, if the scheduler takes no others."""
        left = {counter: parse_quantity(amount) for counter, amount in self.counters}
        for at in held:
            for counter, amount in self._amounts[at]:
                left[counter] -= amount
        alike = (at for at, each in enumerate(self.members) if each.kind == kind and at not in held)
        return sum(_take(left, self._amounts[at]) for at in alike)

    @cached_property
    def _amounts(self) -> Sequence[_Amounts]:
        return [[(counter, parse_quantity(amount)) for counter, amount in each.amounts] for each in self.members]

    @cached_property
    def numbers(self) -> Mapping[Claimable, int]:
        """How many of each kind can be had if nothing is held; without what never can."""
        found = {kind: self.number_of(kind) for kind in dict.fromkeys(each.kind for each in self.members)}
        return {kind: number for kind, number in found.items() if number}

    @cached_property
    def whole(self) -> int | None:
        """The whole device: nothing can be had beside it."""
        gpus = (at for at, each in enumerate(self.members) if each.kind.text("type") in WHOLE_GPUS)
        return next((at for at in gpus if not any(self.number_of(kind, (at,)) for kind in self.numbers)), None)

    @cached_property
    def claimable(self) -> Claimable | None:
        """The whole device with its parts."""
        if self.whole is None:
            return None
        kind = self.members[self.whole].kind
        parts = [DevicePart(part, number) for part, number in self.numbers.items() if part != kind]
        parts.sort(key=lambda part: (part.number, part.device.attributes, part.device.capacity))
        of_parts = [
            tuple(sorted(_without_zeros(each.amounts) for each in self.members if each.kind == part))
            for part, _ in parts
        ]
        return replace(kind, parts=tuple(parts), placements=Placements(tuple(sorted(self.counters)), tuple(of_parts)))

    def free(self, held: Collection[int]) -> Milli:
        """Thousandths that are left: as many parts of one kind as still can be had fit, and no more of any kind."""
        left = [(self.number_of(kind, held), number) for kind, number in self.numbers.items()]
        most = min(Fraction(can + 1, number) for can, number in left)
        fitting = (Fraction(min(can, math.ceil(most * number) - 1), number) for can, number in left)
        return exact_milli(max(fitting))


def _without_zeros(amounts: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((counter, amount) for counter, amount in amounts if parse_quantity(amount)))


@lru_cache(maxsize=4096)
def together(placements: Placements, parts: tuple[int, ...]) -> int:
    """How many claims for these parts of one device an unused one has. Parts are told by their place in
    `Claimable.parts`, in the order of the requests. Each claim takes the first placements at which all of its parts
    fit, as the scheduler does."""
    left = {counter: parse_quantity(amount) for counter, amount in placements.counters}
    of_parts = [[[(name, parse_quantity(amount)) for name, amount in at] for at in of] for of in placements.of_parts]
    used, number = set[tuple[int, int]](), 0
    while (found := _fitted(left, of_parts, parts, used)) is not None:
        for part, at in found:
            _take(left, of_parts[part][at])
        used |= {*found}
        number += 1
    return number


def _fitted(
    left: Mapping[str, Decimal],
    of_parts: Sequence[Sequence[_Amounts]],
    parts: Sequence[int],
    used: Collection[tuple[int, int]],
    before: tuple[tuple[int, int], ...] = (),
) -> tuple[tuple[int, int], ...] | None:
    """(part, number of its placement) of each of the parts, after those of the parts `before`; None if they do not fit.

    Of parts that are alike, the first has the first placement: exchanged, they would fit as well, and are tried later.
    """
    if len(before) == len(parts):
        return before
    part = parts[len(before)]
    after = max((at for of, at in before if of == part), default=-1)
    for at, amounts in enumerate(of_parts[part][after + 1 :], after + 1):
        rest = dict(left)
        if (part, at) in used or not _take(rest, amounts):
            continue
        if (found := _fitted(rest, of_parts, parts, used, (*before, (part, at)))) is not None:
            return found
    return None


_set_of = lru_cache(maxsize=1024)(_Set)
"""Most GPUs are divided alike."""


def _take(left: dict[str, Decimal], amounts: _Amounts) -> bool:
    """Takes what a device consumes, if there is as much."""
    if any(left[counter] < amount for counter, amount in amounts):
        return False
    for counter, amount in amounts:
        left[counter] -= amount
    return True


@dataclass(frozen=True)
class Divided:
    """A device that claims may have whole, or parts of it."""

    key: _Device
    """Of the whole one."""
    claimable: Claimable
    _set: _Set
    _names: Sequence[str]
    """Of the whole one and its parts, as the set has them."""

    def shared_by(self, holders: Sequence[tuple[str, str]]) -> tuple[Milli, tuple[tuple[str, Milli], ...]]:
        """What is left of it beside parts that claims have, and what each of these claims has. `holders` are (claim,
        part). If parts are more together than is missing, they are less each."""
        parts = [self._names.index(part) for _, part in holders]
        free = self._set.free(set(parts))
        held = [Fraction(GPU_MILLI, self._set.numbers.get(self._set.members[part].kind, 1)) for part in parts]
        scale = min(Fraction(1), Fraction(GPU_MILLI - free) / sum(held))
        by_claim = defaultdict[str, Fraction](Fraction)
        for (claim, _), milli in zip(holders, held, strict=True):
            by_claim[claim] += milli * scale
        return free, tuple((claim, exact_milli(milli / GPU_MILLI)) for claim, milli in sorted(by_claim.items()))


def divided_devices(slices: Iterable[ResourceSlice]) -> Mapping[_Device, Divided]:
    """The divided devices of a node's complete pools, by each device that is one of them or of their parts. Left out
    are devices that consume counters of several sets, or of none that is published, or where none is the whole."""
    pools = defaultdict[tuple[str, str], list[ResourceSlice]](list)
    for each in slices:
        pools[each.driver, each.pool].append(each)
    found = dict[_Device, Divided]()
    for (driver, pool), of_pool in pools.items():
        for counted, names in _sets(of_pool):
            if counted.whole is not None and counted.claimable is not None:
                divided = Divided((driver, pool, names[counted.whole]), counted.claimable, counted, names)
                found |= dict.fromkeys(((driver, pool, name) for name in names), divided)
    return found


def _sets(slices: Sequence[ResourceSlice]) -> Iterator[tuple[_Set, Sequence[str]]]:
    """The sets of counters of a pool with the names of their devices."""
    consumers, uncounted = defaultdict[str, list[tuple[str, _Member]]](list), set[str]()
    for each in sorted(slices, key=lambda each: each.name):
        for device in each.devices:
            for of_set in device.consumes:
                kind = lasting(device._replace(consumes=()), each.driver)
                consumers[of_set.name].append((device.name, _Member(kind, of_set.amounts)))
                if len(device.consumes) > 1 or kind.special:
                    uncounted.add(of_set.name)
    for each in slices:
        for published in each.counters:
            names, members = (
                zip(*consumers.get(published.name, ()), strict=True) if published.name in consumers else ((), ())
            )
            counters = {counter for counter, _ in published.amounts}
            known = all(counter in counters for member in members for counter, _ in member.amounts)
            if members and known and published.name not in uncounted:
                yield _set_of(published.amounts, members), names
