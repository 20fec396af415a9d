"""A lower bound of the cost of nodes, by an integer program: no packing of the pods onto these nodes costs less."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.gpus import Program
from plimsoll.packing.nodes import UNBOUNDED, FreeNode, NodeShape, PodNeed, pack_nodes

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


def least_weight(needs: Sequence[PodNeed], groups: Sequence[Alike], fixed: Sequence[FreeNode]) -> Least:
    """For all `needs`, on some nodes of the groups and on the free parts of `fixed`, which weigh nothing."""
    if not groups:
        return Least(0.0, ())
    program = Program()
    items = _items(needs)
    kept = [program.column(integer=True) for _ in groups]
    by_kind: dict[str, list[FreeNode]] = defaultdict(list)
    for node in fixed:
        by_kind[node.kind].append(node)
    nodes: list[dict[_Item, int]] = [{} for _ in groups]
    parts: dict[str, dict[_Item, int]] = {kind: {} for kind in by_kind}
    for item, count in items.items():
        for number, group in enumerate(groups):
            if _takes(group.node, item):
                nodes[number][item] = program.column()
        for kind in by_kind:
            if kind in dict(item[0]):
                parts[kind][item] = program.column()
        columns = [each[item] for each in (*nodes, *parts.values()) if item in each]
        program.rows.append((float(count), math.inf, dict.fromkeys(columns, 1.0)))
    for number, group in enumerate(groups):
        program.rows.append((0.0, float(group.count), {kept[number]: 1.0}))
        for amount, room in _resources(items):
            taken = {column: amount(item, group.node.kind) for item, column in nodes[number].items()}
            _row(program, taken, 0.0, {kept[number]: -room(group.node)})
    for kind, members in by_kind.items():
        for amount, room in _resources(items):
            taken = {column: amount(item, kind) for item, column in parts[kind].items()}
            _row(program, taken, sum(map(room, members)), {})
    for kinds, gpus in _least_gpus(needs, groups, fixed):
        of = {
            column: float(len(group.node.devices))
            for column, group in zip(kept, groups, strict=True)
            if group.node.kind in kinds
        }
        program.rows.append((float(gpus), math.inf, of))
    weights = {column: group.weight for column, group in zip(kept, groups, strict=True)}
    found = program.minimise(weights)
    if found is None:
        return Least(0.0, tuple(group.count for group in groups))
    values, weight = found
    return Least(max(0.0, weight), tuple(round(values[column]) for column in kept))


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


def _takes(node: FreeNode, item: _Item) -> bool:
    milli, devices, cpu, memory = item
    able = dict(milli).get(node.kind)
    return able is not None and len(node.devices) >= devices and node.cpu_milli >= cpu and node.memory_mib >= memory


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


def _row(program: Program, taken: dict[int, float], offered: float, kept: dict[int, float]) -> None:
    """Constraint: pods use at most what fixed nodes and the kept nodes have."""
    entries = {column: amount for column, amount in taken.items() if amount}
    rooms = {column: room * (1 + _SLACK) for column, room in kept.items()}
    if entries and offered < math.inf and all(room > -math.inf for room in rooms.values()):
        program.rows.append((-math.inf, offered * (1 + _SLACK), entries | rooms))
