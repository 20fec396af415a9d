"""Pure planning: `validate` gives verdicts, `plan` a Plan, `explain` the reasons for both."""

from plimsoll.plan.explaining import ClaimExplanation, Explanation, NodeExplanation, ReplicaEstimate, explain
from plimsoll.plan.planning import plan
from plimsoll.plan.validating import validate

__all__ = [
    "ClaimExplanation",
    "Explanation",
    "NodeExplanation",
    "ReplicaEstimate",
    "explain",
    "plan",
    "validate",
]
