"""Pods packed by patterns of whole nodes, for where CPU or memory is as scarce as GPUs.

Column generation (Gilmore and Gomory, 1961) over what one node can hold. A node is priced by dynamic programming over
its GPUs, in parts that are powers of two, so that what fits the node fits its GPUs one by one, and over the scarcer of
CPU and memory. The other of them and the number of pods count when the nodes are filled.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plimsoll.packing.gpus import BinType, Effort, Master, Pattern, Problem
from plimsoll.packing.nodes.node_pricing import Counts, NodeGrid, NodeKnapsack, Values, finest, sorted_items
from plimsoll.packing.nodes.placing import Placing, Stock
from plimsoll.packing.units import GPU_MILLI, Milli, exact_milli

_PARTS = 8
"""Of a GPU, on nodes of several."""
_MOST_PARTS = 128
"""Of a node."""
_STEPS = np.arange(400, 1025)
"""Of the CPU or memory of the largest node of a kind; the number that rounds the least is taken."""
_ROUNDS = 30
"""Rounds of pricing for which there must be time."""
_GENERATION_SHARE = 0.6
"""Of the time, for the linear program; the rest is for whole nodes."""
_SMOOTHING = 0.6
"""Weight of the duals of the best bound, beside those of the program, which jump (Wentges, 1997)."""
_ROUNDS_OF_A_STEP = 6
"""Rounds of pricing each time that nodes are fixed."""
_PRICE_WEIGHT = 1e-4
"""Of the price beside the number of GPUs."""
_GAIN = 1e-7
_WHOLE = 1e-6


def by_node_patterns(stock: Stock, effort: Effort) -> Iterator[Placing]:
    """A way to place the pods; none where there is no time for it."""
    search = _Search(stock, effort)
    if search.work * _ROUNDS < effort.left:
        search.generate()
        yield search.filled(search.dive())


def least_by_node_patterns(stock: Stock, effort: Effort) -> int:
    """GPUs of new nodes that no way to place the pods can do without; 0 where there is no time for it."""
    search = _Search(stock, effort, optimistic=True)
    if search.work * _ROUNDS > effort.left:
        return 0
    search.generate()
    return search.least()


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes that are alike: of a shape that may be new, or free ones of a row."""

    kind: int
    gpus: tuple[Milli, ...]
    """Free thousandths of each."""
    amount: int
    """CPU or memory."""
    shape: int = -1
    row: int = -1
    count: int | None = None
    cost: float = 0.0


class _Search:
    """The linear program over patterns of nodes, and whole nodes from it."""

    def __init__(self, stock: Stock, effort: Effort, optimistic: bool = False) -> None:
        self._stock = stock
        self._optimistic = optimistic
        self._effort = effort
        self._host = _scarcer(stock)
        self._base = Placing(stock.empty())
        if not optimistic:
            self._place_homeless()
        self._nodes = list(self._all_nodes())
        kinds = sorted({each.kind for each in self._nodes})
        grids = {kind: self._grid(kind, [each for each in self._nodes if each.kind == kind]) for kind in kinds}
        self._rooms = [grids[each.kind].of_node(each.gpus, each.amount) for each in self._nodes]
        alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for number, fitting in enumerate(stock.fitting):
            alike[fitting, tuple(self._size(number, kind, grids[kind]) for kind in kinds)].append(number)
        self._items = list(alike.values())
        """Numbers of the stock's items that a node counts as the same."""
        self._knapsacks: dict[int, NodeKnapsack] = {}
        for kind in kinds:
            sizes = np.array([self._size(members[0], kind, grids[kind]) for members in self._items], dtype=np.int64)
            rooms = [room for room, nodes in zip(self._rooms, self._nodes, strict=True) if nodes.kind == kind]
            self._knapsacks[kind] = NodeKnapsack(sizes, rooms)
        counts = [
            sum(stock.items[number].count for number in members if stock.fitting[number]) for members in self._items
        ]
        self._problem = Problem(
            sizes=np.zeros((1, len(counts)), dtype=np.int64),
            demand=np.array(counts, dtype=np.int64),
            bin_types=tuple(BinType(each.kind, 0, each.count, each.cost) for each in self._nodes),
        )
        self._demand = self._problem.demand
        self._proven: Values = np.zeros(len(counts))
        """The duals of the best bound."""
        self._bound = 0.0
        self._master = Master(self._problem)
        self._master.add(sorted(self._alone()))

    def _place_homeless(self) -> None:
        """Best fit of the pods that no new node takes onto the free ones, which others can do without."""
        for number in self._stock.large_first(at for at, shapes in enumerate(self._stock.fitting) if not shapes):
            left = self._base.filling.place(self._stock.asks[number], self._stock.items[number].count)
            self._base.unplaced |= {number: left} if left else {}

    def _size(self, number: int, kind: int, grid: NodeGrid) -> tuple[int, int]:
        item = self._stock.items[number]
        milli = dict(item.milli).get(self._stock.kinds[kind])
        return (-1, -1) if milli is None else grid.of_item(milli, item.devices, getattr(item, self._host))

    @property
    def work(self) -> float:
        """Seconds that a round of pricing takes, about."""
        return sum(each.work for each in self._knapsacks.values()) + 1e-4 * len(self._nodes)

    def _all_nodes(self) -> Iterator[_Nodes]:
        stock = self._stock
        dearest = max((shape.price or 0.0 for shape in stock.shapes), default=0.0) or 1.0
        for number, shape in enumerate(stock.shapes):
            cost = shape.gpus * (1 + _PRICE_WEIGHT * (shape.price or 0.0) / dearest)
            gpus = (GPU_MILLI,) * shape.gpus
            yield _Nodes(stock.kind[shape.kind], gpus, getattr(shape, self._host), shape=number, cost=cost)
        for at, row in self._base.filling.rows():
            free = tuple(exact_milli(units, stock.grid.gpu) for units in row.gpus)
            yield _Nodes(row.kind, free, getattr(row, self._host), row=at, count=row.count)

    def _grid(self, kind: int, nodes: Sequence[_Nodes]) -> NodeGrid:
        gpus, largest = max(len(each.gpus) for each in nodes), max(each.amount for each in nodes)
        items = [item for item in self._stock.items if self._stock.kinds[kind] in dict(item.milli)]
        counts = np.array([item.count for item in items])
        parts = min(_PARTS, 1 << max(0, (_MOST_PARTS // gpus).bit_length() - 1))
        if gpus == 1:
            milli = np.array([float(dict(item.milli)[self._stock.kinds[kind]]) for item in items])
            parts = finest(milli / GPU_MILLI, counts, np.arange(_MOST_PARTS // 2, _MOST_PARTS + 1), self._optimistic)
        asked = np.array([getattr(item, self._host) for item in items])
        steps = finest(asked / largest, counts, _STEPS, self._optimistic) if largest else 1
        return NodeGrid(parts, gpus > 1, steps, largest or 1, self._optimistic)

    def _alone(self) -> Iterator[Pattern]:
        """For each item a node with it alone, and one with as many as fit, so that the program has a solution."""
        for item, members in enumerate(self._items):
            if shapes := self._stock.fitting[members[0]]:
                nodes = self._nodes[shapes[0]]
                knapsack = self._knapsacks[nodes.kind]
                room = self._rooms[shapes[0]]
                sizes = knapsack.parts[item], knapsack.steps[item]
                fitting = [int(there // size) for there, size in zip(room, sizes, strict=True) if size]
                for copies in {1, max(1, min([int(self._demand[item]), *fitting]))}:
                    yield shapes[0], ((item, copies),)

    def generate(self) -> None:
        """Adds patterns until none improves the program, or time is up."""
        reserve = self._effort.left * (1 - _GENERATION_SHARE)
        while self._solved() and self._effort.left > reserve:
            duals = self._master.item_duals
            if not self._add(_SMOOTHING * self._proven + (1 - _SMOOTHING) * duals) and not self._add(duals):
                return

    def _solved(self) -> bool:
        solved = self._master.solve(self._effort.wall(self._effort.left))
        self._effort.spend(self._master.work)
        return solved

    def _add(self, duals: Values, demand: Counts | None = None) -> bool:
        """Adds the patterns that these duals find, of no more than is wanted; False where none improves the program."""
        found: list[Pattern] = []
        most, supplied = 1.0, 0.0
        for kind, knapsack in self._knapsacks.items():
            priced = knapsack.price(duals, self._demand if demand is None else demand)
            self._effort.spend(knapsack.work)
            for number, nodes in enumerate(self._nodes):
                if nodes.kind != kind:
                    continue
                room = self._rooms[number]
                found.append((number, sorted_items(priced.pattern(*room))))
                if nodes.count is None:
                    most = max(most, float(priced.values[room]) / nodes.cost)
                    found += ((number, held) for held in knapsack.with_each(priced, duals, room))
                else:
                    supplied += float(priced.values[room]) * nodes.count
        if demand is None:
            # What no node can hold more worth of than it costs proves a bound.
            bound = (float(self._demand @ duals) - supplied) / most
            if bound > self._bound:
                self._bound, self._proven = bound, duals / most
        wanted = self._demand if demand is None else demand
        return self._master.add(
            pattern
            for pattern in found
            if self._master.gain(pattern) > _GAIN and all(copies <= wanted[item] for item, copies in pattern[1])
        )

    def least(self) -> int:
        """The bound that was proven; of a packing where the grids are optimistic."""
        return max(0, math.ceil(self._bound / (1 + _PRICE_WEIGHT) - _WHOLE))

    def dive(self) -> Counter[Pattern]:
        """Whole nodes: fixes what is whole, or else the largest fraction, and solves again for the rest."""
        demand, supply = self._demand.copy(), self._problem.supply.copy()
        row_of = {number: row for row, number in enumerate(self._problem.supply_types)}
        fixed: Counter[Pattern] = Counter()
        self._master.reduce(demand, supply)
        while demand.any() and self._solved():
            for _ in range(_ROUNDS_OF_A_STEP):
                if self._effort.exhausted or not self._add(self._master.item_duals, demand) or not self._solved():
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

    def filled(self, fixed: Counter[Pattern]) -> Placing:
        """The nodes with the pods of their patterns; what they do not take after all is left."""
        stock, placing = self._stock, Placing(self._base.filling.copy(), unplaced=dict(self._base.unplaced))
        left = Counter({number: item.count for number, item in enumerate(stock.items) if stock.fitting[number]})
        opened: Counter[int] = Counter()
        first = {members[0]: item for item, members in enumerate(self._items)}
        order = {first[member]: at for at, member in enumerate(stock.large_first(first))}
        for (number, items), count in sorted(fixed.items()):
            nodes = self._nodes[number]
            if nodes.shape < 0:
                rows = [placing.filling.split(nodes.row) for _ in range(count)]
            else:
                allowed = min(count, stock.room(opened, nodes.shape))
                opened[nodes.shape] += allowed
                rows = [stock.add_new(placing, nodes.shape, 1) for _ in range(allowed)]
            for at in rows:
                for item, copies in sorted(items, key=lambda each: order[each[0]]):
                    there = copies
                    for member in self._items[item]:
                        put = placing.filling.put(at, stock.asks[member], min(there, left[member]))
                        left[member] -= put
                        there -= put
        placing.left = dict(+left)
        placing.note_shapes()
        return placing


def _scarcer(stock: Stock) -> str:
    """Of CPU and memory, that of which pods need more beside what there is for each GPU."""
    names = ("cpu_milli", "memory_mib")
    there = {name: max((getattr(each, name) / each.gpus for each in stock.shapes), default=0.0) for name in names}
    needed = {name: sum(getattr(item, name) * item.count for item in stock.items) for name in names}
    return max(names, key=lambda name: needed[name] / (there[name] or 1.0))
