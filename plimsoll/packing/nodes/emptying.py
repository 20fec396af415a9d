"""Removes new nodes whose pods fit other nodes."""

from collections import Counter
from collections.abc import Iterator, Sequence

from plimsoll.packing.nodes.placing import NodeProblem, Placing

_TRIES = 40
"""Maximum number of nodes to try, least used first."""


def emptied(problem: NodeProblem, placing: Placing) -> Placing:
    """The placing without the new nodes that are not needed."""
    found = placing
    for at in _least_used(problem, placing):
        found = _without(problem, found, at) or found
    return found


def _least_used(problem: NodeProblem, placing: Placing) -> Sequence[int]:
    """Rows of new nodes, least used first: by the GPUs that their pods take in sum."""
    used = {}
    for at in placing.shapes:
        row = placing.filling.row(at)
        whole = problem.grids[row.kind].gpu
        used[at] = sum(whole - free for free in row.gpus) / whole
    return sorted(used, key=lambda at: (used[at], at))[:_TRIES]


def _without(problem: NodeProblem, placing: Placing, at: int) -> Placing | None:
    """The placing with the pods of one node of the row on other nodes; None if they do not fit there."""
    filling = placing.filling.copy()
    alone = filling.split(at)
    row = filling.row(alone)
    filling.drop(alone)
    for item, count in sorted(_pods(problem, row.held), key=lambda each: (-problem.items[each[0]].devices, each)):
        if filling.place(problem.requests[item], count):
            return None
    return problem.finished(Placing(filling, unplaced=dict(placing.unplaced)))


def _pods(problem: NodeProblem, held: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    for item, copies in Counter(item for items in held for item in items).items():
        yield item, copies // problem.items[item].devices
