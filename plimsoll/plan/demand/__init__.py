"""Plans the GPU capacity that pending pods need and the cluster lacks."""

from plimsoll.plan.demand.cluster_state import ClusterState, ClusterStates
from plimsoll.plan.demand.demand import Demand, DemandPlan, PlannedNode, RequestedNode
from plimsoll.plan.demand.planner import DemandPlanner

__all__ = [
    "ClusterState",
    "ClusterStates",
    "Demand",
    "DemandPlan",
    "DemandPlanner",
    "PlannedNode",
    "RequestedNode",
]
