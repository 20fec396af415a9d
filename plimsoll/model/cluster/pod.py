"""A pod, with the fields that planning needs."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ANYWHERE, Condition, HostRequest, ObservedObject, Placement, condition_of, counted
from plimsoll.quantity import parse_bytes, parse_devices


def _placement(spec: Any) -> Any:
    return Placement.read(spec) if isinstance(spec, Mapping) else spec


def _host_request(spec: Any) -> Any:
    return HostRequest.read(spec) if isinstance(spec, Mapping) else spec


def _with_resources(containers: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    for number, container in enumerate(containers):
        resources = container.get("resources") or {}
        if not isinstance(resources, Mapping):
            raise ValueError(f"container {number}: resources must be an object")
        for part in ("requests", "limits"):
            if not isinstance(resources.get(part) or {}, Mapping):
                raise ValueError(f"container {number}: resources.{part} must be an object")
    return containers


def _devices(amount: str | int | float) -> int:
    count = parse_devices(amount)
    if count < 0:
        raise ValueError(f"{str(amount)!r} is less than 0")
    return count


def _gates(gates: Any) -> Any:
    if not isinstance(gates, list):
        return gates
    return tuple(each.get("name", "") if isinstance(each, Mapping) else each for each in gates)


def _controller_kind(owners: Any) -> Any:
    if not isinstance(owners, list):
        return owners
    kinds = (each.get("kind") for each in owners if isinstance(each, Mapping) and each.get("controller", True))
    return sys.intern(str(next(kinds, "") or ""))


Containers = Annotated[tuple[dict[str, Any], ...], AfterValidator(_with_resources)]


class Pod(ObservedObject):
    node_name: str = Field(default="", validation_alias=AliasPath("spec", "nodeName"))
    nominated_node_name: str = Field(default="", validation_alias=AliasPath("status", "nominatedNodeName"))
    """The node on which a scheduler preempts pods for it."""
    scheduler_name: str = Field(default="default-scheduler", validation_alias=AliasPath("spec", "schedulerName"))
    priority: int = Field(default=0, validation_alias=AliasPath("spec", "priority"))
    priority_class: str = Field(default="", validation_alias=AliasPath("spec", "priorityClassName"))
    owner_kind: Annotated[str, BeforeValidator(_controller_kind)] = Field(
        default="", validation_alias=AliasPath("metadata", "ownerReferences")
    )
    """Kind of the object that controls the pod, such as ReplicaSet; empty: none."""
    scheduling_gates: Annotated[tuple[str, ...], BeforeValidator(_gates)] = Field(
        default=(), validation_alias=AliasPath("spec", "schedulingGates")
    )
    """Names of its scheduling gates."""
    placement: Annotated[Placement, BeforeValidator(_placement)] = Field(
        default=ANYWHERE, validation_alias=AliasPath("spec")
    )
    host: Annotated[HostRequest, BeforeValidator(_host_request)] = Field(
        default=HostRequest(), validation_alias=AliasPath("spec")
    )
    containers: Containers = Field(default=(), validation_alias=AliasPath("spec", "containers"))
    init_containers: Containers = Field(default=(), validation_alias=AliasPath("spec", "initContainers"))
    phase: str = Field(default="", validation_alias=AliasPath("status", "phase"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def unschedulable(self) -> bool:
        """Whether the scheduler found no node: PodScheduled is False with reason Unschedulable."""
        condition = condition_of(self.conditions, "PodScheduled")
        return (
            not self.node_name
            and condition is not None
            and condition.status == "False"
            and condition.reason == "Unschedulable"
        )

    def devices(self, resource: str) -> int:
        """Devices of an extended resource that the scheduler counts for the pod, without overhead.

        Raises ValueError on a quantity that is not a whole number of 0 or more.
        """
        return counted(self.containers, self.init_containers, resource, _devices)

    @cached_property
    def other_requests(self) -> dict[str, int]:
        """What the scheduler counts for the pod of resources other than CPU and memory, without overhead: bytes of
        storage and huge pages, numbers of extended resources. Amounts that cannot be read are left out."""
        resources = (each.get("resources") or {} for each in (*self.containers, *self.init_containers))
        names = {name for each in resources for part in ("requests", "limits") for name in each.get(part) or ()}
        found = {}
        for name in sorted(names - {"cpu", "memory"}):
            with suppress(ValueError):
                found[name] = counted(self.containers, self.init_containers, name, parse_bytes)
        return found
