"""Karpenter's NodeOverlay (karpenter.sh/v1alpha1)."""

from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject
from plimsoll.quantity import parse_quantity


class NodeOverlay(ObservedObject):
    capacity: dict[str, Annotated[Decimal, BeforeValidator(parse_quantity)]] = Field(
        default_factory=dict, validation_alias=AliasPath("spec", "capacity")
    )
    """Amounts of extended resources that Karpenter adds to the instance types that it matches, by resource."""

    @property
    def resources(self) -> frozenset[str]:
        """Those of which it adds a device."""
        return frozenset(resource for resource, amount in self.capacity.items() if amount >= 1)
