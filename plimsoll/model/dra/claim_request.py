"""ClaimRequest: the devices that a claim asks for, as far as planning reads it, and the features that it does not."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.model.dra.device_class import read_selectors
from plimsoll.quantity import parse_quantity

MOST_DEVICES: Final = 32
"""Devices of one claim."""


@dataclass(frozen=True, slots=True)
class Subrequest:
    """Devices that are alike in what is asked of them."""

    device_class: str
    selectors: tuple[str, ...] = ()
    """CEL expressions; once a claim is read for its pod, those of the class first."""
    count: int = 1
    """Number of devices; 0: all of the node that match, at least one."""
    capacity: tuple[tuple[str, str], ...] = ()
    """(name, quantity) that each must have at least."""

    def __str__(self) -> str:
        return f"{self.count or 'all'} {self.device_class}"


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    name: str
    alternatives: tuple[Subrequest, ...]
    """`exactly`, or `firstAvailable` in its order. One of them is met."""
    exactly: bool = True
    """Whether it is `exactly`, as KAI counts no others."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """All requests are met on one node."""

    requests: tuple[DeviceRequest, ...] = ()
    match: tuple[str, ...] = ()
    """Attributes that have one value on all devices of the claim."""
    distinct: tuple[str, ...] = ()
    """Attributes that have another value on each device of the claim."""
    not_planned: str = ""
    """The first feature of the claim that is not planned for, as the field is named; empty: none."""

    @property
    def subrequests(self) -> Iterator[Subrequest]:
        return (each for request in self.requests for each in request.alternatives)

    @property
    def gpus_in_queue(self) -> int:
        """GPUs that KAI counts for it: those of classes that have `gpu` in their names, 1 for all of a node, and none
        for alternatives (`countGPUDevicesFromClaim`)."""
        only = [request.alternatives[0] for request in self.requests if request.exactly]
        return sum([each.count or 1 for each in only if "gpu" in each.device_class.casefold()])

    @property
    def in_quotas(self) -> Mapping[str, int]:
        """Devices by DeviceClass, as ResourceQuotas count them: of alternatives the most of each class, and for all of
        a node as many as a claim may have."""
        found = Counter[str]()
        for request in self.requests:
            most = dict[str, int]()
            for each in request.alternatives:
                most[each.device_class] = max(most.get(each.device_class, 0), each.count or MOST_DEVICES)
            found.update(most)
        return found

    @property
    def has_alternatives(self) -> bool:
        """Whether a request has several, of which the first that can be had is met."""
        return any(len(request.alternatives) > 1 for request in self.requests)

    def __str__(self) -> str:
        """Such as `2 gpu.nvidia.com`, `all gpu.amd.com`, `1 large or 2 small`."""
        asked = (" or ".join(map(str, request.alternatives)) for request in self.requests)
        return " and ".join(asked)


def read_claim(spec: Any) -> ClaimRequest:
    """The request of the `spec` of a ResourceClaim. Raises ValueError where it has the wrong form."""
    devices = (spec or {}).get("devices") or {}
    given = devices.get("requests") or ()
    if not isinstance(given, Sequence) or not all(isinstance(each, Mapping) for each in given):
        raise ValueError("spec.devices.requests must be a list of objects")
    constraints = devices.get("constraints") or ()
    features = (*(_of_request(each) for each in given), *(_of_constraint(each, given) for each in constraints))
    return ClaimRequest(
        tuple(map(_request, given)),
        _attributes(constraints, "matchAttribute"),
        _attributes(constraints, "distinctAttribute"),
        next(filter(None, features), ""),
    )


def _attributes(constraints: Iterable[Mapping[str, Any]], kind: str) -> tuple[str, ...]:
    return tuple(sorted({each[kind] for each in constraints if each.get(kind)}))


def _request(given: Mapping[str, Any]) -> DeviceRequest:
    several = given.get("firstAvailable")
    exactly = several or [given.get("exactly") or {}]
    return DeviceRequest(str(given.get("name") or ""), tuple(map(_subrequest, exactly)), exactly=not several)


def _subrequest(given: Mapping[str, Any]) -> Subrequest:
    amounts = (given.get("capacity") or {}).get("requests") or {}
    count = 0 if given.get("allocationMode") == "All" else given.get("count") or 1
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"count {count!r} is no number of devices")
    for amount in amounts.values():
        parse_quantity(amount)
    return Subrequest(
        str(given.get("deviceClassName") or ""),
        tuple(read_selectors(given.get("selectors") or [])),
        count,
        tuple(sorted((name, str(amount)) for name, amount in amounts.items())),
    )


def _of_request(given: Mapping[str, Any]) -> str:
    """The feature of a request that is not planned for; empty if there is none."""
    for each in (given.get("exactly") or {}, *(given.get("firstAvailable") or ())):
        if each.get("adminAccess"):
            return "adminAccess"
        if each.get("tolerations"):
            return "tolerations"
    return ""


def _of_constraint(given: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]) -> str:
    names = {each.get("name") for each in requests}
    own = {str(name).partition("/")[0] for name in given.get("requests") or names}
    return "" if own == names else "constraints of some of the requests"


@dataclass(frozen=True, slots=True)
class ClaimedDevices:
    """What a pod's claims ask for that have no devices yet, and what they have, read with the objects that they
    name."""

    requests: tuple[ClaimRequest, ...] = ()
    """Selectors of classes are among those of the requests. None where the pod has a node."""
    held: int = 0
    """GPUs that a pod has by its claims, parts of GPUs among them: the scheduler allocates them before the pod has a
    node. Of several pods with a claim, one has them."""
    unmet: int | None = 0
    """The most GPUs that claims which have no devices yet ask for; None: any number, as a claim is not there, or asks
    for all of a node. Of several pods with a claim, one has them. Of a pod on a node, 0, or None where a claim by which
    it may have devices is gone or was created again."""
    to_create: tuple[ClaimRequest, ...] = ()
    """Of its claims, those that Kubernetes makes of templates and that are not there yet."""
    in_queue: int = 0
    """GPUs that KAI counts for the pod in its queue."""
    settled: bool = False
    """Whether the pod is on a node, and its claims have devices and no other pod."""
    problem: str = ""
    """Why no devices are planned for them; empty if they are."""
    hint: str = ""
    """What to change, of a problem."""
