"""A DaemonSet, with what each of its pods requests."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.cluster.plain_pod import requests_devices
from plimsoll.model.cluster.pod import HostOfSpec, PlacementOfSpec
from plimsoll.model.meta import ANYWHERE, HostRequest, ObservedObject


def _plain(template: Any) -> Any:
    return not requests_devices(template) if isinstance(template, Mapping) else template


class DaemonSet(ObservedObject):
    placement: PlacementOfSpec = Field(default=ANYWHERE, validation_alias=AliasPath("spec", "template", "spec"))
    host: HostOfSpec = Field(default=HostRequest(), validation_alias=AliasPath("spec", "template", "spec"))
    plain: Annotated[bool, BeforeValidator(_plain)] = Field(
        default=True, validation_alias=AliasPath("spec", "template")
    )
    """Whether its pods request no GPU."""

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"
