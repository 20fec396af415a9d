"""Workspaces: how many nodes each needs, which nodes it is allocated, and its workload."""

from plimsoll.plan.workspaces.allocation import allocate
from plimsoll.plan.workspaces.byo import ByoNodes
from plimsoll.plan.workspaces.existing import existing_nodes
from plimsoll.plan.workspaces.provisioned import ProvisionedNodes
from plimsoll.plan.workspaces.refused_fields import missing_token, unread, unsupported
from plimsoll.plan.workspaces.replicas import startable
from plimsoll.plan.workspaces.taken_names import name_conflicts
from plimsoll.plan.workspaces.volumes import refused_volume, shared_volumes
from plimsoll.plan.workspaces.workload import LEADER_WORKER_SET, Scale, spec_hash, workload_kind, workload_manifest
from plimsoll.plan.workspaces.workspace_nodes import AppliedClaims, NodeUsers, WorkspaceNodes

__all__ = [
    "LEADER_WORKER_SET",
    "AppliedClaims",
    "ByoNodes",
    "NodeUsers",
    "ProvisionedNodes",
    "Scale",
    "WorkspaceNodes",
    "allocate",
    "existing_nodes",
    "missing_token",
    "name_conflicts",
    "refused_volume",
    "shared_volumes",
    "spec_hash",
    "startable",
    "unread",
    "unsupported",
    "workload_kind",
    "workload_manifest",
]
