"""Blocked types: instance types that failed to come, as the reason why pods wait."""

from collections.abc import Iterable, Sequence
from typing import Final

from plimsoll.packing.nodes import PodNeed, takes
from plimsoll.plan.classes import class_needs, kinds_of
from plimsoll.plan.demand.packer import as_node_shape
from plimsoll.plan.demand.planned import PlannedClass
from plimsoll.plan.pools import PoolShape

BLOCKED: Final = (
    "every instance type that could serve it failed to come and is blocked for a while: see status.blocked of its "
    "GPUDemand, or let a NodePool offer another type"
)


def is_blocked(each: PlannedClass, blocked: Sequence[PoolShape]) -> bool:
    """Whether all types that could serve the class are blocked."""
    return not each.shapes and any(shape.serves(each.of.placement) for shape in blocked)


def why_blocked(
    each: PlannedClass, uids: Iterable[str], blocked: Sequence[PoolShape], assumed_milli: int
) -> dict[str, str]:
    """Those of the pods that only new nodes of a blocked type could take, with that as the reason."""
    serving = [shape for shape in blocked if shape.serves(each.of.placement)]
    if not serving:
        return {}
    kinds = kinds_of((shape.kind, shape.gpu_memory_mib) for shape in serving)
    asking = {uid: each.members.shares[uid] for uid in uids}
    return {
        uid: BLOCKED
        for uid, need in class_needs(asking, kinds, assumed_milli).needs.items()
        if _could_take(serving, need) and not (uid in each.needs and _could_take(each.shapes, each.needs[uid]))
    }


def _could_take(shapes: Iterable[PoolShape], need: PodNeed) -> bool:
    return any(shape.kind in need.milli and takes(as_node_shape(shape), need) for shape in shapes)
