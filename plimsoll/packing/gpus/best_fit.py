"""Best fit decreasing: places the largest share first, each on the GPU that has the least free capacity left
afterwards."""

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, replace

from plimsoll.packing.gpus.problem import Counts, Patterns, Problem


def best_fit(
    problem: Problem, demand: Counts | None = None, onto: Patterns | None = None, constrained_first: bool = False
) -> Patterns:
    """Packs `demand`, by default that of the problem, and returns the patterns of all GPUs that are used.

    GPUs that are partly used (`onto`) and existing GPUs are filled before new ones. `constrained_first` places the
    shares with the fewest possible kinds of GPU first, instead of the largest.

    If all GPUs are new and of one kind, the result is at most 11/9 of the minimum, plus 4 GPUs (Johnson et al., 1974).
    """
    demand = problem.demand if demand is None else demand
    existing = _Open(problem)
    new = _Open(problem)
    untouched: Counter[int] = Counter({t: problem.bin_types[t].count or 0 for t in problem.supply_types})
    done: Patterns = Counter()
    smallest = min((_least(problem, item) for item in range(len(demand)) if demand[item]), default=0)
    for pattern, count in sorted((onto or Counter()).items()):
        untouched[pattern[0]] -= 0 if problem.bin_types[pattern[0]].new else count
        if smallest and problem.rest(pattern) >= smallest:
            existing.add(_Group(pattern[0], problem.rest(pattern), pattern[1], count))
        else:
            done[pattern] += count
    for bin_type, count in sorted(untouched.items()):
        existing.add(_Group(bin_type, problem.bin_types[bin_type].capacity, (), count))
    size = [-_least(problem, item) for item in range(len(demand))]
    kinds = (problem.sizes > 0).sum(axis=0).tolist()
    by = (kinds, size) if constrained_first else (size, kinds)
    for item in sorted(range(len(demand)), key=lambda item: (by[0][item], by[1][item], item)):
        left = new.place(item, existing.place(item, int(demand[item])))
        if left:
            bin_type = _opened_for(problem, item)
            new.add(_Group(bin_type, problem.bin_types[bin_type].capacity, (), left))
            new.place(item, left)
            new.drop_empty()
    return done + existing.patterns() + new.patterns()


def _least(problem: Problem, item: int) -> int:
    sizes = problem.sizes[:, item]
    return int(sizes[sizes > 0].min())


def _opened_for(problem: Problem, item: int) -> int:
    fitting = [t for t in problem.new_types if problem.sizes[problem.bin_types[t].kind, item] > 0]
    return min(fitting, key=lambda t: (problem.sizes[problem.bin_types[t].kind, item], t))


@dataclass(frozen=True, slots=True)
class _Group:
    """GPUs with the same items."""

    bin_type: int
    free: int
    held: tuple[tuple[int, int], ...]
    count: int


class _Open:
    """Open GPUs by kind, sorted by free units. Equal GPUs are one group."""

    def __init__(self, problem: Problem) -> None:
        self._sizes = problem.sizes.tolist()
        self._kind = [each.kind for each in problem.bin_types]
        self._free: list[list[tuple[int, int]]] = [[] for _ in self._sizes]
        """(free units, index of the group) of each open group, by kind."""
        self._groups: list[_Group] = []

    def add(self, group: _Group) -> None:
        if group.count:
            insort(self._free[self._kind[group.bin_type]], (group.free, len(self._groups)))
            self._groups.append(group)

    def drop_empty(self) -> None:
        """Removes the part of the last added group on which nothing was placed."""
        for kind, free in enumerate(self._free):
            self._free[kind] = [each for each in free if self._groups[each[1]].held]

    def place(self, item: int, count: int) -> int:
        """Places up to `count` copies of an item, each where the least free capacity is left. Returns how many found no
        place."""
        while count:
            best: tuple[int, int, int, int] | None = None
            for kind, free in enumerate(self._free):
                size = self._sizes[kind][item]
                if not size or not free:
                    continue
                at = bisect_left(free, (size, 0))
                if at < len(free) and (best is None or (free[at][0] - size, kind) < best[:2]):
                    best = (free[at][0] - size, kind, at, free[at][1])
            if best is None:
                break
            _, kind, at, _ = best
            count -= self._put(item, count, kind, at)
        return count

    def _put(self, item: int, count: int, kind: int, at: int) -> int:
        """Fills as many equal GPUs as needed with as many copies as fit on each. Returns the number of placed
        copies."""
        number = self._free[kind][at][1]
        group, size = self._groups[number], int(self._sizes[kind][item])
        copies = min(count, group.free // size)
        gpus = min(group.count, count // copies)
        if gpus == group.count:
            del self._free[kind][at]
        self._groups[number] = replace(group, count=group.count - gpus)
        held = dict(group.held)
        held[item] = held.get(item, 0) + copies
        self.add(_Group(group.bin_type, group.free - copies * size, tuple(sorted(held.items())), gpus))
        return copies * gpus

    def patterns(self) -> Patterns:
        found: Patterns = Counter()
        for group in self._groups:
            if group.held and group.count:
                found[group.bin_type, group.held] += group.count
        return found
