"""Limits of an Environment, its NodePools and namespaces."""

from plimsoll.plan.limits.budget import (
    Budget,
    NamespaceBudget,
    environment_budget,
    environment_room,
    forbidden,
    reserved_keys,
)
from plimsoll.plan.limits.demand_holding import DemandHolding

__all__ = [
    "Budget",
    "DemandHolding",
    "NamespaceBudget",
    "environment_budget",
    "environment_room",
    "forbidden",
    "reserved_keys",
]
