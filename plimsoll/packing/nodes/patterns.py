"""Pods packed onto GPUs by patterns, and the GPUs onto nodes of shapes that an integer program chose.

Column generation says which shares go together on one GPU. Pods of equal shares can stand in for each other there, so
they are dealt such that CPU and memory are spread evenly.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.packing.gpus import Effort, Found, ShareCounts, pack_counts
from plimsoll.packing.nodes.bounding import Bounds, bounds
from plimsoll.packing.nodes.filling import Ask
from plimsoll.packing.nodes.heuristic import Heuristic
from plimsoll.packing.nodes.need import FreeNode, NodeShape
from plimsoll.packing.nodes.placing import Placing, Stock
from plimsoll.packing.nodes.shapes import Load, ShapeChoice
from plimsoll.packing.units import GPU_MILLI, Milli, exact_milli

_HEADROOM = (0.0, 0.08, 0.02, 0.3, 0.01, 0.04, 0.16, 1.0)
"""Parts of CPU and memory that shapes are chosen to have above what is needed, one after the other."""

_Sizes = tuple[tuple[str, Milli], ...]
_FreePart = tuple[int, int]
"""(kind, free units)"""


def by_patterns(stock: Stock, effort: Effort, without: Collection[Heuristic]) -> tuple[Bounds, Iterator[Placing]]:
    """The bound, and ways to place all pods, the best not first."""
    base = Placing(stock.empty())
    stock.place_several(base)
    alone = [
        _unit(stock, ((number,),) * stock.items[number].devices, base.left.pop(number))
        for number in list(base.left)
        if stock.items[number].whole
    ]
    stock.open(base)
    singles = [number for number, item in enumerate(stock.items) if item.single]
    shared = _Shared(stock, base, singles)
    units = [*alone, *shared.place(effort), *_opened(stock, base)]
    every = len(singles) == len(stock.items) and not shared.loose
    bound = bounds(stock, {}, effort, shared.found if every else None)
    return bound, _OntoShapes(stock, base, units, shared.loose).ways(bound, effort, without)


@dataclass(frozen=True, slots=True)
class _Unit:
    """GPUs of one node with what they are to hold; nobody else shares them."""

    ask: Ask
    count: int

    @property
    def kinds(self) -> frozenset[int]:
        return frozenset(kind for kind, size in enumerate(self.ask.sizes) if size)


def _unit(stock: Stock, gpus: Sequence[tuple[int, ...]], count: int) -> _Unit:
    """The unit of these items by GPU; an item of several devices stands on several GPUs and counts once."""
    copies = Counter(item for items in gpus for item in items)
    pods = {item: number // stock.items[item].devices for item, number in copies.items()}
    whole = stock.grid.gpu
    sizes = tuple(whole if stock.holds(kind, gpus) else 0 for kind in range(len(stock.kinds)))
    reserved = sum(any(not stock.items[item].whole for item in items) for items in gpus)
    ask = Ask(
        sizes,
        tuple(gpus),
        sum(stock.items[item].cpu_milli * number for item, number in pods.items()),
        sum(stock.items[item].memory_mib * number for item, number in pods.items()),
        sum(pods.values()) + reserved,
        shares=False,
    )
    return _Unit(ask, count)


def _opened(stock: Stock, base: Placing) -> Iterator[_Unit]:
    """The GPUs in use of the new nodes of pods on several GPUs; these nodes are taken out."""
    for at in list(base.shapes):
        row = base.filling.row(at)
        if row.count and any(row.held):
            yield _unit(stock, [items for items in row.held if items], row.count)
        base.filling.drop(at)
        del base.shapes[at]


class _Shared:
    """Pods with one share each, on free GPUs, on GPUs that others opened, and on new ones."""

    def __init__(self, stock: Stock, base: Placing, singles: Sequence[int]) -> None:
        self._stock = stock
        self._base = base
        self.loose: dict[int, int] = defaultdict(int)
        """Items whose pods CPU or memory keeps from where they were packed."""
        self.found: Found | None = None
        """How the shares are packed, and the bound of that."""
        self._of_size: dict[_Sizes, list[int]] = defaultdict(list)
        for number in singles:
            if not stock.fitting[number]:
                # No new GPU may take these, so they come first on free ones.
                left = base.filling.place(stock.asks[number], stock.items[number].count)
                base.unplaced |= {number: left} if left else {}
                continue
            self._of_size[stock.items[number].milli].append(number)
        self._sizes = sorted(self._of_size)
        self._free: dict[_FreePart, list[tuple[int, int]]] = defaultdict(list)
        """(row, GPU) by kind and free units, as patterns count them."""
        self._taken: set[tuple[int, int]] = set()
        self._left = {number: stock.items[number].count for of_size in self._of_size.values() for number in of_size}

    def place(self, effort: Effort) -> list[_Unit]:
        """Fills GPUs that are partly free; the units of whole ones."""
        if not self._sizes:
            return []
        stock = self._stock
        units: Counter[tuple[int, int]] = Counter()
        for at, row in self._base.filling.rows():
            for free, items in zip(row.gpus, row.held, strict=True):
                if free > 0 and (items or at not in self._base.shapes):
                    units[row.kind, free] += row.count
        supply = {(kind, exact_milli(free, stock.grid.gpu)): count for (kind, free), count in units.items()}
        counts = ShareCounts(
            items=tuple(
                ({stock.kind[kind]: size for kind, size in sizes}, sum(self._left[n] for n in self._of_size[sizes]))
                for sizes in self._sizes
            ),
            kinds=len(stock.kinds),
            new_kinds=stock.new_kinds,
            supply=supply,
        )
        problem = counts.problem()
        self._grids = [grid.gpu for grid in problem.grids]
        for at, _ in list(self._base.filling.rows()):
            self._index(at)
        found = self.found = pack_counts(counts, effort)
        whole: list[tuple[tuple[tuple[int, int], ...], int]] = []
        for (index, held), count in sorted(found.patterns.items()):
            of = problem.bin_types[index]
            if of.capacity == self._grids[of.kind]:
                whole.append((held, count))  # new, or wholly free: it does not matter which of the GPUs it is
            else:
                for _ in range(count):
                    self._onto_free((of.kind, of.capacity), held)
        return self._units(whole)

    def _onto_free(self, key: _FreePart, held: Sequence[tuple[int, int]]) -> None:
        """One pattern onto a free GPU of that kind and size."""
        filling = self._base.filling
        at, gpu = self._take(key)
        for size, copies in held:
            for _ in range(copies):
                fitting = (
                    number
                    for number in self._heaviest(size)
                    if self._left[number] and filling.put_on(at, (gpu,), self._stock.asks[number])
                )
                number = next(fitting, None)
                if number is None:
                    self._loosen(size, 1)
                else:
                    self._left[number] -= 1

    def _index(self, at: int) -> None:
        """Notes the free GPUs of a row by kind and size."""
        row = self._base.filling.row(at)
        for gpu, (free, items) in enumerate(zip(row.gpus, row.held, strict=True)):
            if free > 0 and (items or at not in self._base.shapes):
                self._free[row.kind, self._units_of(row.kind, free)].append((at, gpu))

    def _units_of(self, kind: int, free: int) -> int:
        return free * self._grids[kind] // self._stock.grid.gpu

    def _take(self, key: _FreePart) -> tuple[int, int]:
        """A node of which such a GPU is free, alone in its row, and the GPU."""
        filling, places = self._base.filling, self._free[key]
        while True:
            at, gpu = places[-1]
            row = filling.row(at)
            if not row.count or (at, gpu) in self._taken:
                places.pop()
                continue
            alone = filling.split(at)
            if alone != at:
                if at in self._base.shapes:
                    self._base.shapes[alone] = self._base.shapes[at]
                self._index(alone)
            self._taken.add((alone, gpu))
            return alone, gpu

    def _heaviest(self, size: int) -> list[int]:
        items = self._stock.items
        return sorted(
            self._of_size[self._sizes[size]], key=lambda each: (-items[each].cpu_milli, -items[each].memory_mib, each)
        )

    def _loosen(self, size: int, copies: int) -> None:
        for number in reversed(self._heaviest(size)):
            taken = min(copies, self._left[number])
            if taken:
                self._left[number] -= taken
                self.loose[number] += taken
                copies -= taken

    def _units(self, new: Sequence[tuple[tuple[tuple[int, int], ...], int]]) -> list[_Unit]:
        """Pods dealt to the patterns of new GPUs, so that none is much heavier on CPU and memory than others."""
        if all(sum(self._left[number] > 0 for number in self._of_size[size]) <= 1 for size in self._sizes):
            dealt = Counter[tuple[int, ...]]()
            only = [next((n for n in self._of_size[size] if self._left[n] > 0), -1) for size in self._sizes]
            for held, count in new:
                dealt[tuple(only[size] for size, copies in held for _ in range(copies))] += count
        else:
            dealt = Counter(tuple(sorted(items)) for items in self._dealt(new))
        units = []
        for items, count in sorted(dealt.items()):
            kept = list(items)
            while kept and not self._fits(unit := _unit(self._stock, [tuple(kept)], count)):
                heaviest = max(kept, key=lambda n: (self._stock.items[n].cpu_milli, self._stock.items[n].memory_mib, n))
                kept.remove(heaviest)
                self.loose[heaviest] += count
            if kept:
                units.append(unit)
        return units

    def _fits(self, unit: _Unit) -> bool:
        stock = self._stock
        nodes: Iterable[NodeShape | FreeNode] = (*stock.shapes, *(node for node, _ in stock.free))
        return any(_takes(stock, unit, node) for node in nodes)

    def _dealt(self, new: Sequence[tuple[tuple[tuple[int, int], ...], int]]) -> list[list[int]]:
        stock = self._stock
        cpu = max((shape.cpu_milli / shape.gpus for shape in stock.shapes), default=1) or 1
        memory = max((shape.memory_mib / shape.gpus for shape in stock.shapes), default=1) or 1
        bins = [held for held, count in new for _ in range(count)]
        load, dealt = [0.0] * len(bins), [list[int]() for _ in bins]
        slots: dict[int, dict[int, int]] = defaultdict(dict)
        for number, held in enumerate(bins):
            for size, copies in held:
                slots[size][number] = copies
        # The largest shares first: they have the fewest bins to choose from.
        for size in sorted(slots, key=lambda each: (-max(milli for _, milli in self._sizes[each]), each)):
            free = slots[size]
            waiting = [(load[number], number) for number in free]
            heapq.heapify(waiting)
            for item in self._heaviest(size):
                weight = stock.items[item].cpu_milli / cpu + stock.items[item].memory_mib / memory
                for _ in range(self._left[item]):
                    _, number = heapq.heappop(waiting)
                    dealt[number].append(item)
                    load[number] += weight
                    free[number] -= 1
                    if free[number]:
                        heapq.heappush(waiting, (load[number], number))
        return dealt


def _takes(stock: Stock, unit: _Unit, node: NodeShape | FreeNode) -> bool:
    """Whether the GPUs of the node that are wholly free are enough, and its CPU, memory and pods."""
    ask = unit.ask
    whole = node.gpus if isinstance(node, NodeShape) else node.gpus.count(GPU_MILLI)
    return (
        bool(ask.sizes[stock.kind[node.kind]])
        and whole >= len(ask.held)
        and node.cpu_milli >= ask.cpu_milli
        and node.memory_mib >= ask.memory_mib
        and node.pods >= ask.pods
    )


class _OntoShapes:
    """Units on free nodes and on new ones, whose shapes are chosen for all of them at once."""

    def __init__(self, stock: Stock, base: Placing, units: Sequence[_Unit], loose: Mapping[int, int]) -> None:
        self._stock = stock
        self._base = base
        self._units = sorted(units, key=_large_first)
        self._loose = loose

    def ways(self, bound: Bounds, effort: Effort, without: Collection[Heuristic]) -> Iterator[Placing]:
        """With more and more headroom, as CPU and memory cannot be cut at will."""
        least: int | None = None
        for headroom in _HEADROOM[:1] if Heuristic.HEADROOM in without else _HEADROOM:
            chosen = self._chosen(headroom, bound.least)
            for evenly in (False,) if Heuristic.EVENLY in without else (True, False):
                effort.spend(1e-4 * len(self._units))
                found = self._filled(chosen, evenly)
                least = found.cost[1] if least is None else min(least, found.cost[1])
                yield found
                if effort.exhausted:
                    return

    def _filled(self, chosen: Sequence[tuple[int, int]], evenly: bool) -> Placing:
        stock, base = self._stock, self._base
        placing = Placing(base.filling.copy(), unplaced=dict(base.unplaced))
        filling = placing.filling
        for shape, count in chosen:
            stock.add_new(placing, shape, count)
        gpus = sum(len(unit.ask.held) * unit.count for unit in self._units) or 1
        need = (
            sum(unit.ask.cpu_milli * unit.count for unit in self._units) / gpus,
            sum(unit.ask.memory_mib * unit.count for unit in self._units) / gpus,
        )
        rest: Counter[int] = Counter(self._loose)
        for unit in self._units:
            ask = unit.ask
            homeless = filling.spread(ask, unit.count, need) if evenly else filling.place(ask, unit.count)
            if homeless:
                for item, number in Counter(item for items in ask.held for item in items).items():
                    rest[item] += homeless * number // stock.items[item].devices
        placing.note_shapes()
        placing.left = {item: rest[item] for item in stock.large_first(rest) if rest[item]}
        stock.open(placing)
        return stock.finished(placing)

    def _chosen(self, headroom: float, least: int) -> list[tuple[int, int]]:
        """Shapes that have, with what is free, enough of everything for the units in all, and how many of each."""
        stock, base, units = self._stock, self._base, self._units
        loads = [
            Load(
                tuple(stock.kinds[kind] for kind in sorted(unit.kinds)),
                frozenset(shape.name for shape in stock.shapes if _takes(stock, unit, shape)),
                GPU_MILLI * len(unit.ask.held),
                len(unit.ask.held),
                int(unit.ask.cpu_milli * (1 + headroom)),
                int(unit.ask.memory_mib * (1 + headroom)),
                1000 * unit.ask.pods,
                unit.count,
            )
            for unit in units
        ]
        free = []
        for _, row in base.filling.rows():
            gpus = (GPU_MILLI,) * row.gpus.count(stock.grid.gpu)
            if gpus:
                node = FreeNode("", stock.kinds[row.kind], gpus, row.cpu_milli, row.memory_mib, row.pods)
                free.append((node, row.count))
        if not loads or not stock.shapes:
            return []
        choice = ShapeChoice(loads, stock.shapes, free)
        for limit in stock.limits:
            choice.limit(limit.left, limit.uses)
        choice.require(least)
        needed = {
            tuple(sorted(load.shapes))
            for load, unit in zip(loads, units, strict=True)
            if load.shapes and not base.filling.takes(unit.ask)
        }
        for names in sorted(needed):
            choice.require_one_of(names)
        number = {shape.name: at for at, shape in enumerate(stock.shapes)}
        return [(number[name], count) for name, count in sorted(choice.choose().items())]


def _large_first(unit: _Unit) -> tuple[object, ...]:
    return (-len(unit.ask.held), len(unit.kinds), -unit.ask.cpu_milli, -unit.ask.memory_mib, unit.ask.held)
