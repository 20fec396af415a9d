"""Karpenter's EC2NodeClass (karpenter.k8s.aws/v1): the capacity reservations that it selects."""

from typing import Final

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.labels import ZONE
from plimsoll.model.meta import Condition, Observed, ObservedObject, condition_of

EC2_GROUP: Final = "karpenter.k8s.aws"
_ID: Final = f"{EC2_GROUP}/capacity-reservation-id"
_TYPE: Final = f"{EC2_GROUP}/capacity-reservation-type"
BLOCK: Final = "capacity-block"


class Reservation(Observed):
    """An On-Demand Capacity Reservation or a Capacity Block."""

    id: str = ""
    instance_type: str = Field(default="", validation_alias="instanceType")
    kind: str = Field(default="default", validation_alias="reservationType")
    zone: str = Field(default="", validation_alias="availabilityZone")
    end: str | None = Field(default=None, validation_alias="endTime")
    """RFC 3339; None: it has no end."""

    @property
    def labels(self) -> dict[str, str]:
        """Labels of a node there."""
        return {_ID: self.id, _TYPE: self.kind, ZONE: self.zone}

    def __str__(self) -> str:
        return f"{'capacity block' if self.kind == BLOCK else 'capacity reservation'} {self.id}"


class Ec2NodeClass(ObservedObject):
    reservations: tuple[Reservation, ...] = Field(
        default=(), validation_alias=AliasPath("status", "capacityReservations")
    )
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))

    @property
    def reports_reservations(self) -> bool:
        """Whether `reservations` are all: Karpenter leaves the field out where there are none."""
        found = condition_of(self.conditions, "CapacityReservationsReady")
        return bool(self.reservations) or (found is not None and found.status == "True")
