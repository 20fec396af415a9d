"""Nodes for Workspaces: NodeClaims or a static NodePool."""

from plimsoll.plan.provisioning.node_claims import NodeClaimProvisioner
from plimsoll.plan.provisioning.provisioner import Means, Provisioner, Wish
from plimsoll.plan.provisioning.static_pool import StaticNodePoolProvisioner

__all__ = [
    "Means",
    "NodeClaimProvisioner",
    "Provisioner",
    "StaticNodePoolProvisioner",
    "Wish",
]
