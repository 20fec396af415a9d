"""CapacityPoint: the GPUs of the cluster and their price when a delta was applied."""

from typing import Annotated, Final

from pydantic import Field

from plimsoll.model.meta import Reported

MOST_POINTS: Final = 128
"""Points that a status keeps, over a year."""


class CapacityPoint(Reported):
    """GPUs and their price at one time."""

    time: str
    """RFC 3339: when a delta was applied. The point is of the time before it took effect."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """Allocatable GPUs of all nodes."""
    cost: Annotated[float, Field(ge=0)] | None = None
    """Price of the nodes an hour, in the currency of the catalog; absent where no price is known."""
