"""By what new nodes with as many GPUs are compared: their prices, or the memory of their GPUs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from plimsoll.packing.nodes.need import NodeShape

_GIB: Final = 1024


def rated(shapes: Sequence[NodeShape]) -> list[NodeShape]:
    """The shapes, each with a price. One whose price is not known is dearer for each GPU than all others; of several,
    that with less GPU memory is cheaper."""
    dearest = max((shape.price / shape.gpus for shape in shapes if shape.price is not None), default=1.0) or 1.0
    most = max(map(_gib, shapes), default=0)
    if not most and all(shape.price is None for shape in shapes):
        return [replace(shape, price=0.0) for shape in shapes]
    return [
        shape
        if shape.price is not None
        else replace(shape, price=dearest * shape.gpus * (1 + ((_gib(shape) or most) / most if most else 1)))
        for shape in shapes
    ]


def _gib(shape: NodeShape) -> int:
    """Memory of a GPU in whole GiB: of the same size, some report a few MiB more than others. 0 if it is not known."""
    return round((shape.gpu_memory_mib or 0) / _GIB)
