"""Packs pods onto GPUs by patterns, and these GPUs onto nodes whose shapes an integer program chooses.

Column generation finds which shares use one GPU together. Pods with equal shares can replace each other in the
patterns, so they are assigned such that CPU and memory are spread evenly.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.packing.gpus import Effort, Found, ShareCounts, pack_counts
from plimsoll.packing.nodes.bounding import Bounds, bounds
from plimsoll.packing.nodes.filling import PlacementRequest
from plimsoll.packing.nodes.heuristic import Heuristic
from plimsoll.packing.nodes.need import HOST, FreeNode, NodeShape
from plimsoll.packing.nodes.placing import NodeProblem, Placing
from plimsoll.packing.nodes.shapes import Load, ShapeChoice
from plimsoll.packing.units import GPU_MILLI, Milli, exact_milli

_HEADROOM = (0.0, 0.08, 0.02, 0.3, 0.01, 0.04, 0.16, 1.0)
"""Fractions of CPU and memory by which the chosen shapes exceed the need, in the order in which they are tried."""

_Sizes = tuple[tuple[str, Milli], ...]
_FreePart = tuple[int, int]
"""(kind, free units)"""


def by_patterns(
    problem: NodeProblem, effort: Effort, without: Collection[Heuristic]
) -> tuple[Bounds, Iterator[Placing]]:
    """The bounds, and ways to place all pods; the first is not always the best."""
    base = Placing(problem.empty())
    problem.place_several(base)
    alone = [
        _unit(problem, ((number,),) * problem.items[number].devices, base.left.pop(number))
        for number in list(base.left)
        if problem.items[number].whole
    ]
    problem.open(base)
    base.note_shapes()
    singles = [number for number, item in enumerate(problem.items) if item.single]
    shared = _Shared(problem, base, singles)
    units = [*alone, *shared.place(effort), *_opened(problem, base)]
    # Pods that fit no new node were placed before the others, and could be elsewhere.
    every = len(singles) == len(problem.items) and all(problem.fitting) and not shared.displaced
    bound = bounds(problem, {}, effort, shared.found if every else None)
    return bound, _OntoShapes(problem, base, units, shared.displaced).ways(bound, effort, without)


@dataclass(frozen=True, slots=True)
class _Unit:
    """GPUs of one node with the pods to place on them. No other pods use these GPUs."""

    request: PlacementRequest
    count: int

    @property
    def kinds(self) -> frozenset[int]:
        return frozenset(kind for kind, size in enumerate(self.request.sizes) if size)


def _unit(problem: NodeProblem, gpus: Sequence[tuple[int, ...]], count: int) -> _Unit:
    """The unit of these items, listed by GPU. An item that uses several GPUs is listed on each and counts once."""
    copies = Counter(item for items in gpus for item in items)
    pods = {item: number // problem.items[item].devices for item, number in copies.items()}
    sizes = tuple(grid.gpu if problem.holds(kind, gpus) else 0 for kind, grid in enumerate(problem.grids))
    reserved = sum(any(not problem.items[item].whole for item in items) for items in gpus)
    request = PlacementRequest(
        sizes,
        tuple(gpus),
        sum(problem.items[item].cpu_milli * number for item, number in pods.items()),
        sum(problem.items[item].memory_mib * number for item, number in pods.items()),
        sum(pods.values()) + reserved,
        shares=False,
        scheduler=max(problem.requests[item].scheduler for item in pods),
        storage_mib=sum(problem.items[item].storage_mib * number for item, number in pods.items()),
    )
    return _Unit(request, count)


def _opened(problem: NodeProblem, base: Placing) -> Iterator[_Unit]:
    """The used GPUs of new nodes with pods on several GPUs, as units. Their nodes are removed from `base`."""
    for at in list(base.shapes):
        row = base.filling.row(at)
        if row.count and any(row.held):
            yield _unit(problem, [items for items in row.held if items], row.count)
        base.filling.drop(at)
        del base.shapes[at]


class _Shared:
    """Pods with one share each: on free GPUs, on used GPUs of new nodes, and on further new GPUs."""

    def __init__(self, problem: NodeProblem, base: Placing, singles: Sequence[int]) -> None:
        self._problem = problem
        self._base = base
        self.displaced: dict[int, int] = defaultdict(int)
        """Pods by item for which the GPU of their pattern lacks CPU or memory. Best fit places them later."""
        self.found: Found | None = None
        """The packing of the shares, with its bound."""
        self._of_size: dict[_Sizes, list[int]] = defaultdict(list)
        for number in singles:
            if not problem.fitting[number]:
                # These fit no new GPU, so they are placed on free GPUs first.
                left = base.filling.place(problem.requests[number], problem.items[number].count)
                base.unplaced |= {number: left} if left else {}
                continue
            self._of_size[problem.items[number].milli].append(number)
        self._sizes = sorted(self._of_size)
        self._free: dict[_FreePart, list[tuple[int, int]]] = defaultdict(list)
        """(row, GPU) by kind and free units, as patterns count them."""
        self._taken: set[tuple[int, int]] = set()
        self._left = {number: problem.items[number].count for of_size in self._of_size.values() for number in of_size}

    def place(self, effort: Effort) -> list[_Unit]:
        """Fills partly free GPUs. Returns the units for whole GPUs."""
        if not self._sizes:
            return []
        problem = self._problem
        units: Counter[tuple[int, int]] = Counter()
        for at, row in self._base.filling.rows():
            for free, items in zip(row.gpus, row.held, strict=True):
                if free > 0 and (items or at not in self._base.shapes):
                    units[row.kind, free] += row.count
        supply = {(kind, exact_milli(free, problem.grids[kind].gpu)): count for (kind, free), count in units.items()}
        counts = ShareCounts(
            items=tuple(
                ({problem.kind[kind]: size for kind, size in sizes}, sum(self._left[n] for n in self._of_size[sizes]))
                for sizes in self._sizes
            ),
            kinds=len(problem.kinds),
            new_kinds=problem.new_kinds,
            supply=supply,
        )
        shares = counts.problem()
        self._grids = [grid.gpu for grid in shares.grids]
        for at, _ in list(self._base.filling.rows()):
            self._index(at)
        found = self.found = pack_counts(counts, effort)
        whole: list[tuple[tuple[tuple[int, int], ...], int]] = []
        for (index, held), count in sorted(found.patterns.items()):
            gpu = shares.bin_types[index]
            if gpu.capacity == self._grids[gpu.kind]:
                whole.append((held, count))  # new, or wholly free: it does not matter which of the GPUs it is
            else:
                for _ in range(count):
                    self._onto_free((gpu.kind, gpu.capacity), held)
        return self._units(whole)

    def _onto_free(self, key: _FreePart, held: Sequence[tuple[int, int]]) -> None:
        """Places one pattern on a free GPU of that kind with that many free units."""
        filling = self._base.filling
        at, gpu = self._take(key)
        for size, copies in held:
            for _ in range(copies):
                fitting = (
                    number
                    for number in self._by_host_resources(size)
                    if self._left[number] and filling.put_on(at, (gpu,), self._problem.requests[number])
                )
                number = next(fitting, None)
                if number is None:
                    self._displace(size, 1)
                else:
                    self._left[number] -= 1

    def _index(self, at: int) -> None:
        """Indexes the free GPUs of a row by kind and free units."""
        row = self._base.filling.row(at)
        for gpu, (free, items) in enumerate(zip(row.gpus, row.held, strict=True)):
            if free > 0 and (items or at not in self._base.shapes):
                units = free * self._grids[row.kind] // self._problem.grids[row.kind].gpu
                self._free[row.kind, units].append((at, gpu))

    def _take(self, key: _FreePart) -> tuple[int, int]:
        """The row and the index of such a free GPU. The node is alone in its row."""
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

    def _by_host_resources(self, size: int) -> list[int]:
        """The items of a size, highest CPU first, then highest memory."""
        items = self._problem.items
        return sorted(
            self._of_size[self._sizes[size]], key=lambda each: (-items[each].cpu_milli, -items[each].memory_mib, each)
        )

    def _displace(self, size: int, copies: int) -> None:
        """Moves this many pods of a size to `displaced`, those with the least CPU and memory first."""
        for number in reversed(self._by_host_resources(size)):
            taken = min(copies, self._left[number])
            if taken:
                self._left[number] -= taken
                self.displaced[number] += taken
                copies -= taken

    def _units(self, new: Sequence[tuple[tuple[tuple[int, int], ...], int]]) -> list[_Unit]:
        """Units of new GPUs: pods are assigned to patterns such that no unit needs much more CPU and memory than
        others."""
        if all(sum(self._left[number] > 0 for number in self._of_size[size]) <= 1 for size in self._sizes):
            assigned = Counter[tuple[int, ...]]()
            only = [next((n for n in self._of_size[size] if self._left[n] > 0), -1) for size in self._sizes]
            for held, count in new:
                assigned[tuple(only[size] for size, copies in held for _ in range(copies))] += count
        else:
            assigned = Counter(tuple(sorted(items)) for items in self._distributed(new))
        units = []
        for items, count in sorted(assigned.items()):
            kept = list(items)
            while kept and not self._fits(unit := _unit(self._problem, [tuple(kept)], count)):
                largest = max(
                    kept, key=lambda n: (self._problem.items[n].cpu_milli, self._problem.items[n].memory_mib, n)
                )
                kept.remove(largest)
                self.displaced[largest] += count
            if kept:
                units.append(unit)
        return units

    def _fits(self, unit: _Unit) -> bool:
        problem = self._problem
        nodes: Iterable[NodeShape | FreeNode] = (*problem.shapes, *(node for node, _ in problem.free))
        return any(problem.fits_empty(unit.request, node) for node in nodes)

    def _distributed(self, new: Sequence[tuple[tuple[tuple[int, int], ...], int]]) -> list[list[int]]:
        """The items on each new GPU: each pod goes to the GPU with a slot of its size that has the lowest load so far.

        The load is the pod's CPU and memory as fractions of what the largest shape has for each GPU.
        """
        problem = self._problem
        cpu = max((shape.cpu_milli / shape.devices for shape in problem.shapes), default=1) or 1
        memory = max((shape.memory_mib / shape.devices for shape in problem.shapes), default=1) or 1
        bins = [held for held, count in new for _ in range(count)]
        load, assigned = [0.0] * len(bins), [list[int]() for _ in bins]
        slots: dict[int, dict[int, int]] = defaultdict(dict)
        for number, held in enumerate(bins):
            for size, copies in held:
                slots[size][number] = copies
        # Largest shares first: fewer bins have room for them.
        for size in sorted(slots, key=lambda each: (-max(milli for _, milli in self._sizes[each]), each)):
            free = slots[size]
            waiting = [(load[number], number) for number in free]
            heapq.heapify(waiting)
            for item in self._by_host_resources(size):
                weight = problem.items[item].cpu_milli / cpu + problem.items[item].memory_mib / memory
                for _ in range(self._left[item]):
                    _, number = heapq.heappop(waiting)
                    assigned[number].append(item)
                    load[number] += weight
                    free[number] -= 1
                    if free[number]:
                        heapq.heappush(waiting, (load[number], number))
        return assigned


class _OntoShapes:
    """Places units on free nodes and on new ones, whose shapes are chosen for all units together."""

    def __init__(
        self, problem: NodeProblem, base: Placing, units: Sequence[_Unit], displaced: Mapping[int, int]
    ) -> None:
        self._problem = problem
        self._base = base
        self._units = sorted(units, key=_large_first)
        self._displaced = displaced

    def ways(self, bound: Bounds, effort: Effort, without: Collection[Heuristic]) -> Iterator[Placing]:
        """Placings with increasing spare CPU and memory, because units cannot be split between nodes."""
        for headroom in _HEADROOM[:1] if Heuristic.HEADROOM in without else _HEADROOM:
            chosen = self._chosen(headroom, bound.least)
            for evenly in (False,) if Heuristic.EVENLY in without else (True, False):
                effort.spend(1e-4 * len(self._units))
                yield self._filled(chosen, evenly)
                if effort.exhausted:
                    return

    def _filled(self, chosen: Sequence[tuple[int, int]], evenly: bool) -> Placing:
        problem, base = self._problem, self._base
        placing = Placing(base.filling.copy(), unplaced=dict(base.unplaced))
        filling = placing.filling
        for shape, count in chosen:
            problem.add_new(placing, shape, count)
        gpus = sum(len(unit.request.held) * unit.count for unit in self._units) or 1
        need = (
            sum(unit.request.cpu_milli * unit.count for unit in self._units) / gpus,
            sum(unit.request.memory_mib * unit.count for unit in self._units) / gpus,
        )
        rest: Counter[int] = Counter(self._displaced)
        for unit in self._units:
            request = unit.request
            unplaced = filling.spread(request, unit.count, need) if evenly else filling.place(request, unit.count)
            if unplaced:
                for item, number in Counter(item for items in request.held for item in items).items():
                    rest[item] += unplaced * number // problem.items[item].devices
        placing.note_shapes()
        placing.left = {item: rest[item] for item in problem.large_first(rest) if rest[item]}
        problem.open(placing)
        return problem.finished(placing)

    def _chosen(self, headroom: float, least: int) -> list[tuple[int, int]]:
        """The number of nodes of each shape such that, together with free nodes, the sums of all resources suffice for
        the units."""
        problem, base, units = self._problem, self._base, self._units
        loads = [
            Load(
                tuple(problem.kinds[kind] for kind in sorted(unit.kinds)),
                frozenset(shape.name for shape in problem.shapes if problem.fits_empty(unit.request, shape)),
                GPU_MILLI * len(unit.request.held),
                len(unit.request.held),
                int(unit.request.cpu_milli * (1 + headroom)),
                int(unit.request.memory_mib * (1 + headroom)),
                int(unit.request.storage_mib * (1 + headroom)),
                1000 * unit.request.pods,
                unit.count,
            )
            for unit in units
        ]
        free = []
        for _, row in base.filling.rows():
            gpus = (GPU_MILLI,) * row.gpus.count(problem.grids[row.kind].gpu)
            if gpus:
                host = {name: getattr(row, name) for name in (*HOST, "pods")}
                node = FreeNode("", problem.kinds[row.kind], gpus, **host)
                free.append((node, row.count))
        if not loads or not problem.shapes:
            return []
        choice = ShapeChoice(loads, problem.shapes, free)
        for limit in problem.limits:
            choice.limit(limit.left, limit.uses)
        choice.require(least)
        needed = {
            tuple(sorted(load.shapes))
            for load, unit in zip(loads, units, strict=True)
            if load.shapes and not base.filling.fits(unit.request)
        }
        for names in sorted(needed):
            choice.require_one_of(names)
        number = {shape.name: at for at, shape in enumerate(problem.shapes)}
        return [(number[name], count) for name, count in sorted(choice.choose().items())]


def _large_first(unit: _Unit) -> tuple[object, ...]:
    return (
        -len(unit.request.held),
        len(unit.kinds),
        -unit.request.cpu_milli,
        -unit.request.memory_mib,
        unit.request.held,
    )
