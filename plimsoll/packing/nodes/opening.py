"""New nodes: shapes are chosen for what is to be placed, and filled."""

from collections.abc import Mapping, Sequence

from plimsoll.packing.gpus import Effort
from plimsoll.packing.nodes.dealing import Dealing
from plimsoll.packing.nodes.filling import Filling
from plimsoll.packing.nodes.need import FilledNode, NodeShape, PodNeed
from plimsoll.packing.nodes.shapes import ShapeChoice
from plimsoll.packing.nodes.stacking import Stacking
from plimsoll.packing.nodes.units import Unit, group, kinds_of, large_first, place, unit_of

_HEADROOM = (0.0, 0.08, 0.02, 0.3, 0.01, 0.04, 0.16, 0.004, 1.0)
"""Parts of CPU and memory that shapes are chosen to have above what is asked, one after the other."""
_CHOICE_SECONDS = 0.03
"""That the choice of shapes takes, about."""
_HALVINGS = 4
"""Numbers of GPUs between the bound and the best that are tried."""

Cost = tuple[int, float, int]
"""GPUs, price and number of nodes, the less the better."""


def onto_shapes(
    units: Sequence[Unit], shapes: Sequence[NodeShape], needs: Mapping[str, PodNeed], target: int, effort: Effort
) -> list[FilledNode]:
    """New nodes for units, with as few GPUs as possible, then as cheap as possible; stops at `target` GPUs.

    Some shape takes each of the units. Shapes are chosen as if CPU and memory could be cut at will; as they cannot,
    they are chosen again with headroom, and the best choice is taken. Never worse than best fit decreasing.
    """
    search = _Search(shapes, needs, effort)
    if not units:
        return []
    for headroom in _HEADROOM:
        search.attempt(units, headroom, target)
        if not search.above(target):
            break
    low = target
    for _ in range(_HALVINGS):
        if search.above(low):
            middle = (low + search.least) // 2
            search.attempt(units, 0.0, middle)
            low = low if search.least <= middle else middle
    return search.nodes


class _Search:
    def __init__(self, shapes: Sequence[NodeShape], needs: Mapping[str, PodNeed], effort: Effort) -> None:
        self._shapes = shapes
        self._by_name = {shape.name: shape for shape in shapes}
        self._kinds = sorted({shape.kind for shape in shapes})
        self._needs = needs
        self._effort = effort
        self._tried: set[tuple[str, ...]] = set()
        self._best: Cost | None = None
        self.nodes: list[FilledNode] = []
        """The best so far."""

    @property
    def least(self) -> int:
        """GPUs of the best so far."""
        return sum(len(node.gpus) for node in self.nodes)

    def above(self, target: int) -> bool:
        """Whether there may be better, and time to look for it."""
        return (self._best is None or self.least > target) and not self._effort.exhausted

    def attempt(self, units: Sequence[Unit], headroom: float, least: int) -> None:
        """Chooses shapes with so much headroom and at least so many GPUs, and fills them in all ways."""
        chosen = self.choose(units, headroom, least)
        names = tuple(shape.name for shape in chosen)
        first = self._best is None
        if names in self._tried or (not first and sum(shape.gpus for shape in chosen) >= self.least):
            return
        self._tried.add(names)
        self.fill(units, chosen, headroom, Dealing)
        if self.above(least):
            self.fill(units, chosen, headroom, Stacking)
        if first and self.above(least):
            self.best_fit(units)

    def choose(self, units: Sequence[Unit], headroom: float, least: int = 0) -> list[NodeShape]:
        """Shapes that have enough of everything for the units in all, and of which one fits the hardest to place."""
        if not units:
            return []
        loads = [unit.load(self._shapes, headroom) for unit in units]
        choice = ShapeChoice(loads, self._shapes)
        choice.require(least)
        self._effort.spend(_CHOICE_SECONDS)
        for names in sorted({tuple(sorted(load.shapes)) for load in loads}):
            choice.require_one_of(names)
        chosen = [self._by_name[name] for name, count in sorted(choice.choose().items()) for _ in range(count)]
        hardest = min(units, key=lambda unit: (-len(unit.gpus), -unit.cpu_milli, -unit.memory_mib, unit.gpus))
        if not any(hardest.fits(shape) for shape in chosen):
            chosen.append(next(shape for shape in self._shapes if hardest.fits(shape)))
        return chosen

    def fill(
        self, units: Sequence[Unit], chosen: Sequence[NodeShape], headroom: float, way: type[Dealing] | type[Stacking]
    ) -> None:
        """Nodes of the chosen shapes with what they can hold, and more nodes for the rest; given up without time."""
        filled: list[FilledNode] = []
        while units:
            filler = way(chosen, units, self._needs)
            if self._best is not None and filler.work > self._effort.left:
                return
            self._effort.spend(filler.work)
            filling, left, loose = filler.fill()
            loose = [need for need in sorted(loose, key=large_first) if not place(filling, need)]
            filled += self._fitted(filling)
            units = [*left, *self._together(loose)]
            chosen = self.choose(units, headroom)
        self._keep(filled)

    def best_fit(self, units: Sequence[Unit]) -> None:
        """The pods of the units one after the other, on GPUs that do not matter any more."""
        filling = Filling()
        self._effort.spend(6e-5 * len(units))
        group(filling, [self._needs[name] for unit in units for name in unit.pods], self._shapes)
        self._keep(self._fitted(filling))

    def _keep(self, nodes: list[FilledNode]) -> None:
        prices = (self._by_name[node.shape or ""].price or 0.0 for node in nodes)
        cost = sum(len(node.gpus) for node in nodes), sum(prices), len(nodes)
        if self._best is None or cost < self._best:
            self._best, self.nodes = cost, nodes

    def _together(self, needs: Sequence[PodNeed]) -> list[Unit]:
        filling = Filling()
        group(filling, needs, self._shapes)
        units = []
        for row in range(len(filling.nodes)):
            gpus = [names for names in filling.held(row) if names]
            units.append(unit_of(gpus, kinds_of(gpus, self._needs, self._kinds), self._needs))
        return units

    def _fitted(self, filling: Filling) -> list[FilledNode]:
        """The nodes that hold something, each of the smallest and then cheapest shape that is enough for it."""
        found = []
        for row, node in enumerate(filling.nodes):
            used = [names for names in filling.held(row) if names]
            if used:
                free = filling.free(row)
                cpu_milli, memory_mib = node.cpu_milli - free.cpu_milli, node.memory_mib - free.memory_mib
                unit = Unit(tuple(used), (node.kind,), cpu_milli, memory_mib)
                enough = [shape for shape in self._shapes if unit.fits(shape)]
                shape = min(enough, key=lambda shape: (shape.gpus, shape.price or 0.0, shape.name))
                gpus = (*used, *((),) * (shape.gpus - len(used)))
                found.append(FilledNode(gpus, shape.kind, shape=shape.name))
        return found
