"""The APIs of autoscalers: Karpenter's NodePool, NodeClaim and NodeOverlay, CapacityBuffer, ProvisioningRequest."""

from plimsoll.model.karpenter.aks_node_class import AksNodeClass
from plimsoll.model.karpenter.claim_event import ClaimEvent
from plimsoll.model.karpenter.node_claim import NodeClaim
from plimsoll.model.karpenter.node_class import RESERVATION_LABELS, Ec2NodeClass, NodeClass, Reservation
from plimsoll.model.karpenter.node_overlay import NodeOverlay
from plimsoll.model.karpenter.node_pool import NodePool
from plimsoll.model.karpenter.node_pool_spec import OPERATORS, Duration, NodePoolSpec
from plimsoll.model.karpenter.request_event import RequestEvent
from plimsoll.model.karpenter.requests import CapacityBuffer, PodTemplate, ProvisioningRequest

__all__ = [
    "OPERATORS",
    "RESERVATION_LABELS",
    "AksNodeClass",
    "CapacityBuffer",
    "ClaimEvent",
    "Duration",
    "Ec2NodeClass",
    "NodeClaim",
    "NodeClass",
    "NodeOverlay",
    "NodePool",
    "NodePoolSpec",
    "PodTemplate",
    "ProvisioningRequest",
    "RequestEvent",
    "Reservation",
]
