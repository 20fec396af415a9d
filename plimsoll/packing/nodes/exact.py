"""Places few pods optimally, by one integer program over pods and GPUs."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.packing.gpus import Program
from plimsoll.packing.nodes.filling import PlacementRequest
from plimsoll.packing.nodes.need import HOST, Item
from plimsoll.packing.nodes.placing import NodeProblem, Placing
from plimsoll.packing.nodes.scale import Scale
from plimsoll.packing.units import UNBOUNDED

_MOST_COLUMNS = 2500
"""Maximum number of columns for pods on nodes and GPUs; larger programs take over a second."""
_MOST_OF_EITHER = 700
"""The same for pods of several schedulers; then 2,500 take up to 6 seconds."""
_MOST_OF_SEVERAL = 400
"""The same for pods with shares of several GPUs; then 2,500 take up to 12 seconds."""
_MOST_PODS = 60
"""Maximum number of pods. With more, the program has many equal nodes, and the solver finds nothing in many seconds."""
_NODES = 100
"""Maximum number of nodes of the search tree."""
_UNPLACED = 1000.0
"""Cost of a pod without a place, relative to a GPU."""
_PRICE = 1e-3
"""Cost of the most expensive node, relative to a GPU."""
_ROUNDING = 1e-6
"""Tolerance that keeps the solver's rounding from raising the bound."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A node that may be used: an existing one of a row, or a new one of a shape."""

    kind: int
    gpus: tuple[int, ...]
    cpu_milli: int
    memory_mib: int
    storage_mib: int
    pods: int
    row: int = -1
    shape: int = -1
    scheduler: int = 0
    """As of Row."""

    def gpus_for(self, item: Item, request: PlacementRequest) -> list[int]:
        """The GPUs that a pod of the item could use; none if it does not fit the node."""
        size = request.sizes[self.kind] if self.scheduler in (0, request.scheduler or self.scheduler) else 0
        gpus = [gpu for gpu, free in enumerate(self.gpus) if 0 < size <= free]
        fits = all(getattr(item, name) <= getattr(self, name) for name in HOST)
        return gpus if fits and len(gpus) >= item.devices else []


def exact_placing(problem: NodeProblem, best: Placing, *, any_placing: bool = False) -> tuple[int, list[Placing]]:
    """A lower bound of the GPUs of new nodes, and placings of all pods that are better than `best`, if any are found.

    (0, []) if there are too many pods and nodes. With `any_placing`, which takes less time, the bound is 0 and a
    placing has a place for every pod.
    """
    if sum(item.count for item in problem.items) > _MOST_PODS:
        return 0, []
    slots = tuple(_slots(problem, best))
    if not slots or not _is_small(problem, slots):
        return 0, []
    return _Exact(problem, slots, any_placing).solved()


def _is_small(problem: NodeProblem, slots: Sequence[_Slot]) -> bool:
    most = _MOST_OF_EITHER if _of_several_schedulers(problem) else _MOST_COLUMNS
    columns = of_several = 0
    for slot, count in Counter(slots).items():
        for item, request in zip(problem.items, problem.requests, strict=True):
            gpus = len(slot.gpus_for(item, request))
            own = count * (1 + gpus) if gpus else 0
            columns += own
            of_several += own if item.devices > 1 and request.shares else 0
        if columns > most or of_several > _MOST_OF_SEVERAL:
            return False
    return True


def _slots(problem: NodeProblem, best: Placing) -> Iterator[_Slot]:
    pods = sum(item.count for item in problem.items)
    for at, row in problem.empty().rows():
        host = row.cpu_milli, row.memory_mib, row.storage_mib, row.pods
        slot = _Slot(row.kind, row.gpus, *host, row=at, scheduler=row.scheduler)
        yield from [slot] * min(row.count, pods)
    for number, shape in enumerate(problem.shapes):
        most = problem.room({}, number)
        # If all pods have a place, only fewer GPUs are an improvement.
        most = min(most, pods if best.unplaced else best.cost[1] // shape.gpus)
        for _ in range(min(most, pods)):
            kind = problem.kind[shape.kind]
            gpus = (problem.grids[kind].gpu,) * shape.devices
            yield _Slot(kind, gpus, shape.cpu_milli, shape.memory_mib, shape.storage_mib, shape.pods, shape=number)


def _of_several_schedulers(problem: NodeProblem) -> bool:
    return len({request.scheduler for request in problem.requests} - {0}) > 1


class _Exact:
    def __init__(self, problem: NodeProblem, slots: Sequence[_Slot], any_placing: bool) -> None:
        self._problem = problem
        self._any_placing = any_placing
        self._slots = slots
        self._program = Program()
        self._cost: dict[int, float] = {}
        self._open: dict[int, int] = {}
        """Column that says whether the slot is used, by slot, where that costs something."""
        self._copies: dict[tuple[int, int], int] = {}
        """Column of the copies of an item on a slot."""
        self._shares: dict[tuple[int, int, int], int] = {}
        """Column of the copies of an item on a GPU of a slot."""
        self._open_nodes()
        for number in range(len(problem.items)):
            self._place(number)
        for at in range(len(slots)):
            self._fill(at)
            if _of_several_schedulers(problem):
                self._choose_scheduler(at)
        self._limit()

    def solved(self) -> tuple[int, list[Placing]]:
        # Without sub-programs this takes 0.7 times as long, and finds as much.
        found = self._program.minimise(self._cost, _NODES, sub_programs=False)
        if found is None:
            return 0, []
        columns, cost = found
        placing = self._read(columns)
        # A node costs at most this for each of its GPUs, see `_open_nodes`.
        gpu = 1 + 1.1 * _PRICE
        exact = all(grid.exact for grid in self._problem.grids)
        least = math.ceil(cost / gpu - _ROUNDING) if exact and 0 < cost < _UNPLACED else 0
        return least, [] if placing is None else [placing]

    def _open_nodes(self) -> None:
        dearest = max((shape.price or 0.0 for shape in self._problem.shapes), default=0.0) or 1.0
        before: dict[int, int] = {}
        for at, slot in enumerate(self._slots):
            if slot.shape < 0:
                continue
            column = self._open[at] = self._program.column(integer=True)
            self._program.rows.append((0.0, 1.0, {column: 1.0}))
            shape = self._problem.shapes[slot.shape]
            if not self._any_placing:
                self._cost[column] = shape.gpus + _PRICE * (0.1 + (shape.price or 0.0) / dearest)
            if slot.shape in before:  # nodes of a shape are opened in turn
                self._program.rows.append((0.0, 1.0, {before[slot.shape]: 1.0, column: -1.0}))
            before[slot.shape] = column

    def _place(self, number: int) -> None:
        """Constraint: each pod of an item is on one slot, with as many different GPUs as it requests, or unplaced."""
        item, request = self._problem.items[number], self._problem.requests[number]
        everywhere: dict[int, float] = {}
        if not self._any_placing:
            unplaced = self._program.column()
            self._cost[unplaced] = _UNPLACED
            everywhere[unplaced] = 1.0
        for at, slot in enumerate(self._slots):
            gpus = slot.gpus_for(item, request)
            if not gpus:
                continue
            copies = self._copies[number, at] = self._program.column(integer=True)
            everywhere[copies] = 1.0
            sum_of = {copies: -float(item.devices)}
            for gpu in gpus:
                column = self._shares[number, at, gpu] = self._program.column(integer=True)
                sum_of[column] = 1.0
                if item.devices > 1:
                    self._program.rows.append((-float("inf"), 0.0, {column: 1.0, copies: -1.0}))
            self._program.rows.append((0.0, 0.0, sum_of))
        self._program.rows.append((float(item.count), float(item.count), everywhere))

    def _fill(self, at: int) -> None:
        """Constraints: a slot's GPUs, host resources and number of pods are not exceeded, and are 0 if the node is not
        used."""
        slot, items = self._slots[at], self._problem.items
        whole = self._problem.grids[slot.kind].gpu
        here = {number: column for (number, on), column in self._copies.items() if on == at}
        requests = self._problem.requests
        pods = dict.fromkeys(here.values(), 1)
        for gpu, free in enumerate(slot.gpus):
            held = {number: self._shares[number, at, gpu] for number in here if (number, at, gpu) in self._shares}
            self._row(at, {column: requests[number].sizes[slot.kind] for number, column in held.items()}, free)
            sharing = {column: 1.0 for number, column in held.items() if requests[number].shares}
            if free == whole and slot.pods < UNBOUNDED and sharing:
                reservation = self._program.column(integer=True)
                pods[reservation] = 1
                count = float(sum(item.count for item in items))
                self._program.rows.append((-float("inf"), 0.0, {**sharing, reservation: -count}))
        for resource in HOST:
            amounts = {column: getattr(items[number], resource) for number, column in here.items()}
            self._row(at, amounts, getattr(slot, resource))
        if slot.pods < UNBOUNDED:
            self._row(at, pods, slot.pods)

    def _choose_scheduler(self, at: int) -> None:
        """Constraint: the pods on a slot are of one scheduler, and others that can be with all."""
        slot, requests = self._slots[at], self._problem.requests
        of_scheduler = defaultdict[int, list[tuple[int, int, int]]](list)
        """(item, GPU, column) of each share."""
        for (number, on, gpu), column in self._shares.items():
            if on == at and requests[number].scheduler:
                of_scheduler[requests[number].scheduler].append((number, gpu, column))
        if len(of_scheduler) < 2:
            return
        chosen: dict[int, float] = {}
        for shares in of_scheduler.values():
            choice = self._program.column(integer=True)
            chosen[choice] = 1.0
            for gpu, free in enumerate(slot.gpus):
                used = {column: float(requests[number].sizes[slot.kind]) for number, on, column in shares if on == gpu}
                if used:
                    self._program.rows.append((-float("inf"), 0.0, {**used, choice: -float(free)}))
        used_at = {self._open[at]: -1.0} if at in self._open else {}
        self._program.rows.append((-float("inf"), float(not used_at), {**chosen, **used_at}))

    def _row(self, at: int, amounts: Mapping[int, int], most: int) -> None:
        """Constraint: what the columns use of the slot, in sum at most `most`."""
        scale = Scale(most)
        entries = {column: scale.down(amount) for column, amount in amounts.items()}
        if at in self._open:
            self._program.rows.append((-float("inf"), 0.0, {**entries, self._open[at]: -scale.up(most)}))
        else:
            self._program.rows.append((-float("inf"), scale.up(most), entries))

    def _limit(self) -> None:
        for limit in self._problem.limits:
            uses = {
                column: float(limit.uses.get(self._problem.shapes[self._slots[at].shape].name, 0))
                for at, column in self._open.items()
            }
            if any(uses.values()):
                self._program.rows.append((-float("inf"), float(max(0, limit.left)), uses))

    def _read(self, columns: list[float]) -> Placing | None:
        """The placing of a solution. None if it does not fit in whole units, because the solver tolerates small
        errors."""
        problem = self._problem
        placing = Placing(problem.empty())
        left = {number: item.count for number, item in enumerate(problem.items)}
        for at, slot in enumerate(self._slots):
            copies = {
                number: round(columns[self._copies[number, at]]) for number in left if (number, at) in self._copies
            }
            if not any(copies.values()):
                continue
            row = placing.filling.split(slot.row) if slot.row >= 0 else problem.add_new(placing, slot.shape, 1)
            for number, count in copies.items():
                shares = Counter(
                    {gpu: round(columns[self._shares[number, at, gpu]]) for gpu in range(len(slot.gpus))
                     if (number, at, gpu) in self._shares}
                )  # fmt: skip
                for _ in range(count):
                    gpus = [gpu for gpu, _ in shares.most_common(problem.items[number].devices)]
                    if not placing.filling.put_on(row, gpus, problem.requests[number]):
                        return None
                    shares.subtract(gpus)
                left[number] -= count
        placing.unplaced = {number: count for number, count in left.items() if count}
        return problem.finished(placing)
