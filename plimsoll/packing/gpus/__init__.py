"""Packing shares onto GPUs: the lower bound and a packing that meets it."""

from plimsoll.packing.gpus.effort import Clock, Effort
from plimsoll.packing.gpus.integer_program import Program
from plimsoll.packing.gpus.packing import ANY, Bin, FreeGPU, Item, Packing, pack, size_on
from plimsoll.packing.gpus.problem import ShareCounts
from plimsoll.packing.gpus.search import Found, pack_counts, prove

__all__ = [
    "ANY",
    "Bin",
    "Clock",
    "Effort",
    "Found",
    "FreeGPU",
    "Item",
    "Packing",
    "Program",
    "ShareCounts",
    "pack",
    "pack_counts",
    "prove",
    "size_on",
]
