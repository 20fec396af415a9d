"""Best fit decreasing: the largest share first, each on the GPU that it leaves with the least rest."""

from bisect import bisect_left, insort
from collections import Counter

from plimsoll.packing.gpus.problem import Counts, Pattern, Patterns, Problem


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
            for _ in range(count):
                existing.add(pattern[0], problem.rest(pattern), dict(pattern[1]))
        else:
            done[pattern] += count
    for bin_type, count in sorted(untouched.items()):
        for _ in range(count):
            existing.add(bin_type, problem.bin_types[bin_type].capacity, {})
    size = [-_least(problem, item) for item in range(len(demand))]
    kinds = [_kinds(problem, item) for item in range(len(demand))]
    by = (kinds, size) if choosy_first else (size, kinds)
    order = sorted(range(len(demand)), key=lambda item: (by[0][item], by[1][item], item))
    for item in order:
        for _ in range(int(demand[item])):
            if not existing.place(item) and not new.place(item):
                bin_type = _opened_for(problem, item)
                new.add(bin_type, problem.bin_types[bin_type].capacity, {})
                new.place(item)
    return done + existing.patterns() + new.patterns()


def _least(problem: Problem, item: int) -> int:
    sizes = problem.sizes[:, item]
    return int(sizes[sizes > 0].min())


def _kinds(problem: Problem, item: int) -> int:
    return int((problem.sizes[:, item] > 0).sum())


def _opened_for(problem: Problem, item: int) -> int:
    fitting = [t for t in problem.new_types if problem.sizes[problem.bin_types[t].kind, item] > 0]
    return min(fitting, key=lambda t: (problem.sizes[problem.bin_types[t].kind, item], t))


class _Open:
    """Open GPUs, by kind in order of what is still free."""

    def __init__(self, problem: Problem) -> None:
        self._sizes = problem.sizes.tolist()
        self._kind = [each.kind for each in problem.bin_types]
        self._free: list[list[tuple[int, int]]] = [[] for _ in self._sizes]
        self._held: list[tuple[int, dict[int, int]]] = []

    def add(self, bin_type: int, free: int, held: dict[int, int]) -> None:
        insort(self._free[self._kind[bin_type]], (free, len(self._held)))
        self._held.append((bin_type, held))

    def place(self, item: int) -> bool:
        best: tuple[int, int, int, int] | None = None
        for kind, free in enumerate(self._free):
            size = self._sizes[kind][item]
            if not size or not free:
                continue
            at = bisect_left(free, (size, 0))
            if at < len(free) and (best is None or (free[at][0] - size, kind) < best[:2]):
                best = (free[at][0] - size, kind, at, free[at][1])
        if best is None:
            return False
        rest, kind, at, index = best
        del self._free[kind][at]
        insort(self._free[kind], (rest, index))
        held = self._held[index][1]
        held[item] = held.get(item, 0) + 1
        return True

    def patterns(self) -> Patterns:
        found: Patterns = Counter()
        for bin_type, held in self._held:
            if held:
                pattern: Pattern = (bin_type, tuple(sorted(held.items())))
                found[pattern] += 1
        return found
