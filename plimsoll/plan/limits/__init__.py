"""Limits of an Environment, its NodePools and namespaces."""

from plimsoll.plan.limits.budget import (
    Budget,
    DemandHolding,
    NamespaceBudget,
    environment_budget,
    environment_room,
    forbidden,
    reserved_keys,
)

__all__ = [
    "Budget",
    "DemandHolding",
    "NamespaceBudget",
    "environment_budget",
    "environment_room",
    "forbidden",
    "reserved_keys",
]
