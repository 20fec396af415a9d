"""Limits of an Environment, its NodePools and namespaces."""

from plimsoll.plan.limits.budget import (
    Budget,
    DemandUsage,
    environment_budget,
    environment_room,
    forbidden,
    reserved_keys,
)
from plimsoll.plan.limits.claim_quotas import claim_keys
from plimsoll.plan.limits.namespaces import NamespaceBudget, NamespaceUse, namespace_use, uncounted_quotas
from plimsoll.plan.limits.pod_quotas import PodQuotas

__all__ = [
    "Budget",
    "DemandUsage",
    "NamespaceBudget",
    "NamespaceUse",
    "PodQuotas",
    "claim_keys",
    "environment_budget",
    "environment_room",
    "forbidden",
    "namespace_use",
    "reserved_keys",
    "uncounted_quotas",
]
