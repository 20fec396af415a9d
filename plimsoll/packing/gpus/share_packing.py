"""Packs shares, each on one GPU, onto free GPUs and the fewest new ones.

This is one-dimensional bin packing with bins of several sizes and kinds. Column generation gives a lower bound with a
proof, and an integer program or diving gives the packing. If the time is over, best fit decreasing is the result, and
the gap to the bound is reported.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.packing.gpus.column_generation import Bound
from plimsoll.packing.gpus.effort import Effort
from plimsoll.packing.gpus.problem import Patterns, ShareCounts
from plimsoll.packing.gpus.search import pack_counts, prove
from plimsoll.packing.units import GPU_MILLI, Milli, exact_milli

ANY: Final = ""
"""Stands for every kind of GPU."""

Sizes = tuple[tuple[str, Milli], ...]
"""(kind, thousandths) pairs, sorted by kind."""


@dataclass(frozen=True, slots=True)
class Item:
    """A share to place. The name must be unique."""

    name: str
    milli: Mapping[str, Milli]
    """Thousandths of one GPU that it takes, by kind of GPU; other kinds cannot hold it. `{ANY: n}` if every kind
    can."""


@dataclass(frozen=True, slots=True)
class FreeGPU:
    """The free part of a GPU that exists or was requested. The name must be unique."""

    name: str
    kind: str
    free: Milli
    """Free thousandths."""


@dataclass(frozen=True, slots=True)
class Bin:
    """The items that are placed on one GPU."""

    items: tuple[str, ...]
    gpu: str | None = None
    """Name of the free GPU; None for a new one."""
    kinds: tuple[str, ...] = ()
    """The kinds of GPU that can hold these items; for a new GPU, only kinds that may be new."""


@dataclass(frozen=True, slots=True)
class Price:
    """The dual price of the shares with equal sizes on all kinds."""

    milli: Sizes
    count: int
    dual: float


@dataclass(frozen=True, slots=True)
class SupplyPrice:
    """The dual price of the free GPUs of one kind with equal free parts."""

    kind: str
    free: Milli
    count: int
    dual: float


@dataclass(frozen=True, slots=True)
class Packing:
    bins: tuple[Bin, ...] = ()
    """The GPUs in use: free GPUs first, then new ones. Each item is in one of them, except the unplaced."""
    unplaced: tuple[tuple[str, str], ...] = ()
    """(item, reason) of the items that no GPU can hold."""
    lower_bound: float = 0.0
    """Lower bound of the number of new GPUs; the optimum of the linear program over patterns if `exact`.

    It is the sum of count times dual over `prices`, less the same sum over `supply_prices`.
    """
    exact: bool = True
    least: int = 0
    """The lower bound in whole GPUs. It can exceed `lower_bound` rounded up, because it excludes patterns that hold
    more copies of an item than there are."""
    best_fit: int = 0
    """Number of new GPUs of best fit decreasing, for comparison."""
    prices: tuple[Price, ...] = ()
    """The proof of the bound: the items that fit one new GPU are worth at most 1 at these prices."""
    supply_prices: tuple[SupplyPrice, ...] = ()
    """The items that fit such a free GPU are worth at most its dual."""

    @property
    def gpus(self) -> int:
        """Number of new GPUs."""
        return sum(each.gpu is None for each in self.bins)

    @property
    def gap(self) -> int:
        """Number of new GPUs above the lower bound; 0 proves that there are no fewer."""
        return self.gpus - self.least


def pack(
    items: Iterable[Item],
    supply: Iterable[FreeGPU] = (),
    new_kinds: Iterable[str] | None = None,
    *,
    seconds: float = 2.0,
) -> Packing:
    """Packs items onto free GPUs and as few new GPUs as possible. The result does not depend on the order of the
    arguments' elements.

    `new_kinds` are the kinds of which GPUs may be new, by default all that an item names. Items that can use only other
    kinds are placed on free GPUs first. `seconds` of counted work limit the search. If the limit is reached, the
    gap may be larger.
    """
    effort = Effort(seconds)
    free = sorted((gpu for gpu in supply if gpu.free > 0), key=lambda gpu: (gpu.kind, gpu.free, gpu.name))
    openable = None if new_kinds is None else frozenset(new_kinds)
    choosing: list[Item] = []
    bound: list[Item] = []
    unplaced: list[tuple[str, str]] = []
    for item in sorted(items, key=lambda item: item.name):
        milli = {kind: size for kind, size in item.milli.items() if 0 < size <= GPU_MILLI}
        if not milli:
            unplaced.append((item.name, _why_unfit(item)))
        elif openable is None or (openable if ANY in milli else openable & milli.keys()):
            choosing.append(replace(item, milli=milli))
        else:
            bound.append(replace(item, milli=milli))
    first: tuple[Bin, ...] = ()
    left = free
    if bound:
        first, refused, left = _onto_supply(bound, free, effort)
        unplaced += refused
    packing = _Pool(choosing, left, openable).pack(effort)
    packing = replace(packing, bins=_merged(first, packing.bins), unplaced=tuple(sorted(unplaced)))
    if first and packing.lower_bound > 0:
        # The bound was computed with the first items in their places, which could be elsewhere.
        held = {name for each in first for name in each.items}
        placed = [*choosing, *(item for item in bound if item.name in held)]
        packing = _Pool(placed, free, openable).proven(packing, effort)
    return packing


def _why_unfit(item: Item) -> str:
    if not item.milli:
        return "no kind of GPU may hold it"
    requested = ", ".join(f"{size}{f' of {kind}' if kind else ''}" for kind, size in sorted(item.milli.items()))
    return f"takes {requested} thousandths of a GPU, and a share takes between 1 and {GPU_MILLI}"


def _onto_supply(
    items: Sequence[Item], free: Sequence[FreeGPU], effort: Effort
) -> tuple[tuple[Bin, ...], list[tuple[str, str]], list[FreeGPU]]:
    """Packs the items that may not use new GPUs. Returns their bins, the unplaced items with reasons, and the remaining
    free GPUs."""
    packing = _Pool(items, free, None).pack(effort)
    held = {each.gpu: each.items for each in packing.bins if each.gpu is not None}
    refused = [
        (name, f"no free GPU can hold it, and none of {', '.join(each.kinds)} may be new")
        for each in packing.bins
        if each.gpu is None
        for name in each.items
    ]
    milli = {item.name: item.milli for item in items}
    left = [
        replace(each, free=each.free - sum(size_on(milli[name], each.kind) for name in held.get(each.name, ())))
        for each in free
    ]
    return tuple(each for each in packing.bins if each.gpu is not None), refused, left


def _merged(first: Sequence[Bin], then: Sequence[Bin]) -> tuple[Bin, ...]:
    """Both lists, with one bin for each GPU."""
    held = {each.gpu: each for each in first}
    for each in then:
        if each.gpu in held and each.gpu is not None:
            held[each.gpu] = replace(each, items=tuple(sorted(held[each.gpu].items + each.items)))
        elif each.gpu is not None:
            held[each.gpu] = each
    existing = sorted(held.values(), key=lambda each: each.gpu or "")
    return (*existing, *(each for each in then if each.gpu is None))


def size_on(milli: Mapping[str, Milli], kind: str) -> Milli:
    """Thousandths of a GPU of that kind that a share takes; 0 if it cannot use the kind."""
    return milli.get(kind, milli.get(ANY, 0))


class _Pool:
    """Counts equal items and equal GPUs for the search, and restores their names afterwards."""

    def __init__(self, items: Sequence[Item], free: Sequence[FreeGPU], openable: frozenset[str] | None) -> None:
        named = {kind for item in items for kind in item.milli} | {gpu.kind for gpu in free}
        self._kinds = sorted(named | (openable or set()))
        self._openable = [kind for kind in self._kinds if openable is None or kind in openable]
        by_mapping: dict[int, Sizes] = {}
        grouped: dict[Sizes, list[str]] = defaultdict(list)
        for item in items:
            milli = by_mapping.get(id(item.milli))
            if milli is None:
                milli = by_mapping[id(item.milli)] = tuple(sorted(item.milli.items()))
            grouped[milli].append(item.name)
        # Largest items first, for readable output.
        self._milli = sorted(grouped, key=lambda milli: (-max(size for _, size in milli), milli))
        self._names = [grouped[milli] for milli in self._milli]
        self._free = free
        index = {kind: number for number, kind in enumerate(self._kinds)}
        self._counts = ShareCounts(
            items=tuple(
                ({index[kind]: size for kind in self._kinds if (size := size_on(dict(milli), kind))}, len(names))
                for milli, names in zip(self._milli, self._names, strict=True)
            ),
            kinds=len(self._kinds),
            new_kinds=tuple(index[kind] for kind in self._openable),
            supply=Counter((index[gpu.kind], gpu.free) for gpu in free),
        )
        self._problem = self._counts.problem()
        self._bounding = self._counts.bounding()

    def pack(self, effort: Effort) -> Packing:
        if not self._names:
            return Packing()
        found = pack_counts(self._counts, effort)
        packing = Packing(bins=self._bins(found.patterns), best_fit=found.best_fit)
        return self._with_bound(packing, found.bound, found.least)

    def proven(self, packing: Packing, effort: Effort) -> Packing:
        """The packing with a bound for all of these items."""
        return self._with_bound(packing, *prove(self._bounding, self._patterns(packing.bins), effort))

    def _with_bound(self, packing: Packing, bound: Bound, least: int) -> Packing:
        supply = [self._bounding.bin_types[index] for index in self._bounding.supply_types]
        return replace(
            packing,
            lower_bound=bound.value,
            exact=bound.exact,
            least=least,
            prices=tuple(
                Price(milli, len(names), float(dual))
                for milli, names, dual in zip(self._milli, self._names, bound.item_duals, strict=True)
            ),
            supply_prices=tuple(
                SupplyPrice(
                    self._kinds[each.kind],
                    exact_milli(each.capacity, self._bounding.grids[each.kind].gpu),
                    each.count or 0,
                    float(dual),
                )
                for each, dual in zip(supply, bound.supply_duals, strict=True)
            ),
        )

    def _bins(self, patterns: Patterns) -> tuple[Bin, ...]:
        problem = self._problem
        items = [iter(names) for names in self._names]
        gpus: dict[tuple[int, int], list[str]] = defaultdict(list)
        for gpu in self._free:
            kind = self._kinds.index(gpu.kind)
            gpus[kind, problem.grids[kind].free(gpu.free)].append(gpu.name)
        waiting = {key: iter(names) for key, names in gpus.items()}
        bins = []
        for (index, held), count in sorted(patterns.items()):
            bin_type = problem.bin_types[index]
            kinds = self._kinds_for(held) if bin_type.new else (self._kinds[bin_type.kind],)
            for _ in range(count):
                names = [next(items[item]) for item, copies in held for _ in range(copies)]
                holder = None if bin_type.new else next(waiting[bin_type.kind, bin_type.capacity])
                bins.append(Bin(tuple(sorted(names)), holder, kinds))
        return tuple(bins)

    def _patterns(self, bins: Iterable[Bin]) -> Patterns:
        problem = self._bounding
        item_of = {name: item for item, names in enumerate(self._names) for name in names}
        supply_types = {
            (each.kind, each.capacity): index for index, each in enumerate(problem.bin_types) if not each.new
        }
        gpus = {gpu.name: gpu for gpu in self._free}
        patterns: Patterns = Counter()
        for each in bins:
            if each.gpu is None:
                index = next(t for t in problem.new_types if self._kinds[problem.bin_types[t].kind] in each.kinds)
            else:
                gpu = gpus[each.gpu]
                kind = self._kinds.index(gpu.kind)
                index = supply_types[kind, problem.grids[kind].free(gpu.free)]
            held = Counter(item_of[name] for name in each.items)
            patterns[index, tuple(sorted(held.items()))] += 1
        return patterns

    def _kinds_for(self, held: Sequence[tuple[int, int]]) -> tuple[str, ...]:
        return tuple(
            kind for kind in self._openable for number in (self._kinds.index(kind),) if self._problem.fits(number, held)
        )
