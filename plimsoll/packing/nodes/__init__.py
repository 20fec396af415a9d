"""Packs pods onto nodes: GPUs, CPU, memory and the number of pods together."""

from plimsoll.packing.nodes.heuristic import Heuristic
from plimsoll.packing.nodes.in_order import Unit, left_out_in_order
from plimsoll.packing.nodes.need import (
    HOST,
    FilledNode,
    FreeNode,
    Limit,
    NodePacking,
    NodeShape,
    PodNeed,
)
from plimsoll.packing.nodes.node_packing import all_fit, best_fit_gpus, pack_nodes
from plimsoll.packing.nodes.rules import UNKNOWN, Place, Rule, Rules

__all__ = [
    "HOST",
    "UNKNOWN",
    "FilledNode",
    "FreeNode",
    "Heuristic",
    "Limit",
    "NodePacking",
    "NodeShape",
    "Place",
    "PodNeed",
    "Rule",
    "Rules",
    "Unit",
    "all_fit",
    "best_fit_gpus",
    "left_out_in_order",
    "pack_nodes",
]
