"""Which share can replace which: it is no larger on any kind of GPU, and may use every kind that the other may use.

Dual inequalities (Valerio de Carvalho, 2005): in the linear program over patterns, a share is worth no more than one
that it can replace. Adding these inequalities at the start saves most pricing rounds if there are many sizes.
"""

from collections import defaultdict
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from plimsoll.packing.gpus.problem import Counts, Problem


def replacements(problem: Problem) -> list[tuple[int, int]]:
    """Pairs (item, another item that can replace it). Most pairs that follow from other pairs are left out."""
    allowed = problem.sizes > 0
    by_kinds: dict[frozenset[int], list[int]] = defaultdict(list)
    for item in range(len(problem.demand)):
        by_kinds[frozenset(int(kind) for kind in np.flatnonzero(allowed[:, item]))].append(item)
    pairs: list[tuple[int, int]] = []
    for kinds, items in sorted(by_kinds.items(), key=lambda each: sorted(each[0])):
        rows = sorted(kinds)
        wider = [other for other in by_kinds if kinds < other]
        # Items are compared only with the next larger sets of kinds; the other pairs follow from these.
        nearest = [other for other in wider if not any(kinds < between < other for between in wider)]
        for others in sorted(nearest, key=sorted):
            pairs += _largest(problem.sizes[rows], items, by_kinds[others])
        ordered = sorted(items, key=lambda item: (int(problem.sizes[rows, item].sum()), item))
        pairs += [
            (large, small)
            for small, large in pairwise(ordered)
            if (problem.sizes[rows, small] <= problem.sizes[rows, large]).all()
        ]
    return pairs


def _largest(sizes: Counts, items: list[int], others: list[int]) -> list[tuple[int, int]]:
    """For each item, the largest of `others` that is no larger on any of these kinds."""
    ordered = sorted(others, key=lambda item: (-int(sizes[:, item].sum()), item))
    fits: NDArray[np.bool_] = np.all(sizes[:, items][:, :, None] >= sizes[:, ordered][:, None, :], axis=0)
    first = np.argmax(fits, axis=1)
    return [(item, ordered[int(first[row])]) for row, item in enumerate(items) if fits[row, first[row]]]
