"""Packing shares onto GPUs: the lower bound and a packing that meets it."""

from plimsoll.packing.gpus.effort import Clock, Effort
from plimsoll.packing.gpus.integer_program import Program
from plimsoll.packing.gpus.knapsack import Knapsack, Values
from plimsoll.packing.gpus.packing import ANY, Bin, FreeGPU, Item, Milli, Packing, Price, pack, pack_within, size_on

__all__ = [
    "ANY",
    "Bin",
    "Clock",
    "Effort",
    "FreeGPU",
    "Item",
    "Knapsack",
    "Milli",
    "Packing",
    "Price",
    "Program",
    "Values",
    "pack",
    "pack_within",
    "size_on",
]
