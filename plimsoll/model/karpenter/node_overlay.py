"""Karpenter's NodeOverlay (karpenter.sh/v1alpha1)."""

from typing import Any

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject


class NodeOverlay(ObservedObject):
    capacity: dict[str, Any] = Field(default_factory=dict, validation_alias=AliasPath("spec", "capacity"))
    """Amounts of extended resources that Karpenter adds to the instance types that it matches, by resource."""
