"""Packs pods by patterns of whole nodes, if CPU, memory or storage is as scarce as GPUs.

Column generation (Gilmore and Gomory, 1961) over the GPUs of a node and the scarcest of CPU, memory and storage. The
others of these and the number of pods are checked when nodes are filled.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plimsoll.packing.gpus import BinType, Effort, Master, Pattern, Problem
from plimsoll.packing.nodes.need import HOST
from plimsoll.packing.nodes.node_pricing import FEW_LABELS, MANY_LABELS, Counts, PricedItems, Room, Sizes, Values
from plimsoll.packing.nodes.placing import NodeProblem, Placing
from plimsoll.packing.units import GPU_MILLI, Grid, Milli, exact_milli

_MOST_UNITS = 1024
"""Maximum units of a GPU. Shares that are not whole then are rounded down, so that the bound holds."""
_ROUNDS = 30
"""Minimum number of pricing rounds for which there must be time."""
_GENERATION_SHARE = 0.75
"""Fraction of the time limit for the linear program; the rest is for whole nodes."""
_SMOOTHING = 0.6
"""Weight of the duals with the best bound, which smooth those of the program (Wentges, 1997)."""
_ROUNDS_OF_A_STEP = 6
"""Number of pricing rounds after nodes were fixed."""
_PRICE_WEIGHT = 1e-4
"""Weight of the price relative to the number of GPUs."""
_GAIN = 1e-7
"""A pattern must improve the objective by more than this."""
_WHOLE = 1e-6
"""Tolerance for the solver's rounding: a value this close to a whole number is that number."""


def by_node_patterns(problem: NodeProblem, best: Placing, effort: Effort) -> tuple[int, Iterator[Placing]]:
    """A lower bound of the GPUs of new nodes that all pods need, and a way to place them, computed when it is used.

    `best` is the best known placing. (0, nothing) if there is no time.
    """
    search = _Search(problem, best, effort)
    if search.work * _ROUNDS > effort.left:
        return 0, iter(())
    search.generate()
    return search.least(), search.placings()


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Equal nodes: new ones of a shape, or existing ones of a row."""

    kind: int
    gpus: tuple[Milli, ...]
    """Free thousandths of each GPU."""
    amount: int
    """CPU in millicores, or memory or storage in MiB, whichever is scarcest."""
    shape: int = -1
    """Number of the shape; -1 for existing nodes."""
    row: int = -1
    """Number of the row in the filling; -1 for new nodes."""
    count: int | None = None
    """Number of existing nodes; None for new ones."""
    cost: float = 0.0
    """Cost of a new node: its GPUs, and a little for its price."""


class _Search:
    """The linear program over patterns of nodes, and the search for whole nodes."""

    def __init__(self, problem: NodeProblem, best: Placing, effort: Effort) -> None:
        self._problem = problem
        self._effort = effort
        self._host = _scarcest(problem)
        self._base = Placing(problem.empty())
        self._place_on_free_nodes()
        self._nodes = list(self._all_nodes())
        kinds = sorted({each.kind for each in self._nodes})
        grids = {kind: self._grid(kind) for kind in kinds}
        self._rooms = [_room(each, grids[each.kind]) for each in self._nodes]
        self._most: dict[tuple[int, int], int] = {}
        """CPU or memory of the largest node of each kind and shape."""
        for each in self._nodes:
            self._most[each.kind, each.shape] = max(each.amount, self._most.get((each.kind, each.shape), 0))
        alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for number, fitting in enumerate(problem.fitting):
            of_node = problem.items[number].devices
            alike[fitting, of_node, tuple(self._size(number, kind, grids[kind]) for kind in kinds)].append(number)
        self._items = list(alike.values())
        """Numbers of the problem's items that are equal on a grid, and are counted as one item here."""
        firsts = [problem.items[members[0]] for members in self._items]
        self._parts = np.array([1 if item.whole else item.devices for item in firsts], dtype=np.int64)
        """Copies by which each pod is counted: shares of several GPUs are counted as a pod for each GPU."""
        self._sizes: dict[int, Sizes] = {}
        for kind in kinds:
            table = np.array([self._size(members[0], kind, grids[kind]) for members in self._items], dtype=np.int64)
            units, devices, amounts = table.reshape(-1, 3).T
            self._sizes[kind] = Sizes(units, devices, amounts, grids[kind].gpu)
        counts = [
            sum(problem.items[number].count for number in members if problem.fitting[number]) for members in self._items
        ]
        # Of this problem, the master uses demand, supply and costs only. Sizes are those of `self._sizes`.
        self._patterns = Problem(
            sizes=np.zeros((1, len(counts)), dtype=np.int64),
            demand=np.array(counts, dtype=np.int64) * self._parts,
            bin_types=tuple(BinType(each.kind, 0, each.count, each.cost) for each in self._nodes),
        )
        self._demand = self._patterns.demand
        self._proven: tuple[Values, Values] = np.zeros(len(counts)), np.zeros(len(self._patterns.supply))
        """The duals that prove the best bound: of items, and of free nodes."""
        self._bound = 0.0
        self._master = Master(self._patterns)
        self._master.add(sorted({*self._alone(), *self._of_placing(best)}))

    def _place_on_free_nodes(self) -> None:
        """Places the pods that fit no new node on free nodes by best fit. Other pods can use new nodes instead."""
        for number in self._problem.large_first(at for at, shapes in enumerate(self._problem.fitting) if not shapes):
            left = self._base.filling.place(self._problem.requests[number], self._problem.items[number].count)
            self._base.unplaced |= {number: left} if left else {}

    def _size(self, number: int, kind: int, grid: Grid) -> tuple[int, int, int]:
        """Size of one copy of an item on a kind of node: units of each GPU, number of GPUs, and CPU or memory."""
        item = self._problem.items[number]
        milli = dict(item.milli).get(self._problem.kinds[kind])
        parts = 1 if item.whole else item.devices
        units = 0 if milli is None else grid.size(milli)
        return units, item.devices // parts, getattr(item, self._host) // parts

    @property
    def work(self) -> float:
        """Approximate seconds of a pricing round; infinite if shares are too small for the units."""
        for number, item in enumerate(self._problem.items):
            if self._problem.fitting[number] and not all(
                self._sizes[self._problem.kind[kind]].whole * size >= GPU_MILLI
                for kind, size in item.milli
                if self._problem.kind[kind] in self._sizes
            ):
                return math.inf
        return 1e-4 * len(self._items) * len(self._sizes) + 5e-4 * sum(len(room.gpus) for room in self._rooms)

    def _all_nodes(self) -> Iterator[_Nodes]:
        problem = self._problem
        dearest = max((shape.price or 0.0 for shape in problem.shapes), default=0.0) or 1.0
        for number, shape in enumerate(problem.shapes):
            cost = shape.gpus * (1 + _PRICE_WEIGHT * (shape.price or 0.0) / dearest)
            gpus = (GPU_MILLI,) * shape.devices
            yield _Nodes(problem.kind[shape.kind], gpus, getattr(shape, self._host), shape=number, cost=cost)
        for at, row in self._base.filling.rows():
            free = tuple(exact_milli(units, problem.grids[row.kind].gpu) for units in row.gpus)
            yield _Nodes(row.kind, free, getattr(row, self._host), row=at, count=row.count)

    def _grid(self, kind: int) -> Grid:
        name = self._problem.kinds[kind]
        sizes = (dict(item.milli)[name] for item in self._problem.items if name in dict(item.milli))
        return Grid(sizes, _MOST_UNITS, optimistic=True)

    def _alone(self) -> Iterator[Pattern]:
        """A node with each item alone, so that the program has a solution."""
        for item, members in enumerate(self._items):
            if shapes := self._problem.fitting[members[0]]:
                yield shapes[0], ((item, int(self._parts[item])),)

    def _of_placing(self, best: Placing) -> Iterator[Pattern]:
        """The patterns of the new nodes of a placing."""
        item_of = {member: item for item, members in enumerate(self._items) for member in members}
        number_of = {each.shape: number for number, each in enumerate(self._nodes) if each.shape >= 0}
        for at, shape in best.shapes.items():
            held: Counter[int] = Counter()
            for number in (number for items in best.filling.row(at).held for number in items):
                item = item_of[number]
                if self._problem.fitting[number]:
                    held[item] += 1
            for item in held:
                held[item] = held[item] * int(self._parts[item]) // self._problem.items[self._items[item][0]].devices
            if held and best.filling.row(at).count:
                yield number_of[shape], tuple(sorted(held.items()))

    def generate(self) -> None:
        """Adds patterns until none improves the program, or the time is over."""
        reserve = self._effort.left * (1 - _GENERATION_SHARE)
        while self._solved() and self._effort.left > reserve:
            duals = self._master.item_duals, self._master.supply_duals
            items, supply = (
                _SMOOTHING * old + (1 - _SMOOTHING) * new for old, new in zip(self._proven, duals, strict=True)
            )
            if not (self._add(items, supply) or self._add(*duals) or self._add(*duals, labels=MANY_LABELS)):
                return

    def _solved(self) -> bool:
        solved = self._master.solve()
        self._effort.spend(self._master.work)
        return solved

    def _add(self, duals: Values, of_supply: Values, demand: Counts | None = None, labels: int = FEW_LABELS) -> bool:
        """Adds the patterns that these duals find. Returns whether any improves the program.

        With `demand`, patterns are limited to the remaining demand. Without it, the worth of the best pattern proves a
        bound.
        """
        found: list[Pattern] = []
        most, supplied = 1.0, 0.0
        priced: dict[tuple[int, int], PricedItems] = {}
        worth_of = dict(zip(self._patterns.supply_types, of_supply, strict=True))
        strict = demand is not None
        wanted = self._demand if demand is None else demand
        for number, (nodes, room) in enumerate(zip(self._nodes, self._rooms, strict=True)):
            worth = float(worth_of.get(number, nodes.cost))
            key = nodes.kind, nodes.shape
            if key not in priced:
                largest = Room(room.gpus, self._most[key])
                priced[key] = PricedItems(
                    self._sizes[nodes.kind], duals, wanted, largest, worth, labels=labels, strict=strict
                )
            patterns, at_most = priced[key].patterns(room, worth)
            found += ((number, held) for held in patterns)
            if nodes.count is None:
                most = max(most, at_most / nodes.cost)
            else:
                supplied += at_most * nodes.count
        self._effort.spend(sum(each.work for each in priced.values()))
        if not strict:
            bound = (float(self._demand @ duals) - supplied) / most
            if bound > self._bound:
                self._bound, self._proven = bound, (duals / most, of_supply / most)
        return self._master.add(pattern for pattern in found if self._master.gain(pattern) > _GAIN)

    def least(self) -> int:
        """The proven bound in whole nodes; 0 if pods that fit only free nodes were placed before."""
        if not all(self._problem.fitting):
            return 0
        shapes = self._problem.shapes
        step = math.gcd(*(shape.gpus for shape in shapes))
        dearest = max((each.cost / shapes[each.shape].gpus for each in self._nodes if each.shape >= 0), default=1.0)
        return max(0, math.ceil(self._bound / dearest / (step or 1) - _WHOLE) * step)

    def placings(self) -> Iterator[Placing]:
        """One placing, by diving."""
        yield self._filled(self._dive())

    def _dive(self) -> Counter[Pattern]:
        """Diving to whole nodes: fixes the whole numbers, else the largest fraction, and solves the rest again."""
        demand, supply = self._demand.copy(), self._patterns.supply.copy()
        row_of = {number: row for row, number in enumerate(self._patterns.supply_types)}
        fixed: Counter[Pattern] = Counter()
        self._master.reduce(demand, supply)
        while demand.any() and self._solved():
            for _ in range(_ROUNDS_OF_A_STEP):
                duals = self._master.item_duals, self._master.supply_duals
                if self._effort.exhausted or not self._add(*duals, demand) or not self._solved():
                    break
            activity = self._master.activity
            whole = np.floor(activity + _WHOLE).astype(np.int64)
            if not whole.any():
                whole[np.argmax(activity)] = 1
            for index in np.flatnonzero(whole):
                number, items = self._master.patterns[index]
                for _ in range(int(whole[index])):
                    wanted = tuple((item, min(n, int(demand[item]))) for item, n in items if demand[item])
                    if not wanted or (number in row_of and not supply[row_of[number]]):
                        break
                    if number in row_of:
                        supply[row_of[number]] -= 1
                    fixed[number, wanted] += 1
                    for item, n in wanted:
                        demand[item] -= n
            self._master.reduce(demand, supply)
        return fixed

    def _filled(self, fixed: Counter[Pattern]) -> Placing:
        """The placing with the pods of the patterns. Pods that do not fit after all are left."""
        problem, placing = self._problem, Placing(self._base.filling.copy(), unplaced=dict(self._base.unplaced))
        left = Counter({number: item.count for number, item in enumerate(problem.items) if problem.fitting[number]})
        opened: Counter[int] = Counter()
        first = {members[0]: item for item, members in enumerate(self._items)}
        order = {first[member]: at for at, member in enumerate(problem.large_first(first))}
        for (number, items), count in sorted(fixed.items()):
            nodes = self._nodes[number]
            if nodes.shape < 0:
                rows = [placing.filling.split(nodes.row) for _ in range(count)]
            else:
                allowed = min(count, problem.room(opened, nodes.shape))
                opened[nodes.shape] += allowed
                rows = [problem.add_new(placing, nodes.shape, 1) for _ in range(allowed)]
            for at in rows:
                for item, copies in sorted(items, key=lambda each: order[each[0]]):
                    remaining = copies // int(self._parts[item])
                    for member in self._items[item]:
                        put = placing.filling.put(at, problem.requests[member], min(remaining, left[member]))
                        left[member] -= put
                        remaining -= put
        placing.left = dict(+left)
        placing.note_shapes()
        return placing


def _room(nodes: _Nodes, grid: Grid) -> Room:
    return Room(tuple(sorted((grid.free(free) for free in nodes.gpus), reverse=True)), nodes.amount)


def _scarcest(problem: NodeProblem) -> str:
    """Whichever of CPU, memory and storage is scarcest: the pods need the most of it, relative to the amount for each
    GPU of a node."""
    offered = {name: max((getattr(each, name) / each.devices for each in problem.shapes), default=0.0) for name in HOST}
    needed = {name: sum(getattr(item, name) * item.count for item in problem.items) for name in HOST}
    return max(HOST, key=lambda name: needed[name] / (offered[name] or 1.0))
