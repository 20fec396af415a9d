"""Pure planning: `validate` gives verdicts, `plan` a Plan."""

from plimsoll.plan.known import Known
from plimsoll.plan.planning import plan
from plimsoll.plan.validating import validate

__all__ = [
    "Known",
    "plan",
    "validate",
]
