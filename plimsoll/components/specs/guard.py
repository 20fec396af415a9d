"""GuardSpec: what a guard protects."""

from typing import Literal

from pydantic import Field

from plimsoll.model.meta import Declared

Layer = Literal["foundation", "environment"]


class GuardSpec(Declared):
    layer: Layer
    """`foundation`: cannot be deleted while an Environment exists; `environment`: while an Environment has capacity."""
    explanation: str = Field(min_length=1)
    """What to do instead of deleting the object, for people who read it."""
