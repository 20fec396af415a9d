"""ClaimDevices: devices of a node that pods get by claims, as a NodeProfile says them."""

from dataclasses import replace
from operator import itemgetter
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from plimsoll.model.dra import Attribute, Claimable, DevicePart, Placements, RequestPolicy, qualified
from plimsoll.model.meta import Described
from plimsoll.quantity import parse_quantity

Name = Annotated[str, Field(min_length=1, max_length=96, pattern=r"^([-a-z0-9.]{1,63}/)?[A-Za-z_][A-Za-z0-9_]{0,31}$")]
"""Of an attribute or a capacity; without a domain it is the driver's."""


def _amounts(given: dict[str, str]) -> dict[str, str]:
    for name, amount in given.items():
        try:
            parse_quantity(amount)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return given


Counters = Annotated[dict[Annotated[str, Field(min_length=1, max_length=63)], str], AfterValidator(_amounts)]
"""Quantities by the name of a counter."""
_FIELDS: Final = {"string": "strings", "version": "versions", "int": "ints", "bool": "bools"}
"""By the type of an attribute."""


class ClaimDevice(Described):
    """What claims select a device by."""

    strings: dict[Name, Annotated[str, Field(max_length=64)]] = Field(default_factory=dict, max_length=32)
    """Attributes of text, by which claims select them, such as `productName`. A claim that selects by another attribute
    gets no capacity."""
    versions: dict[Name, Annotated[str, Field(max_length=64)]] = Field(default_factory=dict, max_length=32)
    """Attributes that are semantic versions, such as `cudaComputeCapability`."""
    ints: dict[Name, int] = Field(default_factory=dict, max_length=32)
    """Attributes that are whole numbers."""
    bools: dict[Name, bool] = Field(default_factory=dict, max_length=32)
    """Attributes that are true or false."""
    capacity: dict[Name, str] = Field(default_factory=dict, max_length=32)
    """What each has, such as `memory`."""

    @model_validator(mode="after")
    def _amounts(self) -> Self:
        for name, amount in self.capacity.items():
            try:
                parse_quantity(amount)
            except ValueError as error:
                raise ValueError(f"capacity.{name}: {error}") from None
        return self

    def of_driver(self, driver: str) -> Claimable:
        """One of them, as the driver publishes it."""
        attributes = [
            Attribute(qualified(name, driver), kind, value)
            for kind, field in _FIELDS.items()
            for name, value in getattr(self, field).items()
        ]
        capacity = ((qualified(name, driver), amount) for name, amount in self.capacity.items())
        return Claimable(driver, tuple(sorted(attributes)), tuple(sorted(capacity)))


class ClaimDevicePart(ClaimDevice):
    """Devices that claims may have instead of a whole one, such as MIG slices of a GPU."""

    number: int = Field(ge=1, le=64)
    """So many can be had of one whole device, if claims take no others."""
    placements: tuple[Counters, ...] = Field(default=(), max_length=64)
    """What one consumes of `counters` at each of its placements. Claims for different parts of one device are planned
    by them."""


class ClaimDevices(ClaimDevice):
    """Devices that are alike, which a driver of Dynamic Resource Allocation will publish of each such node."""

    driver: str = Field(min_length=1, max_length=63)
    """Such as `gpu.nvidia.com`."""
    count: int | None = Field(default=None, ge=1, le=1024)
    """Devices of one node. Absent: the GPUs that the catalog has for the instance type."""
    allow_multiple_allocations: bool = False
    """Whether several claims may have parts of one."""
    request_policies: dict[Name, RequestPolicy] = Field(default_factory=dict, max_length=32)
    """How much of a capacity a claim takes; only with `allowMultipleAllocations`. A claim takes all of a capacity
    without a policy, unless it asks for an amount."""
    distinct_attributes: tuple[Name, ...] = Field(default=(), max_length=32)
    """Attributes that each device of a node has with a value of its own, such as `uuid`: claims with
    `distinctAttribute` are planned by these."""
    attribute_groups: dict[Name, tuple[Annotated[int, Field(ge=1)], ...]] = Field(default_factory=dict, max_length=32)
    """Attributes of the place of a device, such as `resource.kubernetes.io/numaNode`: how many devices of a node have
    the same value, for each value. Claims with `matchAttribute` are planned by these."""
    parts: tuple[ClaimDevicePart, ...] = Field(default=(), max_length=32)
    """Where the driver divides each device by counters (`consumesCounters`): what claims may have instead of it."""
    counters: Counters = Field(default_factory=dict, max_length=64)
    """What the parts of one device consume, in total (`sharedCounters`)."""

    @model_validator(mode="after")
    def _counted(self) -> Self:
        for number, part in enumerate(self.parts):
            for at, amounts in enumerate(part.placements):
                if unknown := sorted(amounts.keys() - self.counters.keys()):
                    raise ValueError(f"parts[{number}].placements[{at}]: {unknown[0]!r} is not in counters")
        return self

    @property
    def _placements(self) -> Placements | None:
        if not self.counters or not all(part.placements for part in self.parts):
            return None
        of_parts = (tuple(sorted(tuple(sorted(at.items())) for at in part.placements)) for part in self.parts)
        return Placements(tuple(sorted(self.counters.items())), tuple(of_parts))

    @property
    def claimable(self) -> Claimable:
        """One of them."""
        policies = ((qualified(name, self.driver), policy) for name, policy in self.request_policies.items())
        return replace(
            self.of_driver(self.driver),
            shared=self.allow_multiple_allocations,
            policies=tuple(sorted(policies, key=itemgetter(0))),
            distinct=tuple(sorted(qualified(name, self.driver) for name in self.distinct_attributes)),
            groups=tuple(
                sorted(
                    (qualified(name, self.driver), tuple(sorted(sizes)))
                    for name, sizes in self.attribute_groups.items()
                )
            ),
            parts=tuple(DevicePart(each.of_driver(self.driver), each.number) for each in self.parts),
            placements=self._placements,
        )

    @property
    def published(self) -> tuple[tuple[Claimable, int], ...]:
        """One of them, with their number; empty where that is not said."""
        return ((self.claimable, self.count),) if self.count else ()

    @classmethod
    def of(cls, claimable: Claimable, count: int) -> "ClaimDevices":
        """What is published of a node with so many of them."""
        own, placements = f"{claimable.driver}/", claimable.placements
        of_parts = placements.of_parts if placements is not None else [()] * len(claimable.parts)
        return cls.model_validate(
            {
                "driver": claimable.driver,
                "count": count,
                "allow_multiple_allocations": claimable.shared,
                "request_policies": {name.removeprefix(own): policy for name, policy in claimable.policies},
                "distinct_attributes": [name.removeprefix(own) for name in claimable.distinct],
                "attribute_groups": {name.removeprefix(own): sizes for name, sizes in claimable.groups},
                "parts": [
                    {"number": each.number, "placements": list(map(dict, at)), **_selected_by(each.device)}
                    for each, at in zip(claimable.parts, of_parts, strict=True)
                ],
                "counters": dict(placements.counters) if placements is not None else {},
                **_selected_by(claimable),
            }
        )


def _selected_by(claimable: Claimable) -> dict[str, Any]:
    """The fields of ClaimDevice."""
    own = f"{claimable.driver}/"
    named = {field: {} for field in _FIELDS.values()}  # type: dict[str, dict[str, bool | int | str]]
    for each in claimable.attributes:
        named[_FIELDS[each.kind]][each.name.removeprefix(own)] = each.value
    return {"capacity": {name.removeprefix(own): amount for name, amount in claimable.capacity}, **named}
