"""Packing pods onto nodes: GPUs, CPU, memory and pods at once."""

from plimsoll.packing.nodes.bound import PackingProof, ShareWorth
from plimsoll.packing.nodes.filling import Filling
from plimsoll.packing.nodes.need import UNBOUNDED, FilledNode, FreeNode, NodePacking, NodeShape, PodNeed, less
from plimsoll.packing.nodes.packing import pack_nodes, pack_nodes_within
from plimsoll.packing.nodes.units import group, large_first, place, takes
from plimsoll.packing.nodes.use import NodeUse

__all__ = [
    "UNBOUNDED",
    "FilledNode",
    "Filling",
    "FreeNode",
    "NodePacking",
    "NodeShape",
    "NodeUse",
    "PackingProof",
    "PodNeed",
    "ShareWorth",
    "group",
    "large_first",
    "less",
    "pack_nodes",
    "pack_nodes_within",
    "place",
    "takes",
]
