"""Packs shares onto GPUs, with a lower bound of the number of GPUs."""

from plimsoll.packing.gpus.dual_feasible import least_gpus
from plimsoll.packing.gpus.effort import Effort
from plimsoll.packing.gpus.integer_program import Program
from plimsoll.packing.gpus.knapsack import Knapsack
from plimsoll.packing.gpus.master import Master
from plimsoll.packing.gpus.problem import BinType, Pattern, Problem, ShareCounts
from plimsoll.packing.gpus.search import Found, pack_counts, prove
from plimsoll.packing.gpus.share_packing import ANY, Bin, FreeGPU, Item, Packing, pack, size_on

__all__ = [
    "ANY",
    "Bin",
    "BinType",
    "Effort",
    "Found",
    "FreeGPU",
    "Item",
    "Knapsack",
    "Master",
    "Packing",
    "Pattern",
    "Problem",
    "Program",
    "ShareCounts",
    "least_gpus",
    "pack",
    "pack_counts",
    "prove",
    "size_on",
]
