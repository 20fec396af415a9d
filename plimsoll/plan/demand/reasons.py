"""Why no capacity is requested for pods: instance types that failed to launch, constraints that no node can meet."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from plimsoll.cluster.pools import PoolShape
from plimsoll.model.meta import Placement
from plimsoll.text import shortlist

BLOCKED: Final = (
    "every instance type that could serve it recently failed to launch and is skipped for a while: see status.blocked "
    "of its GPUDemand, or let a NodePool offer another type"
)
SURPLUS: Final = (
    "the smaller instance types that could serve it recently failed to launch, and a node with {gpus} GPUs would be "
    "requested where {enough} are enough: raise spec.demand.surplusGpus of the Environment to allow it, or wait"
)
NO_ROOM: Final = (
    "no free GPU has room for it, and no node that a NodePool offers can take it, even if it were empty: request fewer "
    "GPUs of one node, or less CPU or memory, or declare a NodePool of larger nodes"
)
UNREADABLE: Final = "a request for GPUs among them cannot be read"
NO_NODE: Final = "no node that is known has the whole GPUs that one of them requests"


def why_unserved(placement: Placement, shapes: Sequence[PoolShape], pools: int) -> str:
    """Why pods of this placement cannot use any GPU of the cluster or any of these shapes, and what to change."""
    if not shapes:
        what = "no NodePool allows an instance type with GPUs that is known" if pools else "there is no NodePool"
        return f"no GPU of the cluster could serve it, and {what}: declare a NodePool for it"
    selected = [shape for shape in shapes if replace(shape, taints=()).serves(placement)]
    if selected or all(placement.untolerated_taints(shape.taints) for shape in shapes):
        taints = {str(taint) for shape in selected or shapes for taint in placement.untolerated_taints(shape.taints)}
        constrained = placement.node_selector or placement.affinity
        which = "that fits its node selector and affinity" if constrained else "with GPUs"
        return f"it tolerates the taints of no NodePool {which} ({shortlist(sorted(taints))}): add tolerations"
    selected_labels = [f"{key}={value}" for key, value in placement.node_selector]
    selected_labels += [" and ".join(map(str, term)) for term in placement.affinity]
    return (
        f"no GPU of the cluster and no NodePool fits its node selector and affinity ({shortlist(selected_labels)}): "
        "change them, or declare a NodePool that fits"
    )
