"""DeviceClass: devices that claims may ask for by one name (`resource.k8s.io/v1`)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject


def read_selectors(given: Any) -> Any:
    """The CEL expressions of selectors."""
    if not isinstance(given, list):
        return given
    return tuple(str((each.get("cel") or {}).get("expression", "")) for each in given if isinstance(each, Mapping))


class DeviceClass(ObservedObject):
    selectors: Annotated[tuple[str, ...], BeforeValidator(read_selectors)] = Field(
        default=(), validation_alias=AliasPath("spec", "selectors")
    )
    """CEL expressions, all of which its devices meet."""
    extended_resource: str = Field(default="", validation_alias=AliasPath("spec", "extendedResourceName"))
    """The extended resource by which pods may request its devices without a claim; empty: only by its own name."""
