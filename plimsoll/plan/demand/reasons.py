"""Why no capacity is requested for pods: instance types that failed to launch, constraints that no node can meet."""

from dataclasses import replace
from typing import Final

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pools import not_ready
from plimsoll.labels import WORKSPACE
from plimsoll.model.meta import Placement
from plimsoll.plan.demand.usable import DemandInputs
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
    "no free GPU has room for it, and {new} can take it, even if it were empty: request fewer GPUs of one node, or "
    "less CPU or memory, or declare a NodePool of larger nodes"
)
UNREADABLE: Final = "a request for GPUs among them cannot be read"
NO_NODE: Final = "no node that is known has the whole GPUs that one of them requests"


def why_unserved(placement: Placement, inputs: DemandInputs) -> str:
    """Why pods of this placement find no room on nodes of the cluster, nor on new ones, whatever limits allow."""
    shapes, pools = inputs.shapes, inputs.snapshot.node_pools
    if any(shape.serves(placement) for shape in shapes):
        new = "no node that a NodePool offers" if pools else "there is no NodePool, and no node like the existing ones"
        return NO_ROOM.format(new=new)
    environment = inputs.snapshot.environment.spec
    full = any(
        gpu_devices(node, environment.devices_on(node.labels))
        for node in inputs.snapshot.nodes
        if node.usable and WORKSPACE not in node.labels and placement.admits(node.labels, node.taints, node.name)
    )
    here = "no node that it may run on has room for it, and" if full else "no usable node with GPUs fits it, and"
    if fitting := {shape.node_pool for shape in inputs.unready if shape.serves(placement)}:
        unready = [not_ready(pool.name, pool.unready) for pool in pools if pool.name in fitting]
        return f"{here} {shortlist(unready)}: mend it, or declare another NodePool"
    if not shapes:
        what = "no NodePool allows an instance type with GPUs that is known" if pools else "there is no NodePool"
        return f"{here} {what}: declare a NodePool for it"
    selected = [shape for shape in shapes if replace(shape, taints=()).serves(placement)]
    if selected or all(placement.untolerated_taints(shape.taints) for shape in shapes):
        taints = {str(taint) for shape in selected or shapes for taint in placement.untolerated_taints(shape.taints)}
        constrained = placement.node_selector or placement.affinity
        which = "that fits its node selector and affinity" if constrained else "with GPUs"
        of = "NodePool" if pools else "node"
        return f"{here} it tolerates the taints of no {of} {which} ({shortlist(sorted(taints))}): add tolerations"
    selected_labels = [f"{key}={value}" for key, value in placement.node_selector]
    selected_labels += [" and ".join(map(str, term)) for term in placement.affinity]
    return (
        f"{here} no NodePool fits its node selector and affinity ({shortlist(selected_labels)}): change them, or "
        "declare a NodePool that fits"
    )
