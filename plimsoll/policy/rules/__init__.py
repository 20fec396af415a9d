"""The rules, by family, in the order in which they are listed."""

from typing import Final

from plimsoll.policy.rule import Rule
from plimsoll.policy.rules import (
    access,
    budgets,
    capacity_pods,
    chart_versions,
    claim_drivers,
    claims,
    exemptions,
    gpu_shares,
    images,
    modes,
    node_pools,
    queue_names,
    queue_tree,
    selectors,
    shapes,
    training,
)
from plimsoll.policy.rules.chart_versions import CHART_FILE_KIND, charts
from plimsoll.policy.rules.claim_drivers import NODE_CLASS_GROUP
from plimsoll.policy.rules.claimed_gpus import GROUP as CLAIMS_GROUP
from plimsoll.policy.rules.exemptions import EXPIRED, expired
from plimsoll.policy.rules.images import VALUES_KIND
from plimsoll.policy.rules.queue_tree import UNKNOWN_RULE, KnownQueues, queue_findings
from plimsoll.policy.rules.training import TRAINER

__all__ = [
    "CHART_FILE_KIND",
    "CLAIMS_GROUP",
    "EXPIRED",
    "NODE_CLASS_GROUP",
    "RULES",
    "TRAINER",
    "UNKNOWN_RULE",
    "VALUES_KIND",
    "KnownQueues",
    "charts",
    "expired",
    "queue_findings",
]

RULES: Final[tuple[Rule, ...]] = tuple(
    rule
    for family in (
        shapes,
        modes,
        access,
        queue_names,
        queue_tree,
        training,
        gpu_shares,
        claims,
        claim_drivers,
        capacity_pods,
        budgets,
        node_pools,
        selectors,
        images,
        chart_versions,
        exemptions,
    )
    for rule in family.RULES
)
