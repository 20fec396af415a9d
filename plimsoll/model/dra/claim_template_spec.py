"""ResourceClaimTemplateSpec: a ResourceClaimTemplate as it is declared (`resource.k8s.io/v1`)."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from plimsoll.model.dra.claim_request import MOST_DEVICES
from plimsoll.model.dra.device_class_spec import MOST_SELECTORS, ClassName, DeviceSelector, OpaqueConfiguration
from plimsoll.model.meta import Declared, Labels
from plimsoll.quantity import parse_quantity

RequestName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
CapacityName = Annotated[str, StringConstraints(pattern=r"^([-a-z0-9.]{1,63}/)?[A-Za-z_][A-Za-z0-9_]{0,31}$")]
"""Without a domain it is the driver's."""


def _amount(text: str) -> str:
    if parse_quantity(text) < 0:
        raise ValueError(f"{text!r} is less than 0")
    return text


def _qualified(name: str) -> str:
    if re.fullmatch(r"[-a-z0-9.]{1,63}/[A-Za-z_][A-Za-z0-9_]{0,31}", name) is None:
        raise ValueError(f"{name!r} is not an attribute with its domain, such as gpu.nvidia.com/productName")
    return name


class DeviceToleration(Declared):
    """A taint of devices that a request tolerates."""

    key: str | None = None
    """Absent: of each key; needs the operator Exists."""
    operator: Literal["Exists", "Equal"] | None = None
    """Absent: Equal."""
    value: str | None = None
    effect: Literal["NoSchedule", "NoExecute"] | None = None
    """Absent: each effect."""
    toleration_seconds: int | None = None
    """How long a taint with the effect NoExecute is tolerated; absent: always."""

    @model_validator(mode="after")
    def _fits(self) -> "DeviceToleration":
        if self.operator == "Exists" and self.value:
            raise ValueError("value has no effect with the operator Exists: remove it")
        if not self.key and self.operator != "Exists":
            raise ValueError("key: is required with the operator Equal")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("tolerationSeconds needs the effect NoExecute")
        return self


class CapacityRequirements(Declared):
    requests: dict[CapacityName, Annotated[str, AfterValidator(_amount)]] = Field(default_factory=dict)
    """What each device has at least, such as `memory`; of a device that several claims share, what the claim takes."""


class AskedDevices(Declared):
    """Devices that are alike in what is asked of them."""

    device_class_name: ClassName
    selectors: Annotated[tuple[DeviceSelector, ...], Field(max_length=MOST_SELECTORS)] = ()
    """All of them select each device."""
    allocation_mode: Literal["ExactCount", "All"] | None = None
    """`All`: every device of the node that is selected. Absent: `ExactCount`."""
    count: Annotated[int, Field(ge=1, le=MOST_DEVICES)] | None = None
    """Number of devices; absent: 1."""
    tolerations: Annotated[tuple[DeviceToleration, ...], Field(max_length=16)] = ()
    capacity: CapacityRequirements | None = None

    @model_validator(mode="after")
    def _counted(self) -> "AskedDevices":
        if self.allocation_mode == "All" and self.count is not None:
            raise ValueError("count has no effect with the allocationMode All: remove it")
        return self


class ExactDeviceRequest(AskedDevices):
    admin_access: bool | None = None
    """Whether devices are looked at only, which takes none: for monitoring, in namespaces that are labelled for it."""


class DeviceSubRequest(AskedDevices):
    """One of several alternatives of a request."""

    name: RequestName


class DeviceRequest(Declared):
    """`exactly`, or `firstAvailable`: the first of several that can be had."""

    name: RequestName
    exactly: ExactDeviceRequest | None = None
    first_available: Annotated[tuple[DeviceSubRequest, ...], Field(max_length=8)] = ()

    @model_validator(mode="after")
    def _one_of_both(self) -> "DeviceRequest":
        if (self.exactly is None) == (not self.first_available):
            raise ValueError("set either exactly or firstAvailable")
        if twice := _twice(each.name for each in self.first_available):
            raise ValueError(f"firstAvailable: {twice!r} is the name of two alternatives")
        return self

    @property
    def ways(self) -> tuple[AskedDevices, ...]:
        """The alternatives; `exactly` is the only one."""
        return (self.exactly,) if self.exactly is not None else self.first_available


class DeviceConstraint(Declared):
    """What devices of a claim have in common, or not."""

    requests: Annotated[tuple[str, ...], Field(max_length=32)] = ()
    """Names of requests, or `request/alternative`; absent: all."""
    match_attribute: Annotated[str, AfterValidator(_qualified)] | None = None
    """All devices have the same value of it."""
    distinct_attribute: Annotated[str, AfterValidator(_qualified)] | None = None
    """No two devices have the same value of it."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "DeviceConstraint":
        if (self.match_attribute is None) == (self.distinct_attribute is None):
            raise ValueError("set either matchAttribute or distinctAttribute")
        return self


class ClaimConfiguration(Declared):
    requests: Annotated[tuple[str, ...], Field(max_length=32)] = ()
    """Names of requests, or `request/alternative`; absent: all."""
    opaque: OpaqueConfiguration


class DeviceClaim(Declared):
    """Devices that one claim asks for, all of one node."""

    requests: Annotated[tuple[DeviceRequest, ...], Field(min_length=1, max_length=32)]
    constraints: Annotated[tuple[DeviceConstraint, ...], Field(max_length=32)] = ()
    config: Annotated[tuple[ClaimConfiguration, ...], Field(max_length=32)] = ()

    @model_validator(mode="after")
    def _names(self) -> "DeviceClaim":
        if twice := _twice(each.name for each in self.requests):
            raise ValueError(f"requests: {twice!r} is the name of two requests")
        if wrong := next(self._unnamed(), ""):
            raise ValueError(wrong)
        devices = sum(min(way.count or 1 for way in each.ways) for each in self.requests)
        if devices > MOST_DEVICES:
            raise ValueError(f"requests: ask for {devices} devices, and a claim has at most {MOST_DEVICES}")
        return self

    def _unnamed(self) -> Iterator[str]:
        names = {each.name for each in self.requests}
        names |= {f"{each.name}/{other.name}" for each in self.requests for other in each.first_available}
        lists = {"constraints": [*self.constraints], "config": [*self.config]}  # type: dict[str, list[Any]]
        for field, items in lists.items():
            for number, each in enumerate(items):
                for name in each.requests:
                    if name not in names:
                        yield f"{field}[{number}].requests: there is no request {name!r}"


class ClaimMetadata(Declared):
    """Labels and annotations of the claims."""

    labels: Labels = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class ResourceClaimTemplateSpec(Declared):
    """A template of which each pod that names it gets a claim of its own. It cannot be changed once it exists."""

    devices: DeviceClaim
    metadata: ClaimMetadata | None = None
    """Of the claims."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The DeviceClasses that it asks for, each once."""
        return tuple(
            dict.fromkeys(each.device_class_name for request in self.devices.requests for each in request.ways)
        )

    def template_manifest(self) -> dict[str, Any]:
        """`spec` of the object."""
        given = self.manifest()
        around = {"metadata": given["metadata"]} if given.get("metadata") else {}
        return {**around, "spec": {"devices": given["devices"]}}


def _twice(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
