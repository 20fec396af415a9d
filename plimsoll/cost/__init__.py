"""Hourly costs of capacity: of a cluster, of its idle part, of a Plan, and possible savings; pure.

Prices are the Environment's `catalog.prices`, else the catalog's list prices in the same currency.
"""

from plimsoll.cost.hourly import ClusterCost, NodeCost, cluster_cost, cost_by_owner, node_cost
from plimsoll.cost.planned import PlannedCost, nodes_cost, operation_price, planned_cost
from plimsoll.cost.prices import UNPRICED, PriceBasis, Prices
from plimsoll.cost.removable_nodes import GroupSavings, Move, Moving, Savings, savings

__all__ = [
    "UNPRICED",
    "ClusterCost",
    "GroupSavings",
    "Move",
    "Moving",
    "NodeCost",
    "PlannedCost",
    "PriceBasis",
    "Prices",
    "Savings",
    "cluster_cost",
    "cost_by_owner",
    "node_cost",
    "nodes_cost",
    "operation_price",
    "planned_cost",
    "savings",
]
