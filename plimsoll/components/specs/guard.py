"""GuardSpec: what a guard is for."""

from typing import Literal

from pydantic import Field

from plimsoll.model.meta import Declared

Layer = Literal["foundation", "environment"]


class GuardSpec(Declared):
    layer: Layer
    """`foundation`: kept while an Environment exists; `environment`: while capacity of one lives."""
    explanation: str = Field(min_length=1)
    """What to do instead of deleting, for those who read the object."""
