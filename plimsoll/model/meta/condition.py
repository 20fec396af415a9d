"""Conditions, as Kubernetes objects carry them in `status.conditions`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from plimsoll.model.meta.base import Observed

Status = Literal["True", "False", "Unknown"]


def _or_empty(time: Any) -> Any:
    """A time that nobody set is null in what the apiserver sends."""
    return "" if time is None else time


class Condition(Observed):
    """One condition (metav1.Condition); times are RFC 3339 text, empty where nobody set them."""

    type: str
    status: Status
    reason: str = ""
    message: str = ""
    observed_generation: int | None = Field(default=None, validation_alias="observedGeneration")
    last_transition_time: Annotated[str, BeforeValidator(_or_empty)] = Field(
        default="", validation_alias="lastTransitionTime"
    )


def condition_of(conditions: Sequence[Condition], kind: str) -> Condition | None:
    """The condition of that type, None where there is none."""
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def without_heartbeats(conditions: Any) -> Any:
    """Drops the fields of node conditions that change by themselves, before validation."""
    if not isinstance(conditions, Sequence):
        return conditions
    return [
        {key: value for key, value in item.items() if key != "lastHeartbeatTime"} if isinstance(item, dict) else item
        for item in conditions
    ]
