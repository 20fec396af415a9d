"""The APIs of autoscalers: Karpenter's NodePool, NodeClaim and NodeOverlay, CapacityBuffer, ProvisioningRequest."""

from plimsoll.model.karpenter.claim_event import ClaimEvent
from plimsoll.model.karpenter.node_claim import NodeClaim
from plimsoll.model.karpenter.node_overlay import NodeOverlay
from plimsoll.model.karpenter.node_pool import NodePool
from plimsoll.model.karpenter.node_pool_spec import Duration, NodePoolSpec
from plimsoll.model.karpenter.requests import CapacityBuffer, PodTemplate, ProvisioningRequest

__all__ = [
    "CapacityBuffer",
    "ClaimEvent",
    "Duration",
    "NodeClaim",
    "NodeOverlay",
    "NodePool",
    "NodePoolSpec",
    "PodTemplate",
    "ProvisioningRequest",
]
