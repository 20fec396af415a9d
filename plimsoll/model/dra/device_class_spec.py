"""DeviceClassSpec: a DeviceClass as it is declared (`resource.k8s.io/v1`), and what claims have in common with it."""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, StringConstraints

from plimsoll.labels import KEY_PREFIX, is_device, is_label_key
from plimsoll.model.meta import Declared

ClassName = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=f"^{KEY_PREFIX}$")]
DriverName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=f"^{KEY_PREFIX}$")]
MOST_SELECTORS: Final = 32


def _extended(name: str) -> str:
    if not is_label_key(name) or not is_device(name) or name.startswith("requests."):
        raise ValueError(f"{name!r} is not an extended resource: it needs a domain of its own, such as nvidia.com/gpu")
    return name


class CelSelector(Declared):
    expression: str = Field(min_length=1, max_length=10_240)
    """Is true for the devices that are selected."""


class DeviceSelector(Declared):
    cel: CelSelector


class OpaqueConfiguration(Declared):
    """Settings that a driver reads."""

    driver: DriverName
    parameters: dict[str, Any]


class ClassConfiguration(Declared):
    opaque: OpaqueConfiguration


class DeviceClassSpec(Declared):
    """Devices that have something in common, by which claims ask for them."""

    selectors: Annotated[tuple[DeviceSelector, ...], Field(max_length=MOST_SELECTORS)] = ()
    """All of them select each device of the class."""
    config: Annotated[tuple[ClassConfiguration, ...], Field(max_length=32)] = ()
    extended_resource_name: Annotated[str, AfterValidator(_extended)] | None = None
    """Extended resource by which pods may request the devices without a claim."""
