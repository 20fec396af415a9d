"""The fewest GPUs of a few pods by exhaustive search, without the packer's code."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.gpus import FreeGPU, Item
from plimsoll.packing.nodes import FreeNode, NodeShape, PodNeed
from tests.packing.checking import taken
from tests.packing.checking_nodes import empty, is_shared

_MOST_GIB: Final = 10**6
"""More than all GPUs of a cluster have together."""
Masks = list[int]
"""Sets of pods as bits: those that one node or GPU can hold together."""


def fewest_gpus(items: Sequence[Item], supply: Iterable[FreeGPU], new: Iterable[str]) -> int | None:
    """New GPUs of the kinds `new` that the items need in addition to the supply; None if they cannot all be placed."""
    opened = _maximal(mask for kind in new for mask in _on_gpu(items, kind, 1000))
    return _fewest(len(items), [(1, opened)], [_on_gpu(items, gpu.kind, gpu.free) for gpu in supply])


def fewest_gpus_of_nodes(
    needs: Sequence[PodNeed], shapes: Sequence[NodeShape], nodes: Iterable[FreeNode] = ()
) -> int | None:
    """GPUs of new nodes that the pods need in addition to the free ones; None if they cannot all be placed."""
    opened = [(shape.gpus, _on_node(needs, empty(shape))) for shape in shapes]
    return _fewest(len(needs), opened, [_on_node(needs, node) for node in nodes])


def least_memory_of_nodes(needs: Sequence[PodNeed], shapes: Sequence[NodeShape]) -> tuple[int, int] | None:
    """The fewest GPUs of new nodes, and the least GiB that so many have; None if not all pods can be placed."""
    gib = [round((shape.gpu_memory_mib or 0) / 1024) for shape in shapes]
    opened = [
        (shape.gpus * (_MOST_GIB + each), _on_node(needs, empty(shape)))
        for shape, each in zip(shapes, gib, strict=True)
    ]
    found = _fewest(len(needs), opened, ())
    return None if found is None else divmod(found, _MOST_GIB)


def _fewest(count: int, opened: Sequence[tuple[int, Masks]], free: Iterable[Masks]) -> int | None:
    """The lowest total cost of opened holders such that each item is in one of them or in a free one."""
    covered = {0}
    for masks in free:
        covered |= {held | mask for held in covered for mask in masks}
    every = (1 << count) - 1
    cost = [0] + [math.inf] * every
    for left in range(1, every + 1):
        first = left & -left
        cost[left] = min(
            (each + cost[left & ~mask] for each, masks in opened for mask in masks if mask & first), default=math.inf
        )
    best = min(cost[every & ~held] for held in covered)
    return None if best == math.inf else int(best)


def _maximal(masks: Iterable[int]) -> Masks:
    """The sets that are not part of another one; a holder that can hold a set can also hold its subsets."""
    kept: Masks = []
    for mask in sorted(set(masks), key=lambda mask: (-mask.bit_count(), mask)):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return kept


def _on_gpu(items: Sequence[Item], kind: str, free: Milli) -> Masks:
    sizes = [taken(item, kind) or 0 for item in items]
    fitting = []
    for mask in range(1, 1 << len(items)):
        held = [sizes[number] for number in range(len(items)) if mask >> number & 1]
        if all(0 < size <= 1000 for size in held) and sum(held) <= free:
            fitting.append(mask)
    return _maximal(fitting)


def _on_node(needs: Sequence[PodNeed], node: FreeNode) -> Masks:
    sizes = [need.milli.get(node.kind, need.milli.get("", 0)) for need in needs]
    fitting = []
    for mask in range(1, 1 << len(needs)):
        held = [number for number in range(len(needs)) if mask >> number & 1]
        if (
            all(0 < sizes[number] <= GPU_MILLI for number in held)
            and len({node.scheduler, *(needs[number].scheduler for number in held)} - {""}) < 2
            and len(held) <= node.pods
            and sum(needs[number].cpu_milli for number in held) <= node.cpu_milli
            and sum(needs[number].memory_mib for number in held) <= node.memory_mib
            and sum(needs[number].storage_mib for number in held) <= node.storage_mib
            and _on_gpus(
                [(sizes[number], needs[number].devices, is_shared(needs[number])) for number in held],
                node.devices,
                node.pods - len(held),
            )
        ):
            fitting.append(mask)
    return _maximal(fitting)


_State = tuple[tuple[Milli, bool], ...]
"""State of each GPU: the free part, and whether it was entirely free and is shared now."""


def _on_gpus(asked: Sequence[tuple[Milli, int, bool]], free: Sequence[Milli], reservations: int) -> bool:
    """Whether pods of (thousandths, devices, shared) all fit on GPUs with these free parts, with at most this many
    reservations."""
    states: set[_State] = {tuple(sorted((each, False) for each in free))}
    for size, devices, shared in sorted(asked, reverse=True):
        states = {tuple(sorted(left)) for gpus in states for left in _without(gpus, size, devices, shared)}
    return any(sum(reserved for _, reserved in gpus) <= reservations for gpus in states)


def _without(gpus: _State, size: Milli, devices: int, shared: bool) -> Iterator[_State]:
    """The free parts that can remain after one share of a size was placed on this many different GPUs."""
    if not devices:
        yield gpus
    elif len(gpus) >= devices:
        (left, reserved), rest = gpus[0], gpus[1:]
        if left >= size:
            now = reserved or (shared and left == GPU_MILLI)
            for others in _without(rest, size, devices - 1, shared):
                yield (left - size, now), *others
        for others in _without(rest, size, devices, shared):
            yield gpus[0], *others
