"""Conditions, as Kubernetes objects carry them in `status.conditions`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from plimsoll.model.meta.base import Observed

Status = Literal["True", "False", "Unknown"]


def _or_empty(time: Any) -> Any:
    """The apiserver sends a time that is not set as null."""
    return "" if time is None else time


class Condition(Observed):
    """One condition (metav1.Condition); times are RFC 3339, empty if not set."""

    type: str
    status: Status
    reason: str = ""
    message: str = ""
    observed_generation: int | None = Field(default=None, validation_alias="observedGeneration")
    last_transition_time: Annotated[str, BeforeValidator(_or_empty)] = Field(
        default="", validation_alias="lastTransitionTime"
    )


def condition_of(conditions: Sequence[Condition], kind: str) -> Condition | None:
    """The condition of that type; None if there is none."""
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def condition_text(condition: Condition | None) -> str:
    """`Reason: message` of a condition; parts that are empty are left out."""
    if condition is None:
        return ""
    return ": ".join(dict.fromkeys(part for part in (condition.reason, condition.message) if part))


def without_heartbeats(conditions: Any) -> Any:
    """Drops the fields of node conditions that change without a transition, before validation."""
    if not isinstance(conditions, Sequence):
        return conditions
    return [
        {key: value for key, value in item.items() if key != "lastHeartbeatTime"} if isinstance(item, dict) else item
        for item in conditions
    ]
