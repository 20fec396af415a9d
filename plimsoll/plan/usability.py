"""Whether anything may be placed on a node now."""

from plimsoll.model.node import Node
from plimsoll.plan.node_index import gpu_devices
from plimsoll.plan.tolerations import Tolerance


def why_unusable(node: Node, tolerance: Tolerance, gpu_resource: str) -> str:
    """Why pods that tolerate so much may not be placed on the node now; empty where they may."""
    if node.deleting:
        return "being deleted"
    if node.ready is False:
        return "not Ready"
    if node.unschedulable:
        return "cordoned"
    taints = tolerance.kept_away(node)
    if taints:
        return f"tainted {' '.join(taints)}"
    if gpu_devices(node, gpu_resource) == 0:
        return f"0 {gpu_resource} allocatable"
    return ""
