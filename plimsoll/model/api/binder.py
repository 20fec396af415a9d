"""Settings of the share binder (`plimsoll bind`)."""

from typing import Final

from pydantic import Field

from plimsoll.model.api.placement_strategy import PlacementByPool
from plimsoll.model.kai import ReservationSettings
from plimsoll.model.meta import Declared

SCHEDULER: Final = "plimsoll"


class BinderSettings(Declared):
    """Which pods the binder binds, and how long it waits."""

    reservation: ReservationSettings
    scheduler_name: str = Field(default=SCHEDULER, min_length=1, max_length=253)
    """`spec.schedulerName` of the pods that it binds; no other scheduler may use this name."""
    placement: PlacementByPool = Field(default_factory=dict, max_length=256)
    """`spread`: on the nodes of this NodePool, pods get the node and the GPUs with the most free; else the least."""
    hold_seconds: float = Field(default=60.0, gt=0)
    """How long no reservation is created on a node after one failed there; doubled with each consecutive failure."""
    hold_limit_seconds: float = Field(default=900.0, gt=0)
    """The longest of these pauses."""
