"""GPU capacity that unschedulable pods need and the cluster lacks."""

from plimsoll.plan.demand.demand import Demand, PlannedNode, Promise
from plimsoll.plan.demand.divided_supply import DividedSupply
from plimsoll.plan.demand.packer import PackedClass
from plimsoll.plan.demand.planner import DemandPlanner, demands
from plimsoll.plan.demand.pod_places import places
from plimsoll.plan.demand.served_placements import Holder, ServedPlacements
from plimsoll.plan.demand.supply import DemandSupply

__all__ = [
    "Demand",
    "DemandPlanner",
    "DemandSupply",
    "DividedSupply",
    "Holder",
    "PackedClass",
    "PlannedNode",
    "Promise",
    "ServedPlacements",
    "demands",
    "places",
]
