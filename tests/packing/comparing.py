"""Compares a packing of nodes with an exact one."""

from collections.abc import Sequence

from plimsoll.packing.nodes import FreeNode, NodeShape, PodNeed, pack_nodes
from tests.packing import checking_nodes
from tests.packing.exact import fewest_gpus_of_nodes


def worse_than_exact(needs: Sequence[PodNeed], shapes: Sequence[NodeShape], nodes: Sequence[FreeNode]) -> str:
    """How an exact packing is better: it has one more pod, or fewer GPUs; empty if it is not. Checks the packing, and
    that its bound is not above the exact number."""
    packing = pack_nodes(needs, shapes, nodes)
    checking_nodes.check(packing, needs, shapes, nodes)
    left = [need for need in needs if need.name in packing.unplaced]
    placed = [need for need in needs if need.name not in packing.unplaced]
    fewest = fewest_gpus_of_nodes(placed, shapes, nodes)
    assert fewest is not None
    assert packing.least <= fewest
    more = any(fewest_gpus_of_nodes([*placed, need], shapes, nodes) is not None for need in left)
    return f"{packing.gpus} GPUs, {fewest} suffice, {len(left)} left" if more or packing.gpus > fewest else ""
