"""GuardSpec: what a guard protects."""

from typing import Literal, Self

from pydantic import Field, model_validator

from plimsoll.model.meta import Declared

Layer = Literal["foundation", "environment"]


class GuardSpec(Declared):
    """What a guard protects."""

    layer: Layer
    """`foundation`: cannot be deleted while an Environment exists; `environment`: while an Environment has capacity."""
    environment: str | None = Field(default=None, min_length=1)
    """Of the layer `environment`: the Environment whose capacity counts; absent: any."""
    explanation: str = Field(min_length=1)
    """What to do instead of deleting the object, for people who read it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.layer == "foundation" and self.environment is not None:
            raise ValueError("environment has no effect on the layer 'foundation': remove it")
        return self
