"""Workspaces: how many nodes each needs, which nodes it is allocated, and its workload."""

from plimsoll.plan.workspaces.admitted_pod import AdmittedPod
from plimsoll.plan.workspaces.allocation import allocate
from plimsoll.plan.workspaces.alternatives import Judge, choose, of_others, others, split_by_alternative
from plimsoll.plan.workspaces.byo import ByoNodes
from plimsoll.plan.workspaces.existing import existing_nodes
from plimsoll.plan.workspaces.gpu_claim import claim_template
from plimsoll.plan.workspaces.inherited import (
    capacity_types,
    node_taints,
    pool_fields,
    pool_labels,
    pool_requirements,
    wanted_values,
)
from plimsoll.plan.workspaces.pod_fields import declared_pods, refused_pods
from plimsoll.plan.workspaces.pod_needs import host_need, requested_disk_gib
from plimsoll.plan.workspaces.pod_placement import known_placement, placements
from plimsoll.plan.workspaces.pod_security import ENFORCE, ENFORCE_VERSION, pod_security, refused_by_pod_security
from plimsoll.plan.workspaces.provisioned import ProvisionedNodes
from plimsoll.plan.workspaces.refused_fields import (
    missing_token,
    older_image,
    other_vendor,
    refused_settings,
    unread,
    unsupported,
)
from plimsoll.plan.workspaces.replicas import startable
from plimsoll.plan.workspaces.reserved import ended_reservations
from plimsoll.plan.workspaces.shard import queue_of_other_shard, shards_of_queues
from plimsoll.plan.workspaces.taken_names import name_conflicts
from plimsoll.plan.workspaces.volumes import (
    refused_volume,
    shared_volumes,
    unplaced_volume,
)
from plimsoll.plan.workspaces.workload import (
    LEADER_WORKER_SET,
    Scale,
    devices_of,
    server_allowance,
    spec_hash,
    workload_kind,
    workload_manifest,
)
from plimsoll.plan.workspaces.workspace_nodes import AppliedClaims, NodeUsers, WorkspaceNodes

__all__ = [
    "ENFORCE",
    "ENFORCE_VERSION",
    "LEADER_WORKER_SET",
    "AdmittedPod",
    "AppliedClaims",
    "ByoNodes",
    "Judge",
    "NodeUsers",
    "ProvisionedNodes",
    "Scale",
    "WorkspaceNodes",
    "allocate",
    "capacity_types",
    "choose",
    "claim_template",
    "declared_pods",
    "devices_of",
    "ended_reservations",
    "existing_nodes",
    "host_need",
    "known_placement",
    "missing_token",
    "name_conflicts",
    "node_taints",
    "of_others",
    "older_image",
    "other_vendor",
    "others",
    "placements",
    "pod_security",
    "pool_fields",
    "pool_labels",
    "pool_requirements",
    "queue_of_other_shard",
    "refused_by_pod_security",
    "refused_pods",
    "refused_settings",
    "refused_volume",
    "requested_disk_gib",
    "server_allowance",
    "shards_of_queues",
    "shared_volumes",
    "spec_hash",
    "split_by_alternative",
    "startable",
    "unplaced_volume",
    "unread",
    "unsupported",
    "wanted_values",
    "workload_kind",
    "workload_manifest",
]
