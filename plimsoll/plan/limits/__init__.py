"""Limits of an Environment, its NodePools and namespaces."""

from plimsoll.plan.limits.budget import (
    Budget,
    DemandUsage,
    NamespaceBudget,
    environment_budget,
    environment_room,
    forbidden,
    reserved_keys,
)

__all__ = [
    "Budget",
    "DemandUsage",
    "NamespaceBudget",
    "environment_budget",
    "environment_room",
    "forbidden",
    "reserved_keys",
]
