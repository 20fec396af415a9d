"""Places pods where their scheduler spreads them: breadth first, in its order.

Best fit and patterns would promise places that such a scheduler does not leave free: after 0.3 and 0.3 on two GPUs,
0.8 fits neither.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from plimsoll.packing.nodes.filling import Filling
from plimsoll.packing.nodes.placing import NodeProblem, Placing

_TRIES: Final = 16
"""Number of tries with the fewest nodes more. Each further one has a sixteenth more at least, so that few follow."""


def spread_out(problem: NodeProblem) -> Placing:
    """The pods on free nodes, then on new ones. There are as many new nodes as the pods need that are spread over all
    of them from the start, as they are once these nodes are there."""
    filling = problem.empty()
    waiting = _left(problem, filling, problem.turns)
    opened, tries = Counter[int](), 0
    while True:
        placing = Placing(filling.copy())
        # Each by itself, as nodes that are equally good are taken in the order of their names.
        for shape in sorted(opened.elements()):
            problem.add_new(placing, shape, 1)
        more = _on_new(problem, placing, waiting, opened)
        if not more:
            placing.note_shapes()
            return problem.finished(placing)
        opened, tries = opened + more, tries + 1
        if tries > _TRIES:
            for shape in sorted(opened):
                opened[shape] += min(opened[shape] // 16, problem.room(opened, shape))


def _left(problem: NodeProblem, filling: Filling, turns: Iterable[int]) -> list[int]:
    """Places pods in their turns. Returns those that found no place."""
    left: list[int] = []
    for number, same in groupby(turns):
        left += [number] * filling.place(problem.requests[number], len(list(same)))
    return left


def _on_new(problem: NodeProblem, placing: Placing, turns: Iterable[int], opened: Counter[int]) -> Counter[int]:
    """Places pods in their turns. Returns which new nodes were added to those `opened`."""
    more = Counter[int]()
    for number in turns:
        while placing.filling.place(problem.requests[number], 1):
            shape = problem.shape_for(number, opened + more)
            if shape is None:
                placing.unplaced[number] = placing.unplaced.get(number, 0) + 1
                break
            more[shape] += 1
            problem.add_new(placing, shape, 1)
    return more
