"""Places pods in a given order by best fit. Whether a pod has room depends only on the pods before it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plimsoll.packing.nodes.need import FreeNode, Limit, NodeShape, PodNeed
from plimsoll.packing.nodes.placing import Placing, problem_of


class Unit(NamedTuple):
    """Pods that are placed together or not at all."""

    pods: Sequence[PodNeed]
    after: str = ""
    """Name of a pod that must have been placed before; empty if there is none."""


def left_out_in_order(
    units: Sequence[Unit],
    shapes: Iterable[NodeShape],
    nodes: Iterable[FreeNode] = (),
    limits: Sequence[Limit] = (),
) -> set[str]:
    """Names of the pods for which there is no room in addition to those before them. `units` are in order."""
    problem, unfit = problem_of((need for unit in units for need in unit.pods), shapes, nodes, limits)
    number_of = {name: number for number, item in enumerate(problem.items) for name in item.names}
    out = set(unfit)
    placing = Placing(problem.empty())
    full: set[int] = set()
    """Items of which one did not fit. Further ones do not fit either, because the room only shrinks."""
    for unit in units:
        numbers = [number_of.get(need.name, -1) for need in unit.pods]
        if unit.after in out or any(number < 0 or number in full for number in numbers):
            out.update(need.name for need in unit.pods)
            continue
        before = placing if len(unit.pods) == 1 else Placing(placing.filling.copy(), shapes=dict(placing.shapes))
        for number in numbers:
            if placing.filling.place(problem.requests[number], 1):
                placing.left = {number: 1}
                problem.open(placing)
        if placing.unplaced:
            out.update(need.name for need in unit.pods)
            full.update(placing.unplaced if len(unit.pods) == 1 else ())
            placing = before
            placing.unplaced = {}
    return out
