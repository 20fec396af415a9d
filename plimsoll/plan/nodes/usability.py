"""Whether the pods of a Workspace may be placed on a node now."""

from plimsoll.model.cluster import Node
from plimsoll.plan.nodes.gpu_offer import Offer
from plimsoll.plan.nodes.index import gpu_devices
from plimsoll.plan.nodes.tolerance import Tolerance


def why_unusable(node: Node, tolerance: Tolerance) -> str:
    """Why nothing that tolerates so much may be placed on the node now; empty where it may."""
    if node.deleting:
        return "being deleted"
    if node.ready is False:
        return "not Ready"
    if node.unschedulable:
        return "cordoned"
    taints = tolerance.kept_away(node)
    return f"tainted {' '.join(taints)}" if taints else ""


def short_of_devices(node: Node, offer: Offer, devices: int, gpu_resource: str) -> str:
    """How many devices the node lacks for one pod; empty where it has them, or says nothing of itself.

    `gpu_resource` is the environment's, for offers that name none of their own.
    """
    if not node.allocatable:
        return ""
    resource = offer.resource or gpu_resource
    amount = gpu_devices(node, resource) or 0
    return "" if amount >= devices else f"{amount} {resource} allocatable, {devices} wanted"
