"""A lower bound of the cost of nodes, by an integer program: no packing of the pods onto these nodes costs less."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.packing import GPU_MILLI, UNBOUNDED, Milli
from plimsoll.packing.gpus import Program
from plimsoll.packing.nodes import FreeNode, NodeShape, PodNeed, pack_nodes

_PARTS: Final = (501, 334, 251, 201)
"""A GPU can hold at most 1, 2, 3 or 4 shares of at least these thousandths."""
_SLACK: Final = 1e-6
"""Relative amount by which resources are overstated, so that the solver's rounding does not raise the bound."""
_ITEMS: Final = 400
"""Maximum number of different pods; with more, CPU and memory are rounded down."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes that count as equal, each as large as the largest of them."""

    node: FreeNode
    """Without pods."""
    count: int
    weight: float
    """Of one node."""


@dataclass(frozen=True, slots=True)
class Least:
    weight: float
    """Total weight of the nodes that every packing needs."""
    counts: tuple[int, ...]
    """Number of nodes of each group at the lowest weight, as if a pod's GPUs, CPU and memory could be on different
    nodes."""


_Item = tuple[tuple[tuple[str, Milli], ...], int, int, int]
"""Thousandths of a GPU by kind, GPUs, CPU and memory of one pod."""
_Amount = Callable[[_Item, str], float]
_Room = Callable[[FreeNode], float]
_Row = tuple[float, float, dict[int, float]]
"""Bounds of a sum, and the columns with their factors."""


def least_weight(needs: Sequence[PodNeed], groups: Sequence[Alike], fixed: Sequence[FreeNode]) -> Least:
    """For all `needs`, on some nodes of the groups and on the free parts of `fixed`, which weigh nothing."""
    if not groups:
        return Least(0.0, ())
    program = Program()
    kept = [program.column(integer=True) for _ in groups]
    by_kind: dict[str, list[FreeNode]] = defaultdict(list)
    for node in fixed:
        by_kind[node.kind].append(node)
    places = [
        *(_Place((group.node,), column, group.count) for column, group in zip(kept, groups, strict=True)),
        *(_Place(tuple(nodes)) for nodes in by_kind.values()),
    ]
    items = _items(needs)
    for item, count in items.items():
        columns = [place.column_of(item, program) for place in places if place.takes(item)]
        program.rows.append((float(count), math.inf, dict.fromkeys(columns, 1.0)))
    resources = _resources(items)
    for place in places:
        program.rows.extend(place.rows(resources))
    for kinds, gpus in _least_gpus(needs, groups, fixed):
        offering = {
            column: float(len(group.node.devices))
            for column, group in zip(kept, groups, strict=True)
            if group.node.kind in kinds
        }
        program.rows.append((float(gpus), math.inf, offering))
    weights = {column: group.weight for column, group in zip(kept, groups, strict=True)}
    found = program.minimise(weights)
    if found is None:
        return Least(0.0, tuple(group.count for group in groups))
    values, weight = found
    return Least(max(0.0, weight), tuple(round(values[column]) for column in kept))


class _Place:
    """Nodes of one kind where pods can be: a group of equal nodes, of which the program keeps some, or all fixed ones
    together, which are there anyway."""

    def __init__(self, nodes: Sequence[FreeNode], kept: int | None = None, count: int = 0) -> None:
        self._nodes = nodes
        self._kind = nodes[0].kind
        self._kept = kept
        """The column with how many of the group are kept."""
        self._count = count
        self._columns: dict[_Item, int] = {}

    def takes(self, item: _Item) -> bool:
        milli, devices, cpu, memory = item
        able = dict(milli).get(self._kind)
        if able is None or self._kept is None:
            return able is not None
        (node,) = self._nodes
        return len(node.devices) >= devices and node.cpu_milli >= cpu and node.memory_mib >= memory

    def column_of(self, item: _Item, program: Program) -> int:
        """A new column: how many pods like this one are here."""
        return self._columns.setdefault(item, program.column())

    def rows(self, resources: Sequence[tuple[_Amount, _Room]]) -> Iterator[_Row]:
        """Pods use at most what the fixed nodes, or the kept ones, have."""
        if self._kept is not None:
            yield 0.0, float(self._count), {self._kept: 1.0}
        for amount, room in resources:
            entries = {column: used for item, column in self._columns.items() if (used := amount(item, self._kind))}
            offered = sum(map(room, self._nodes)) * (1 + _SLACK)
            if entries and offered < math.inf:
                if self._kept is None:
                    yield -math.inf, offered, entries
                else:
                    yield -math.inf, 0.0, entries | {self._kept: -offered}


def _least_gpus(
    needs: Sequence[PodNeed], groups: Sequence[Alike], fixed: Sequence[FreeNode]
) -> Iterator[tuple[frozenset[str], int]]:
    """GPUs that the pods of some kinds need on nodes of the groups, where none of them fits a GPU of other kinds."""
    for kinds in _apart({frozenset(need.milli) for need in needs}):
        shapes = [
            NodeShape(str(number), node.kind, len(node.devices), node.cpu_milli, node.memory_mib, pods=node.pods)
            for number, node in enumerate(group.node for group in groups)
            if node.kind in kinds
        ]
        free = [node for node in fixed if node.kind in kinds]
        packing = pack_nodes([need for need in needs if kinds.issuperset(need.milli)], shapes, free)
        if not packing.unplaced:
            yield kinds, packing.least


def _apart(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The sets, united where they have something in common."""
    found: list[frozenset[str]] = []
    for each in sorted(sets, key=sorted):
        touching = [other for other in found if other & each]
        found = [other for other in found if not other & each] + [each.union(*touching)]
    return found


def _items(needs: Sequence[PodNeed]) -> Counter[_Item]:
    exact = Counter((tuple(sorted(n.milli.items())), n.devices, n.cpu_milli, n.memory_mib) for n in needs)
    if len(exact) <= _ITEMS:
        return exact
    rounded: Counter[_Item] = Counter()
    for (milli, devices, cpu, memory), count in exact.items():
        rounded[milli, devices, _floor(cpu), _floor(memory)] += count
    return rounded


def _floor(amount: int) -> int:
    """The power of two below."""
    return 1 << (amount.bit_length() - 1) if amount > 0 else 0


def _resources(items: Mapping[_Item, int]) -> list[tuple[_Amount, _Room]]:
    """Resources that pods use on a node of a kind, and that a node has."""

    def parts(size: int) -> tuple[_Amount, _Room]:
        return (
            lambda item, kind: float(item[1] * (dict(item[0])[kind] // size)),
            lambda node: float(sum(free // size for free in node.devices)),
        )

    def together(devices: int) -> tuple[_Amount, _Room]:
        return (
            lambda item, kind: float(item[1] >= devices and dict(item[0])[kind] == GPU_MILLI),
            lambda node: float(sum(free == GPU_MILLI for free in node.devices) // devices),
        )

    return [
        (
            lambda item, kind: item[1] * float(dict(item[0])[kind]) / GPU_MILLI,
            lambda node: float(sum(node.devices)) / GPU_MILLI,
        ),
        (lambda item, _: item[2] / 1000, lambda node: _amount(node.cpu_milli) / 1000),
        (lambda item, _: item[3] / 1024, lambda node: _amount(node.memory_mib) / 1024),
        (lambda _, __: 1.0, lambda node: _amount(node.pods)),
        *map(parts, _PARTS),
        *map(together, sorted({item[1] for item in items} - {1})),
    ]


def _amount(amount: int) -> float:
    return math.inf if amount >= UNBOUNDED else float(max(0, amount))
