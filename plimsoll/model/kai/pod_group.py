"""KAI's PodGroup (scheduling.run.ai/v2alpha2): pods that are scheduled together, as created by KAI's podgrouper."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import Observed, ObservedObject, objects_of

POD_GROUP_NAME: Final = "pod-group-name"
"""Annotation of a pod: the PodGroup in its namespace that it belongs to."""
SUB_GROUP_NAME: Final = "kai.scheduler/subgroup-name"
"""Label of a pod: the subgroup of its PodGroup that it belongs to."""

MOST_DEPTH: Final = 6
"""Levels of subgroups that are read: whoever may create PodGroups may nest hundreds."""


def group_key(pod: ObservedObject) -> tuple[str, str]:
    """Key of the PodGroup that the pod's annotation names; without a name where it names none."""
    return (pod.namespace, pod.annotations.get(POD_GROUP_NAME, ""))


class TopologyConstraint(Observed):
    """Which nodes of a Topology the pods of a group share."""

    topology: str = ""
    required: str = Field(default="", validation_alias="requiredTopologyLevel")
    """Label of nodes: all pods are on nodes with the same value; empty: none is required."""


def _constraint(value: Any) -> Any:
    return value if isinstance(value, dict) else {}


Constraint = Annotated[TopologyConstraint, BeforeValidator(_constraint)]


class SubGroup(Observed):
    """A part of a PodGroup, which starts from its own minimum."""

    name: str = ""
    parent: str = ""
    """Name of the subgroup that it is a part of; empty: the PodGroup."""
    min_member: int | None = Field(default=None, validation_alias="minMember")
    """Pods that start together."""
    min_sub_group: int | None = Field(default=None, validation_alias="minSubGroup")
    """Subgroups of it that start together; None: all of them."""
    topology: Constraint = Field(default=TopologyConstraint(), validation_alias="topologyConstraint")


class PodGroup(ObservedObject):
    own_min_member: int | None = Field(default=None, validation_alias=AliasPath("spec", "minMember"))
    min_sub_group: int | None = Field(default=None, validation_alias=AliasPath("spec", "minSubGroup"))
    """Subgroups without a parent that start together; None: all of them."""
    sub_groups: Annotated[tuple[SubGroup, ...], BeforeValidator(objects_of)] = Field(
        default=(), validation_alias=AliasPath("spec", "subGroups")
    )
    queue: str = Field(default="", validation_alias=AliasPath("spec", "queue"))
    """The Queue of all its pods when the group was created."""
    preemptibility: str = Field(default="", validation_alias=AliasPath("spec", "preemptibility"))
    """`preemptible` or `non-preemptible`; empty: by its priority class."""
    priority_class: str = Field(default="", validation_alias=AliasPath("spec", "priorityClassName"))

    topology: Constraint = Field(default=TopologyConstraint(), validation_alias=AliasPath("spec", "topologyConstraint"))

    @property
    def min_member(self) -> int:
        """Pods that start together or not at all; 0: each starts alone."""
        if self.own_min_member is not None:
            return self.own_min_member
        return sum(each.min_member or 0 for each in self.sub_groups)

    @cached_property
    def parts(self) -> Mapping[str, SubGroup]:
        """The subgroups by name."""
        return {each.name: each for each in self.sub_groups}

    @cached_property
    def held(self) -> Mapping[str, tuple[str, ...]]:
        """By name of a subgroup: its own, and those of its parts and of theirs, sorted."""
        found = defaultdict[str, list[str]](list)
        for part in sorted(self.parts):
            for whole in self.wholes_of(part):
                found[whole].append(part)
        return {name: tuple(names) for name, names in found.items()}

    def wholes_of(self, name: str) -> tuple[str, ...]:
        """The subgroup, and those that it is a part of, in this order, up to MOST_DEPTH of them."""
        wholes: dict[str, None] = {}
        while name in self.parts and name not in wholes and len(wholes) < MOST_DEPTH:
            wholes[name] = None
            name = self.parts[name].parent
        return tuple(wholes)
