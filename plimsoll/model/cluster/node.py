"""A node, with the fields that planning needs."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.labels import GPU_TIMESTAMP, INSTANCE_TYPE
from plimsoll.model.dra import NOTHING_PUBLISHED, Published
from plimsoll.model.meta import Condition, ObservedObject, Taint, condition_of, condition_text, without_heartbeats
from plimsoll.quantity import parse_devices

_TROUBLES: Final = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
UNHEALTHY: Final = (
    *(
        (kind, "False")
        for kind in (
            "AcceleratedHardwareReady",
            "ContainerRuntimeReady",
            "KernelReady",
            "NetworkingReady",
            "StorageReady",
        )
    ),
    *(
        (kind, "True")
        for kind in (
            "CorruptDockerOverlay2",
            "FrequentContainerdRestart",
            "FrequentDockerRestart",
            "FrequentKubeletRestart",
            "FrequentUnregisterNetDevice",
            "KernelDeadlock",
            "ReadonlyFilesystem",
        )
    ),
)
"""(type, status) of conditions of nodes that are broken: those for which Karpenter's node repair replaces nodes on AWS
(RepairPolicies of karpenter-provider-aws), and the permanent ones of kubernetes/node-problem-detector's
configurations."""


def _without_timestamp(labels: Any) -> Any:
    if isinstance(labels, Mapping) and GPU_TIMESTAMP in labels:
        return {key: value for key, value in labels.items() if key != GPU_TIMESTAMP}
    return labels


class Node(ObservedObject):
    """A v1 Node. Heartbeats and the timestamp of GPU Feature Discovery are dropped: they trigger no planning."""

    labels: Annotated[dict[str, str], BeforeValidator(_without_timestamp)] = Field(
        default_factory=dict, validation_alias=AliasPath("metadata", "labels")
    )
    provider_id: str = Field(default="", validation_alias=AliasPath("spec", "providerID"))
    unschedulable: bool = Field(default=False, validation_alias=AliasPath("spec", "unschedulable"))
    taints: tuple[Taint, ...] = Field(default=(), validation_alias=AliasPath("spec", "taints"))
    conditions: Annotated[tuple[Condition, ...] | None, BeforeValidator(without_heartbeats)] = Field(
        default=None, validation_alias=AliasPath("status", "conditions")
    )
    allocatable: dict[str, str | int | float] = Field(
        default_factory=dict, validation_alias=AliasPath("status", "allocatable")
    )
    capacity: dict[str, str | int | float] = Field(
        default_factory=dict, validation_alias=AliasPath("status", "capacity")
    )

    published: Published = NOTHING_PUBLISHED
    """The devices that pods get there by claims. Whoever observes it, reads them from ResourceSlices and claims
    (`plimsoll.cluster.claims`)."""

    @property
    def ready(self) -> bool | None:
        """Status of the Ready condition; None where the node states no conditions, as a manifest that only has labels.
        An empty list of conditions states that it is not Ready."""
        if self.conditions is None:
            return None
        condition = condition_of(self.conditions, "Ready")
        return condition is not None and condition.status == "True"

    @property
    def usable(self) -> bool:
        """Whether the node is neither unready, nor unhealthy, nor cordoned, nor being deleted."""
        return self.ready is not False and not self.unschedulable and not self.deleting and not self.unhealthy()

    def unhealthy(self, more: Iterable[tuple[str, str]] = ()) -> str:
        """The first condition by which the node is broken, with its reason; empty if there is none. `more` are
        conditions, as (type, status), besides those that are known of node problem detectors and of node repair."""
        broken = {*UNHEALTHY, *more}
        for condition in self.conditions or ():
            if (condition.type, condition.status) in broken:
                why = condition_text(condition)
                return f"condition {condition.type} is {condition.status}" + (f", {why}" if why else "")
        return ""

    @property
    def troubled(self) -> bool:
        """Whether a condition says, or may say, that memory, disk, process IDs or the network of the node fail."""
        return any(each.type in _TROUBLES and each.status != "False" for each in self.conditions or ())

    @property
    def instance_type(self) -> str:
        return self.labels.get(INSTANCE_TYPE, "")

    def allocatable_devices(self, resource: str) -> int | None:
        """Allocatable devices of an extended resource, or devices that a driver of that name publishes; None if there
        are none. Where no device plugin announces the resource, published devices that a DeviceClass serves as it.

        Raises ValueError on a quantity that is not a whole number.
        """
        amount = self.allocatable.get(resource)
        if amount is not None:
            return parse_devices(amount)
        published = (
            number
            for claimable, number in self.published.kinds
            if claimable.driver == resource or resource in claimable.extended_resources
        )
        return sum(published) or None
