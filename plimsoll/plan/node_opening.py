"""New nodes: shapes are chosen for what is to be placed, and filled."""

from collections.abc import Mapping, Sequence

from plimsoll.plan.effort import Effort
from plimsoll.plan.node_dealing import Dealing
from plimsoll.plan.node_filling import Filling
from plimsoll.plan.node_need import FilledNode, NodeShape, PodNeed
from plimsoll.plan.node_shapes import ShapeChoice
from plimsoll.plan.node_units import Unit, group, kinds_of, large_first, place, unit_of

_HEADROOM = (0.0, 0.004, 0.01, 0.02, 0.04, 0.08, 0.16, 0.5, 1.0, 2.0)
"""Parts of CPU and memory that shapes are chosen to have above what is asked, one after the other."""

Cost = tuple[int, float, int]
"""GPUs, price and number of nodes, the less the better."""


def onto_shapes(
    units: Sequence[Unit], shapes: Sequence[NodeShape], needs: Mapping[str, PodNeed], target: int, effort: Effort
) -> tuple[list[FilledNode], list[Unit]]:
    """New nodes for units, with as few GPUs as possible, then as cheap as possible; stops at `target` GPUs.

    Also the units that no shape can take. Shapes are chosen as if CPU and memory could be cut at will; as they cannot,
    they are chosen again with headroom, and the best choice is taken. Never worse than best fit decreasing.
    """
    fitting = [unit for unit in units if any(unit.fits(shape) for shape in shapes)]
    homeless = [unit for unit in units if not any(unit.fits(shape) for shape in shapes)]
    opening = _Opening(shapes, needs, effort)
    best: tuple[Cost, list[FilledNode]] | None = None
    for headroom in _HEADROOM:
        chosen = opening.choose(fitting, headroom, target)
        if best is not None and sum(shape.gpus for shape in chosen) >= best[0][0]:
            break
        nodes = opening.fill(fitting, chosen, headroom)
        if best is None or opening.cost(nodes) < best[0]:
            best = opening.cost(nodes), nodes
        if best[0][0] > target and headroom == 0.0:
            nodes = opening.best_fit(fitting)
            if opening.cost(nodes) < best[0]:
                best = opening.cost(nodes), nodes
        if best[0][0] <= target or effort.exhausted:
            break
    return (best[1] if best else []), homeless


class _Opening:
    def __init__(self, shapes: Sequence[NodeShape], needs: Mapping[str, PodNeed], effort: Effort) -> None:
        self._shapes = shapes
        self._by_name = {shape.name: shape for shape in shapes}
        self._kinds = sorted({shape.kind for shape in shapes})
        self._needs = needs
        self._effort = effort

    def choose(self, units: Sequence[Unit], headroom: float, least: int = 0) -> list[NodeShape]:
        """Shapes that have enough of everything for the units in all, and of which one fits the hardest to place."""
        if not units:
            return []
        loads = [unit.load(self._shapes, headroom) for unit in units]
        choice = ShapeChoice(loads, self._shapes)
        choice.require(least)
        for names in sorted({tuple(sorted(load.shapes)) for load in loads}):
            choice.require_one_of(names)
        chosen = [self._by_name[name] for name, count in sorted(choice.choose().items()) for _ in range(count)]
        hardest = min(units, key=lambda unit: (-len(unit.gpus), -unit.cpu_milli, -unit.memory_mib, unit.gpus))
        if not any(hardest.fits(shape) for shape in chosen):
            chosen.append(next(shape for shape in self._shapes if hardest.fits(shape)))
        return chosen

    def fill(self, units: Sequence[Unit], chosen: Sequence[NodeShape], headroom: float) -> list[FilledNode]:
        """Nodes of the chosen shapes with what they can hold, and more nodes for the rest."""
        filled: list[FilledNode] = []
        while units:
            self._effort.spend(6e-5 * len(units))
            filling, left, loose = Dealing(chosen, units, self._needs).deal()
            loose = [need for need in sorted(loose, key=large_first) if not place(filling, need)]
            filled += self._fitted(filling)
            units = [*left, *self._together(loose)]
            chosen = self.choose(units, headroom)
        return filled

    def best_fit(self, units: Sequence[Unit]) -> list[FilledNode]:
        """The pods of the units one after the other, on GPUs that do not matter any more."""
        filling = Filling()
        self._effort.spend(6e-5 * len(units))
        group(filling, [self._needs[name] for unit in units for name in unit.pods], self._shapes)
        return self._fitted(filling)

    def cost(self, nodes: Sequence[FilledNode]) -> Cost:
        prices = (self._by_name[node.shape or ""].price or 0.0 for node in nodes)
        return sum(len(node.gpus) for node in nodes), sum(prices), len(nodes)

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
