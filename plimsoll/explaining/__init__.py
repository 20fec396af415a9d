"""Explains decisions, pure: why pods, nodes, Workspaces, demands, queues and namespaces have GPUs or none, and which
change would help, proven by a plan with it."""

from plimsoll.explaining.auditing import Audit, AuditFinding, Section, audit
from plimsoll.explaining.causes import (
    CLAIMS,
    CONDITIONS,
    DEMANDS,
    EVENTS,
    NODES,
    POD_CONDITIONS,
    PODS,
    STEPS,
    WORKSPACES,
    no_node_comes,
)
from plimsoll.explaining.chain import Chain, Link, Remedy, State, Step, StepReason
from plimsoll.explaining.difference import Difference, Figures, compare, with_manifests
from plimsoll.explaining.explanation import ClaimExplanation, Explanation, NodeExplanation, ReplicaEstimate, explain
from plimsoll.explaining.groups import why_demand, why_namespace, why_queue
from plimsoll.explaining.nodes import why_node
from plimsoll.explaining.planned_demand import PlannedDemand, plan_demand, pods_by_reason
from plimsoll.explaining.pods import proven_remedies, why_pod
from plimsoll.explaining.workspaces import why_workspace

__all__ = [
    "CLAIMS",
    "CONDITIONS",
    "DEMANDS",
    "EVENTS",
    "NODES",
    "PODS",
    "POD_CONDITIONS",
    "STEPS",
    "WORKSPACES",
    "Audit",
    "AuditFinding",
    "Chain",
    "ClaimExplanation",
    "Difference",
    "Explanation",
    "Figures",
    "Link",
    "NodeExplanation",
    "PlannedDemand",
    "Remedy",
    "ReplicaEstimate",
    "Section",
    "State",
    "Step",
    "StepReason",
    "audit",
    "compare",
    "explain",
    "no_node_comes",
    "plan_demand",
    "pods_by_reason",
    "proven_remedies",
    "why_demand",
    "why_namespace",
    "why_node",
    "why_pod",
    "why_queue",
    "why_workspace",
    "with_manifests",
]
