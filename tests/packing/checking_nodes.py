"""Checks the properties of every packing onto nodes without the packer's own code."""

from collections import Counter
from collections.abc import Iterable, Sequence

from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.gpus import ANY
from plimsoll.packing.nodes import FilledNode, FreeNode, Limit, NodePacking, NodeShape, PodNeed


def check(
    packing: NodePacking,
    needs: Iterable[PodNeed],
    shapes: Sequence[NodeShape],
    free: Iterable[FreeNode] = (),
    limits: Iterable[Limit] = (),
) -> None:
    """Each pod is placed once, on its number of GPUs of one node; no node exceeds its GPUs, host resources or pods."""
    named = {need.name: need for need in needs}
    existing = {node.name: node for node in free}
    by_name = {shape.name: shape for shape in shapes}
    placed = [name for node in packing.nodes for name in node.pods]
    assert Counter([*placed, *packing.unplaced]) == Counter(named.keys())
    taken = [node.node for node in packing.nodes if node.node is not None]
    assert len(taken) == len(set(taken))
    for node in packing.nodes:
        _check_node(node, named, existing[node.node] if node.node else empty(by_name[node.shape or ""]))
    for limit in limits:
        used = sum(limit.uses.get(node.shape or "", 0) for node in packing.new_nodes)
        assert used <= max(0, limit.left)
    assert packing.lower_bound <= packing.least + 1e-6
    assert packing.least <= packing.gpus


def _check_node(filled: FilledNode, named: dict[str, PodNeed], node: FreeNode) -> None:
    assert filled.kind == node.kind
    assert len(filled.devices) == len(node.devices)
    assert filled.pods
    assert len({node.scheduler, *(named[name].scheduler for name in filled.pods)} - {""}) < 2
    for held, most in zip(filled.devices, node.devices, strict=True):
        assert len(held) == len(set(held))
        assert sum(size_on(named[name], node.kind) for name in held) <= most
    for name in filled.pods:
        assert sum(name in held for held in filled.devices) == named[name].devices
    reservations = sum(
        free == GPU_MILLI and any(is_shared(named[name]) for name in held)
        for held, free in zip(filled.devices, node.devices, strict=True)
    )
    assert len(filled.pods) + reservations <= node.pods
    assert sum(named[name].cpu_milli for name in filled.pods) <= node.cpu_milli
    assert sum(named[name].memory_mib for name in filled.pods) <= node.memory_mib
    assert sum(named[name].storage_mib for name in filled.pods) <= node.storage_mib


def empty(shape: NodeShape) -> FreeNode:
    """A new node of the shape."""
    host = shape.cpu_milli, shape.memory_mib, shape.pods
    return FreeNode("", shape.kind, (GPU_MILLI,) * shape.devices, *host, storage_mib=shape.storage_mib)


def is_shared(need: PodNeed) -> bool:
    """Whether its GPUs are shared, so that each has a reservation pod."""
    return any(size < GPU_MILLI for size in need.milli.values())


def size_on(need: PodNeed, kind: str) -> Milli:
    size = need.milli.get(kind, need.milli.get(ANY))
    assert size is not None, f"{need} may not be on {kind}"
    return size
