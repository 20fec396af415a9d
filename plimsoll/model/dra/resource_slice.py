"""ResourceSlice: devices that a driver publishes (`resource.k8s.io/v1`)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field, model_validator
from pydantic.aliases import AliasPath

from plimsoll.model.dra.attribute import Attribute, read_amounts, read_attributes, read_capacity
from plimsoll.model.dra.request_policy import RequestPolicy, read_policies
from plimsoll.model.meta import ObservedObject


class CounterSet(NamedTuple):
    """Counters that devices of a pool share, such as the parts of one GPU."""

    name: str
    amounts: tuple[tuple[str, str], ...]
    """(counter, quantity), sorted."""


class SliceDevice(NamedTuple):
    """A device, as far as planning reads it."""

    name: str
    attributes: tuple[Attribute, ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    """(name with its domain, quantity), sorted."""
    special: str = ""
    """What makes it more than a device of its node that claims may have, which is not planned for: the field; empty:
    nothing."""
    shared: bool = False
    """Whether several claims may have parts of it (`allowMultipleAllocations`)."""
    policies: tuple[tuple[str, RequestPolicy], ...] = ()
    """(name of a capacity with its domain, how much of it a claim takes), sorted."""
    tainted: bool = False
    """Whether a taint keeps claims from it."""
    consumes: tuple[CounterSet, ...] = ()
    """What it consumes of sets of counters of its pool."""


class ResourceSlice(ObservedObject):
    driver: str = Field(validation_alias=AliasPath("spec", "driver"))
    pool: str = Field(validation_alias=AliasPath("spec", "pool", "name"))
    generation: int = Field(default=0, validation_alias=AliasPath("spec", "pool", "generation"))
    of_pool: Annotated[int, Field(ge=1)] = Field(validation_alias=AliasPath("spec", "pool", "resourceSliceCount"))
    """Slices of the pool in this generation."""
    node_name: str = Field(default="", validation_alias=AliasPath("spec", "nodeName"))
    """Empty: its devices are of several nodes, which is not planned for."""
    devices: tuple[SliceDevice, ...] = ()
    counters: tuple[CounterSet, ...] = ()
    """Sets of counters of its pool, which devices of other slices of the pool consume."""

    @model_validator(mode="before")
    @classmethod
    def _with_devices(cls, manifest: Any) -> Any:
        if not isinstance(manifest, Mapping) or "devices" in manifest:
            return manifest
        spec = manifest.get("spec") or {}
        return {
            **manifest,
            "devices": tuple(_devices(spec.get("devices") or (), str(spec.get("driver") or ""))),
            "counters": _counters(spec.get("sharedCounters"), "name"),
        }


_SPECIAL = ("bindsToNode", "bindingConditions")
"""Fields of devices that are made ready later."""


def _counters(given: Any, name: str) -> tuple[CounterSet, ...]:
    """Raises ValueError where an amount is no quantity."""
    return tuple(CounterSet(str(each.get(name)), read_amounts(each.get("counters") or {})) for each in given or ())


def _devices(given: Any, driver: str) -> Iterator[SliceDevice]:
    for each in given:
        effects = {taint.get("effect") for taint in each.get("taints") or ()}
        shared, capacity = bool(each.get("allowMultipleAllocations")), each.get("capacity") or {}
        special = next((field for field in _SPECIAL if each.get(field)), "")
        consumes = _counters(each.get("consumesCounters"), "counterSet")
        if shared and consumes:
            special = special or "consumesCounters beside allowMultipleAllocations"
        policies: tuple[tuple[str, RequestPolicy], ...] = ()
        if shared:
            try:
                policies = read_policies(capacity, driver)
            except ValueError:
                special = special or "a requestPolicy that cannot be read"
        yield SliceDevice(
            name=str(each["name"]) if each.get("name") else "",
            attributes=read_attributes(each.get("attributes"), driver),
            capacity=read_capacity(capacity, driver),
            special=special,
            shared=shared,
            policies=policies,
            tainted=not effects.isdisjoint({"NoSchedule", "NoExecute"}),
            consumes=consumes,
        )
