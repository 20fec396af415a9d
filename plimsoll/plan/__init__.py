"""Pure planning: `validate` gives verdicts, `plan` a Plan, `explain` the reasons for both."""

from plimsoll.plan.explaining import ClaimExplanation, Explanation, NodeExplanation, Sum, explain
from plimsoll.plan.planning import plan
from plimsoll.plan.validating import validate

__all__ = [
    "ClaimExplanation",
    "Explanation",
    "NodeExplanation",
    "Sum",
    "explain",
    "plan",
    "validate",
]
