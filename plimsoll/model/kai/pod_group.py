"""KAI's PodGroup (scheduling.run.ai/v2alpha2): pods that are scheduled together, as created by KAI's podgrouper."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject

POD_GROUP_NAME: Final = "pod-group-name"
"""Annotation of a pod: the PodGroup in its namespace that it belongs to."""


def _least(spec: Any) -> Any:
    """Minimum members of the group, else the sum of its subgroups'; nested subgroups do not count."""
    if not isinstance(spec, dict):
        return spec
    own = spec.get("minMember")
    return own if own is not None else sum(_of_subgroups(spec.get("subGroups") or ()))


def _of_subgroups(groups: Iterable[Any]) -> Iterable[int]:
    return (int(each.get("minMember") or 0) for each in groups if isinstance(each, dict))


class PodGroup(ObservedObject):
    min_member: Annotated[int, BeforeValidator(_least)] = Field(default=0, validation_alias=AliasPath("spec"))
    """Pods that start together or not at all; 0: each starts alone."""
    queue: str = Field(default="", validation_alias=AliasPath("spec", "queue"))
    """The Queue of all its pods when the group was created."""
    preemptibility: str = Field(default="", validation_alias=AliasPath("spec", "preemptibility"))
    """`preemptible` or `non-preemptible`; empty: by its priority class."""
    priority_class: str = Field(default="", validation_alias=AliasPath("spec", "priorityClassName"))
