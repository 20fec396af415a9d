"""Pure planning: `validate` gives verdicts, `plan` the delta, `explain` the reasons for both."""

from plimsoll.plan.explaining import ClaimStory, NodeStory, Story, Sum, explain
from plimsoll.plan.planning import plan
from plimsoll.plan.validating import validate

__all__ = [
    "ClaimStory",
    "NodeStory",
    "Story",
    "Sum",
    "explain",
    "plan",
    "validate",
]
