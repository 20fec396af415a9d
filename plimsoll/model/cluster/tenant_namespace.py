"""Namespace and ResourceQuota: what a cluster allows the pods of one namespace."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.labels import DEVICE_CLASS_PREFIX
from plimsoll.model.meta import ObservedObject, objects_of

_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
CLAIMS: Final = "count/resourceclaims.resource.k8s.io"
"""Key of a ResourceQuota: the number of ResourceClaims."""
CLASS_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
"""Such a key after the name of a DeviceClass: the devices that claims ask for of it."""


class ScopeTerm(NamedTuple):
    """One of the terms by which a quota selects the pods that count, all of which must hold."""

    scope: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


def part_of_pods(key: str) -> tuple[str, str] | None:
    """What pods take of that key of `hard`: `requests` or `limits` and the resource, or two empty texts where each pod
    is one; None where it counts no pods."""
    if key in ("pods", "count/pods"):
        return "", ""
    if key.startswith(_LIMITS):
        name = key.removeprefix(_LIMITS)
        return ("limits", name) if name in _NATIVE else None
    name = key.removeprefix(_REQUESTS)
    extended = key.startswith(_REQUESTS) and "/" in name
    return ("requests", name) if extended or name in _NATIVE or name.startswith(_HUGE_PAGES) else None


def counts_claims(key: str) -> bool:
    """Whether a key of a ResourceQuota counts claims alone."""
    return key == CLAIMS or key.endswith(CLASS_DEVICES)


def amounts_of_claim(devices: Mapping[str, int]) -> dict[str, int]:
    """What one claim counts, by keys of `hard`, with these devices by DeviceClass."""
    found = {CLAIMS: 1}
    for name, number in devices.items():
        found |= {f"{name}{CLASS_DEVICES}": number, f"{_REQUESTS}{DEVICE_CLASS_PREFIX}{name}": number}
    return found


class Namespace(ObservedObject):
    """A namespace, with its labels."""


class ResourceQuota(ObservedObject):
    """A ResourceQuota (https://kubernetes.io/docs/concepts/policy/resource-quotas/)."""

    hard: dict[str, str | int | float] = Field(default_factory=dict, validation_alias=AliasPath("spec", "hard"))
    scopes: tuple[str, ...] = Field(default=(), validation_alias=AliasPath("spec", "scopes"))
    scope_selector: dict[str, object] = Field(default_factory=dict, validation_alias=AliasPath("spec", "scopeSelector"))
    used: dict[str, str | int | float] = Field(default_factory=dict, validation_alias=AliasPath("status", "used"))
    """What its pods take now, as the cluster counts it; empty where it has not counted yet."""

    @property
    def counts_pods(self) -> bool:
        """Whether it limits pods, or what they request."""
        return any(part_of_pods(key) is not None for key in self.hard)

    @property
    def counts_claims(self) -> bool:
        """Whether it limits claims of devices."""
        return any(counts_claims(key) for key in self.hard)

    @property
    def told_terms(self) -> tuple[ScopeTerm, ...]:
        """By which fields it selects the pods that count; empty: every pod of the namespace does."""
        terms = objects_of(self.scope_selector.get("matchExpressions"))
        return (
            *(ScopeTerm(each) for each in self.scopes),
            *(
                ScopeTerm(str(term.get("scopeName")), str(term.get("operator")), tuple(map(str, values)))
                for term in terms
                if isinstance(values := term.get("values") or [], list)
            ),
        )

    @property
    def told_scopes(self) -> tuple[str, ...]:
        """The scopes that a pod must be in to count, by name; empty: every pod of the namespace counts."""
        named = [term.get("scopeName") for term in objects_of(self.scope_selector.get("matchExpressions"))]
        scopes = (*self.scopes, *(name for name in named if isinstance(name, str)))
        return tuple(dict.fromkeys(scopes)) or (("scopeSelector",) if self.scope_selector else ())

    def of(self, resource: str) -> str | int | float | None:
        """What its pods may request of an extended resource in total; None: it does not limit it."""
        return self.hard.get(f"{_REQUESTS}{resource}")
