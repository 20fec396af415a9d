"""Why nothing could serve a class of pods, for people."""

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.model.meta import Placement
from plimsoll.plan.pools import PoolShape
from plimsoll.text import shortlist


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
