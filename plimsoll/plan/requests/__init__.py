"""Objects that request nodes from an autoscaler: trigger pods, CapacityBuffers, ProvisioningRequests."""

from plimsoll.plan.requests.answers import nominations
from plimsoll.plan.requests.capacity_request import CapacityRequests, any_registered, by_kind, read_request
from plimsoll.plan.requests.claims import named_after_pool, served_by
from plimsoll.plan.requests.gate import gate_removals
from plimsoll.plan.requests.node_request import NodeRequest
from plimsoll.plan.requests.request_planner import RequestPlanner

__all__ = [
    "CapacityRequests",
    "NodeRequest",
    "RequestPlanner",
    "any_registered",
    "by_kind",
    "gate_removals",
    "named_after_pool",
    "nominations",
    "read_request",
    "served_by",
]
