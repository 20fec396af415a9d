"""Packs pods onto nodes: GPUs, CPU, memory and the number of pods together."""

from plimsoll.packing.nodes.heuristic import Heuristic
from plimsoll.packing.nodes.in_order import Unit, left_out_in_order
from plimsoll.packing.nodes.need import (
    UNBOUNDED,
    FilledNode,
    FreeNode,
    Limit,
    NodePacking,
    NodeShape,
    PodNeed,
    less,
)
from plimsoll.packing.nodes.packing import all_fit, best_fit_gpus, pack_nodes

__all__ = [
    "UNBOUNDED",
    "FilledNode",
    "FreeNode",
    "Heuristic",
    "Limit",
    "NodePacking",
    "NodeShape",
    "PodNeed",
    "Unit",
    "all_fit",
    "best_fit_gpus",
    "left_out_in_order",
    "less",
    "pack_nodes",
]
