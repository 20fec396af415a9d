"""Which kind of GPU each unit goes to, where it has a choice: so that every kind's nodes are used alike."""

from collections import defaultdict
from collections.abc import Sequence

from plimsoll.packing.gpus import Program
from plimsoll.packing.nodes.need import NodeShape
from plimsoll.packing.nodes.units import Unit

_HOMELESS = 1000.0
"""What a GPU without a place costs, against the use of the fullest kind."""

Group = tuple[tuple[str, ...], int]
"""Kinds and number of GPUs of units."""


def kinds_for(units: Sequence[Unit], nodes: Sequence[NodeShape]) -> list[tuple[str, ...]]:
    """For each unit one of its kinds, or all that nodes have where there is no need to choose.

    A linear program over groups of units: places of so many GPUs on the nodes of a kind, and CPU and memory, of which
    the kind that is used the most is used as little as can be.
    """
    there = sorted({node.kind for node in nodes})
    if len(there) < 2:
        return [unit.kinds for unit in units]
    groups: dict[Group, list[int]] = defaultdict(list)
    for number, unit in enumerate(units):
        groups[tuple(kind for kind in there if kind in unit.kinds), len(unit.gpus)].append(number)
    program = Program()
    used = program.column()
    cost = {used: 1.0}
    share: dict[tuple[Group, str], int] = {}
    for group, members in sorted(groups.items()):
        columns = {kind: program.column() for kind in group[0]}
        share |= {(group, kind): column for kind, column in columns.items()}
        homeless = program.column()
        cost[homeless] = _HOMELESS * group[1]
        program.rows.append((len(members), len(members), dict.fromkeys([*columns.values(), homeless], 1.0)))
    for kind in there:
        own = [node for node in nodes if node.kind == kind]
        here = {group: share[group, kind] for group in groups if (group, kind) in share}
        for gpus in sorted({group[1] for group in here}):
            places = sum(node.gpus // gpus for node in own)
            program.rows.append((0.0, places, {column: float(group[1] // gpus) for group, column in here.items()}))
        for resource in ("cpu_milli", "memory_mib"):
            offered = sum(getattr(node, resource) for node in own) or 1
            entries = {
                column: sum(getattr(units[number], resource) for number in groups[group]) / len(groups[group]) / offered
                for group, column in here.items()
            }
            program.rows.append((-float("inf"), 0.0, entries | {used: -1.0}))
    found = program.minimise(cost)
    chosen = [unit.kinds for unit in units]
    if found is None:
        return chosen
    for group, members in groups.items():
        quotas = {kind: found[0][share[group, kind]] for kind in group[0]}
        for number, kind in zip(_heavy_first(members, units), _dealt(quotas, len(members)), strict=True):
            chosen[number] = (kind,) if kind else units[number].kinds
    return chosen


def _heavy_first(members: Sequence[int], units: Sequence[Unit]) -> list[int]:
    return sorted(members, key=lambda each: (-units[each].cpu_milli, -units[each].memory_mib, units[each].gpus))


def _dealt(quotas: dict[str, float], count: int) -> list[str]:
    """Kinds in turn, each as often as its quota says; "" for none."""
    dealt = dict.fromkeys(quotas, 0)
    turns = []
    for turn in range(1, count + 1):
        # The kind that is the furthest behind its part of the turns so far.
        kind = max(quotas, key=lambda kind: (quotas[kind] * turn / count - dealt[kind], kind), default="")
        if kind:
            dealt[kind] += 1
        turns.append(kind)
    return turns
