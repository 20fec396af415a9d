"""Nodes of a sandbox: a list of nodes, with the labels of GPU Feature Discovery."""

from plimsoll.sandbox.nodes.listed import ListedNode, node_manifest, parse_node_list, read_node_list, slice_manifest
from plimsoll.sandbox.nodes.making import STALL_SECONDS, NodeCounts, make_nodes, make_nodes_with
from plimsoll.sandbox.nodes.models import gpu_models
from plimsoll.sandbox.nodes.types import instance_types

__all__ = [
    "STALL_SECONDS",
    "ListedNode",
    "NodeCounts",
    "gpu_models",
    "instance_types",
    "make_nodes",
    "make_nodes_with",
    "node_manifest",
    "parse_node_list",
    "read_node_list",
    "slice_manifest",
]
