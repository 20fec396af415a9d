"""Which shapes of nodes, and how many: an integer program over GPUs, CPU and memory, kind by kind."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from plimsoll.plan.node_need import FreeNode, NodeShape
from plimsoll.plan.packing_problem import GPU_MILLI
from plimsoll.plan.solver import solver

_ROUNDING = 1e-6
_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Load:
    """What a pod, or several that go together, ask of one node."""

    kinds: tuple[str, ...]
    """Kinds that may hold it, sorted."""
    gpu_milli: int
    """Thousandths of GPUs in all, the least over the kinds."""
    devices: int
    """Whole GPUs of one node among them."""
    cpu_milli: int
    memory_mib: int


@dataclass(slots=True)
class _Program:
    """Rows `lower <= sum of entries * columns <= upper`; all columns are at least 0."""

    columns: int = 0
    integers: list[int] = field(default_factory=list)
    rows: list[tuple[float, float, dict[int, float]]] = field(default_factory=list)

    def column(self, integer: bool = False) -> int:
        self.columns += 1
        if integer:
            self.integers.append(self.columns - 1)
        return self.columns - 1

    def minimise(self, cost: Mapping[int, float]) -> tuple[list[float], float] | None:
        """The columns of the best solution that was found, and a bound on the cost of every one; None: none found."""
        import highspy  # lazily, as in `solver`

        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, len(self.rows)
        lp.col_cost_ = np.array([cost.get(column, 0.0) for column in range(self.columns)])
        lp.col_lower_, lp.col_upper_ = np.zeros(self.columns), np.full(self.columns, math.inf)
        lp.row_lower_ = np.array([lower for lower, _, _ in self.rows])
        lp.row_upper_ = np.array([upper for _, upper, _ in self.rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(entries) for _, _, entries in self.rows)], dtype=np.int32)
        lp.a_matrix_.index_ = np.array([column for *_, entries in self.rows for column in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for *_, entries in self.rows for value in entries.values()])
        integer = set(self.integers)
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if column in integer else kinds.kContinuous for column in range(self.columns)]
        highs = solver(time_limit=_SECONDS, mip_max_nodes=2000, mip_rel_gap=0.0)
        highs.passModel(lp)
        highs.run()
        info = highs.getInfo()
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        return [float(value) for value in highs.getSolution().col_value], float(info.mip_dual_bound)


class ShapeChoice:
    """Shapes for loads. GPUs, CPU and memory of a load may lie on different nodes here: a relaxation.

    `free` is what existing nodes still offer to the loads.
    """

    def __init__(self, loads: Iterable[Load], shapes: Sequence[NodeShape], free: Sequence[FreeNode] = ()) -> None:
        self._shapes = sorted(shapes, key=lambda shape: shape.name)
        self._program = _Program()
        self._count = {shape.name: self._program.column(integer=True) for shape in self._shapes}
        self._kinds = sorted({shape.kind for shape in shapes} | {node.kind for node in free})
        self._free: dict[str, list[FreeNode]] = defaultdict(list)
        for node in free:
            self._free[node.kind].append(node)
        classes: dict[tuple[str, ...], list[Load]] = defaultdict(list)
        for load in loads:
            classes[load.kinds].append(load)
        self._resource(classes, lambda load: load.gpu_milli, lambda shape: GPU_MILLI * shape.gpus, _free_gpu_milli)
        self._resource(classes, lambda load: load.cpu_milli, lambda shape: shape.cpu_milli, lambda node: node.cpu_milli)
        self._resource(
            classes, lambda load: load.memory_mib, lambda shape: shape.memory_mib, lambda node: node.memory_mib
        )
        for devices in sorted({load.devices for members in classes.values() for load in members} - {0, 1}):
            # Each load of so many whole GPUs or more takes at least so many GPUs of one node.
            self._resource(
                classes,
                partial(_reaches, devices),
                partial(_places, devices),
                partial(_free_places, devices),
            )

    def require(self, gpus: int) -> None:
        """New nodes have at least so many GPUs."""
        self._program.rows.append((gpus, math.inf, self._gpus()))

    def require_one_of(self, shapes: Iterable[str]) -> None:
        """At least one new node is of the shapes of these names."""
        self._program.rows.append((1.0, math.inf, {self._count[name]: 1.0 for name in shapes}))

    def least_gpus(self) -> int:
        """GPUs of new nodes that no choice can do without."""
        found = self._program.minimise(self._gpus())
        return 0 if found is None else max(0, math.ceil(found[1] - _ROUNDING))

    def choose(self) -> Counter[str]:
        """How many nodes of each shape: the fewest GPUs, then the lowest price, then the fewest nodes."""
        found = self._program.minimise(self._gpus())
        if found is None:
            return Counter()
        columns, _ = found
        gpus = sum(columns[column] * value for column, value in self._gpus().items())
        self._program.rows.append((-math.inf, round(gpus), self._gpus()))
        dearest = max((shape.price or 0.0) for shape in self._shapes) or 1.0
        price = {self._count[shape.name]: (shape.price or 0.0) / dearest + 1e-3 for shape in self._shapes}
        cheapest = self._program.minimise(price)
        self._program.rows.pop()
        columns = columns if cheapest is None else cheapest[0]
        chosen = {shape.name: round(columns[self._count[shape.name]]) for shape in self._shapes}
        return Counter({name: count for name, count in chosen.items() if count})

    def _gpus(self) -> dict[int, float]:
        return {self._count[shape.name]: float(shape.gpus) for shape in self._shapes}

    def _resource(
        self,
        classes: Mapping[tuple[str, ...], Sequence[Load]],
        asked: Callable[[Load], int],
        offered: Callable[[NodeShape], int],
        free: Callable[[FreeNode], int],
    ) -> None:
        """Each class's load flows to its kinds, and each kind's nodes offer enough of it."""
        unit = float(max((offered(shape) for shape in self._shapes), default=0) or 1)
        flows: dict[str, dict[int, float]] = {kind: {} for kind in self._kinds}
        for kinds, members in sorted(classes.items()):
            load = sum(asked(each) for each in members) / unit
            if not load:
                continue
            columns = {kind: self._program.column() for kind in kinds if kind in flows}
            self._program.rows.append((load, load, dict.fromkeys(columns.values(), 1.0)))
            for kind, column in columns.items():
                flows[kind][column] = 1.0
        for kind, entries in flows.items():
            if entries:
                for shape in self._shapes:
                    if shape.kind == kind:
                        entries[self._count[shape.name]] = -offered(shape) / unit
                self._program.rows.append((-math.inf, sum(free(node) for node in self._free[kind]) / unit, entries))


def _free_gpu_milli(node: FreeNode) -> int:
    return sum(node.gpus)


def _reaches(devices: int, load: Load) -> int:
    return int(load.devices >= devices)


def _places(devices: int, shape: NodeShape) -> int:
    return shape.gpus // devices


def _free_places(devices: int, node: FreeNode) -> int:
    return sum(free == GPU_MILLI for free in node.gpus) // devices
