"""KAI's Topology (kai.scheduler/v1alpha1): the labels by which nodes are near each other, the widest level first."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import Observed, ObservedObject, objects_of


class ObservedLevel(Observed):
    label: str = Field(default="", validation_alias="nodeLabel")
    alias: str = ""


class Topology(ObservedObject):
    levels: Annotated[tuple[ObservedLevel, ...], BeforeValidator(objects_of)] = Field(
        default=(), validation_alias=AliasPath("spec", "levels")
    )

    def down_to(self, level: str) -> tuple[str, ...]:
        """The labels of the levels down to this one, which is named by its label or its alias; none: it has no such
        level."""
        labels = [each.label for each in self.levels]
        for number, each in enumerate(self.levels):
            if level and level in (each.label, each.alias):
                return tuple(labels[: number + 1])
        return ()
