"""Best fit decreasing: the largest share first, each on the GPU that it leaves with the least rest."""

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, replace

from plimsoll.packing.gpus.problem import Counts, Patterns, Problem


def best_fit(
    problem: Problem, demand: Counts | None = None, onto: Patterns | None = None, choosy_first: bool = False
) -> Patterns:
    """Packs the demand (all of the problem's where None) and gives all GPUs that hold something.

    `choosy_first` takes the shares with the fewest kinds to choose from before the largest.

    GPUs that hold something already (`onto`) and existing ones come before new ones. At most 22 % and one GPU above
    the fewest, where all GPUs are new and of one kind (Johnson, 1974).
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
    kinds = [_kinds(problem, item) for item in range(len(demand))]
    by = (kinds, size) if choosy_first else (size, kinds)
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


def _kinds(problem: Problem, item: int) -> int:
    return int((problem.sizes[:, item] > 0).sum())


def _opened_for(problem: Problem, item: int) -> int:
    fitting = [t for t in problem.new_types if problem.sizes[problem.bin_types[t].kind, item] > 0]
    return min(fitting, key=lambda t: (problem.sizes[problem.bin_types[t].kind, item], t))


@dataclass(frozen=True, slots=True)
class _Group:
    """GPUs that hold the same."""

    bin_type: int
    free: int
    held: tuple[tuple[int, int], ...]
    count: int


class _Open:
    """Open GPUs, by kind in order of what is still free; alike ones are one group."""

    def __init__(self, problem: Problem) -> None:
        self._sizes = problem.sizes.tolist()
        self._kind = [each.kind for each in problem.bin_types]
        self._free: list[list[tuple[int, int]]] = [[] for _ in self._sizes]
        """(free units, number of the group)"""
        self._groups: list[_Group] = []

    def add(self, group: _Group) -> None:
        if group.count:
            insort(self._free[self._kind[group.bin_type]], (group.free, len(self._groups)))
            self._groups.append(group)

    def drop_empty(self) -> None:
        """Takes the last group that was added out, as far as nothing was placed on it."""
        for kind, free in enumerate(self._free):
            self._free[kind] = [each for each in free if self._groups[each[1]].held]

    def place(self, item: int, count: int) -> int:
        """Places so many of an item, each where it leaves the least; how many found no place."""
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
        """As many copies as fit on one GPU, on as many alike as are needed; how many."""
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
