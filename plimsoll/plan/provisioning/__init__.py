"""Nodes for Workspaces: NodeClaims or a static NodePool."""

from plimsoll.plan.provisioning.node_claims import NodeClaimProvisioner
from plimsoll.plan.provisioning.provisioner import NodeTarget, Provisioner, ProvisionerContext
from plimsoll.plan.provisioning.shrinking import shrink
from plimsoll.plan.provisioning.static_pool import StaticNodePoolProvisioner

__all__ = [
    "NodeClaimProvisioner",
    "NodeTarget",
    "Provisioner",
    "ProvisionerContext",
    "StaticNodePoolProvisioner",
    "shrink",
]
