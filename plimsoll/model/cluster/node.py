"""A node, with the fields that planning needs."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.labels import GPU_TIMESTAMP, INSTANCE_TYPE
from plimsoll.model.meta import Condition, ObservedObject, Taint, condition_of, without_heartbeats
from plimsoll.quantity import parse_devices

_TROUBLES: Final = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})


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
    conditions: Annotated[tuple[Condition, ...], BeforeValidator(without_heartbeats)] = Field(
        default=(), validation_alias=AliasPath("status", "conditions")
    )
    allocatable: dict[str, str | int | float] = Field(
        default_factory=dict, validation_alias=AliasPath("status", "allocatable")
    )
    capacity: dict[str, str | int | float] = Field(
        default_factory=dict, validation_alias=AliasPath("status", "capacity")
    )

    @property
    def ready(self) -> bool | None:
        """Status of the Ready condition; None without any condition, as in a manifest that only has labels."""
        condition = condition_of(self.conditions, "Ready")
        if condition is None:
            return False if self.conditions else None
        return condition.status == "True"

    @property
    def usable(self) -> bool:
        """Whether the node is neither unready, nor cordoned, nor being deleted."""
        return self.ready is not False and not self.unschedulable and not self.deleting

    @property
    def troubled(self) -> bool:
        """Whether a condition says, or may say, that memory, disk, process IDs or the network of the node fail."""
        return any(each.type in _TROUBLES and each.status != "False" for each in self.conditions)

    @property
    def instance_type(self) -> str:
        return self.labels.get(INSTANCE_TYPE, "")

    def allocatable_devices(self, resource: str) -> int | None:
        """Allocatable devices of an extended resource; None if the node reports none.

        Raises ValueError on a quantity that is not a whole number.
        """
        amount = self.allocatable.get(resource)
        return None if amount is None else parse_devices(amount)
