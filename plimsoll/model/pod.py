"""A pod, with the fields that capacity is planned on."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.base import ObservedObject
from plimsoll.model.condition import Condition, condition_of
from plimsoll.model.quantity import parse_devices


class Pod(ObservedObject):
    node_name: str = Field(default="", validation_alias=AliasPath("spec", "nodeName"))
    scheduler_name: str = Field(default="default-scheduler", validation_alias=AliasPath("spec", "schedulerName"))
    containers: tuple[dict[str, Any], ...] = Field(default=(), validation_alias=AliasPath("spec", "containers"))
    init_containers: tuple[dict[str, Any], ...] = Field(
        default=(), validation_alias=AliasPath("spec", "initContainers")
    )
    phase: str = Field(default="", validation_alias=AliasPath("status", "phase"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def unschedulable(self) -> bool:
        """Said by the scheduler: PodScheduled is False with reason Unschedulable, and no node is named."""
        condition = condition_of(self.conditions, "PodScheduled")
        return (
            not self.node_name
            and condition is not None
            and condition.status == "False"
            and condition.reason == "Unschedulable"
        )

    def devices(self, resource: str) -> int:
        """Devices of an extended resource that the scheduler counts for the pod.

        The larger of the sum over containers and sidecars, and of any one init container beside the sidecars
        started before it (KEP-753). Raises ValueError on a quantity that is no whole number.
        """
        sidecars = 0
        peak = 0
        for container in self.init_containers:
            amount = _requested(container, resource)
            if container.get("restartPolicy") == "Always":
                sidecars += amount
            else:
                peak = max(peak, sidecars + amount)
        return max(peak, sidecars + sum(_requested(container, resource) for container in self.containers))


def _requested(container: Mapping[str, Any], resource: str) -> int:
    resources = container.get("resources") or {}
    for part in ("requests", "limits"):
        amounts = resources.get(part) or {}
        if resource in amounts:
            return parse_devices(amounts[resource])
    return 0
