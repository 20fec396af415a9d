"""Hourly costs of capacity: of a cluster, of its idle part, of a Plan, and possible savings; pure.

Prices are those of the catalog: the Environment's `catalog.prices`, in any one currency.
"""

from plimsoll.cost.cluster import ClusterCost, NodeCost, cluster_cost, node_cost
from plimsoll.cost.planned import PlannedCost, operation_price, planned_cost
from plimsoll.cost.prices import Prices
from plimsoll.cost.removable_nodes import GroupSavings, Move, Moving, Savings, savings

__all__ = [
    "ClusterCost",
    "GroupSavings",
    "Move",
    "Moving",
    "NodeCost",
    "PlannedCost",
    "Prices",
    "Savings",
    "cluster_cost",
    "node_cost",
    "operation_price",
    "planned_cost",
    "savings",
]
