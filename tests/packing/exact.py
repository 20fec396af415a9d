"""The fewest GPUs of few pods, by trying every way: it shares no code with the packer."""

import math
from collections.abc import Iterable, Iterator, Sequence

from plimsoll.packing.gpus import FreeGPU, Item
from plimsoll.packing.nodes import FreeNode, NodeShape, PodNeed
from tests.packing.checking import taken

Masks = list[int]
"""Sets of pods as bits: those that one node or GPU can hold together."""


def fewest_gpus(items: Sequence[Item], supply: Iterable[FreeGPU], new: Iterable[str]) -> int | None:
    """New GPUs of the kinds `new` that the items need beside the supply; None: they cannot all be placed."""
    opened = _maximal(mask for kind in new for mask in _on_gpu(items, kind, 1000))
    return _fewest(len(items), [(1, opened)], [_on_gpu(items, gpu.kind, gpu.free) for gpu in supply])


def fewest_gpus_of_nodes(
    needs: Sequence[PodNeed], shapes: Sequence[NodeShape], nodes: Iterable[FreeNode] = ()
) -> int | None:
    """GPUs of new nodes that the pods need beside the free ones; None: they cannot all be placed."""
    opened = [(shape.gpus, _on_node(needs, _empty(shape))) for shape in shapes]
    return _fewest(len(needs), opened, [_on_node(needs, node) for node in nodes])


def _empty(shape: NodeShape) -> FreeNode:
    return FreeNode("", shape.kind, (1000,) * shape.gpus, shape.cpu_milli, shape.memory_mib, shape.pods)


def _fewest(count: int, opened: Sequence[tuple[int, Masks]], free: Iterable[Masks]) -> int | None:
    """The least sum of costs of opened holders such that each of so many is in one of them or in a free one."""
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
    """Those that are part of no other; what a holder takes, it takes without some of it, too."""
    kept: Masks = []
    for mask in sorted(set(masks), key=lambda mask: (-mask.bit_count(), mask)):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return kept


def _on_gpu(items: Sequence[Item], kind: str, free: int) -> Masks:
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
            all(0 < sizes[number] <= 1000 for number in held)
            and len(held) <= node.pods
            and sum(needs[number].cpu_milli for number in held) <= node.cpu_milli
            and sum(needs[number].memory_mib for number in held) <= node.memory_mib
            and _on_gpus([(sizes[number], needs[number].devices) for number in held], node.gpus)
        ):
            fitting.append(mask)
    return _maximal(fitting)


def _on_gpus(asked: Sequence[tuple[int, int]], free: Sequence[int]) -> bool:
    """Whether pods of (thousandths, devices) can all stand on GPUs with so much free."""
    states = {tuple(sorted(free))}
    for size, devices in sorted(asked, reverse=True):
        states = {tuple(sorted(left)) for gpus in states for left in _without(gpus, size, devices)}
    return bool(states)


def _without(gpus: tuple[int, ...], size: int, devices: int) -> Iterator[tuple[int, ...]]:
    """What can be left of GPUs after one share of a size on so many different ones of them."""
    if not devices:
        yield gpus
    elif len(gpus) >= devices:
        first, rest = gpus[0], gpus[1:]
        if first >= size:
            for left in _without(rest, size, devices - 1):
                yield first - size, *left
        for left in _without(rest, size, devices):
            yield first, *left
