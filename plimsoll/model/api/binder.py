"""Settings of the share binder (`plimsoll bind`)."""

from typing import Final

from pydantic import Field

from plimsoll.model.kai import ReservationSettings
from plimsoll.model.meta import Declared

SCHEDULER: Final = "plimsoll"


class BinderSettings(Declared):
    """What the binder binds, and how it waits."""

    reservation: ReservationSettings
    scheduler_name: str = Field(default=SCHEDULER, min_length=1, max_length=253)
    """`spec.schedulerName` of the pods that it binds; no other scheduler may serve it."""
    hold_seconds: float = Field(default=60.0, gt=0)
    """How long a node where a reservation failed gets no other one; doubled with each failure in a row."""
    hold_limit_seconds: float = Field(default=900.0, gt=0)
    """The longest of these pauses."""
