"""Why pods are pending: instance types that failed to launch, constraints that no node can meet."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from plimsoll.model.api import DemandSettings
from plimsoll.model.meta import Placement
from plimsoll.packing.nodes import PodNeed, takes
from plimsoll.plan.classes import class_needs, kinds_of
from plimsoll.plan.demand.packer import as_node_shape
from plimsoll.plan.demand.planned import PlannedClass
from plimsoll.plan.pools import PoolShape
from plimsoll.text import shortlist

BLOCKED: Final = (
    "every instance type that could serve it failed to come and is blocked for a while: see status.blocked of its "
    "GPUDemand, or let a NodePool offer another type"
)


def is_blocked(each: PlannedClass, blocked: Sequence[PoolShape]) -> bool:
    """Whether all types that could serve the class are blocked."""
    return not each.shapes and any(shape.serves(each.of.placement) for shape in blocked)


def why_blocked(
    each: PlannedClass, uids: Iterable[str], blocked: Sequence[PoolShape], settings: DemandSettings
) -> dict[str, str]:
    """Those of the pods that only new nodes of a blocked type could take, with that as the reason."""
    serving = [shape for shape in blocked if shape.serves(each.of.placement)]
    if not serving:
        return {}
    kinds = kinds_of((shape.kind, shape.gpu_memory_mib) for shape in serving)
    asking = {uid: each.members.shares[uid] for uid in uids}
    return {
        uid: BLOCKED
        for uid, need in class_needs(asking, kinds, settings).needs.items()
        if _could_take(serving, need) and not (uid in each.needs and _could_take(each.shapes, each.needs[uid]))
    }


def _could_take(shapes: Iterable[PoolShape], need: PodNeed) -> bool:
    return any(shape.kind in need.milli and takes(as_node_shape(shape), need) for shape in shapes)


def why_unserved(placement: Placement, shapes: Sequence[PoolShape], pools: int) -> str:
    """Of pods that no GPU of the cluster and none of these shapes may serve."""
    if not shapes:
        what = "no NodePool allows an instance type with GPUs that is known" if pools else "there is no NodePool"
        return f"no GPU of the cluster could serve it, and {what}: declare a NodePool for it"
    selected = [shape for shape in shapes if replace(shape, taints=()).serves(placement)]
    if selected or all(placement.kept_away(shape.taints) for shape in shapes):
        taints = {str(taint) for shape in selected or shapes for taint in placement.kept_away(shape.taints)}
        wishes = placement.node_selector or placement.affinity
        which = "that fits its node selector and affinity" if wishes else "with GPUs"
        return f"it tolerates the taints of no NodePool {which} ({shortlist(sorted(taints))}): add tolerations"
    said = [f"{key}={value}" for key, value in placement.node_selector]
    said += [" and ".join(map(str, term)) for term in placement.affinity]
    return (
        f"no GPU of the cluster and no NodePool fits its node selector and affinity ({shortlist(said)}): change "
        "them, or declare a NodePool that fits"
    )
