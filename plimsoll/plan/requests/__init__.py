"""Objects that request nodes from an autoscaler: trigger pods, CapacityBuffers, ProvisioningRequests."""

from plimsoll.plan.requests.capacity_request import AskedObjects, any_came, read_asked
from plimsoll.plan.requests.claims import made_of
from plimsoll.plan.requests.gate import lifts
from plimsoll.plan.requests.node_request import NodeAsk
from plimsoll.plan.requests.report import figures
from plimsoll.plan.requests.round import DemandAsking
from plimsoll.plan.requests.triggers import ORIGINAL_REQUESTS

__all__ = [
    "ORIGINAL_REQUESTS",
    "AskedObjects",
    "DemandAsking",
    "NodeAsk",
    "any_came",
    "figures",
    "lifts",
    "made_of",
    "read_asked",
]
