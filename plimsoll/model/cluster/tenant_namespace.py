"""Namespace and ResourceQuota: what a cluster allows the pods of one namespace."""

from typing import Final

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject, objects_of

_REQUESTS: Final = "requests."
CLAIMS: Final = "count/resourceclaims.resource.k8s.io"
"""Key of a ResourceQuota: the number of ResourceClaims."""
CLASS_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
"""Such a key after the name of a DeviceClass: the devices that claims ask for of it."""


def counts_claims(key: str) -> bool:
    """Whether a key of a ResourceQuota counts claims alone."""
    return key == CLAIMS or key.endswith(CLASS_DEVICES)


class Namespace(ObservedObject):
    """A namespace, with its labels."""


class ResourceQuota(ObservedObject):
    """A ResourceQuota (https://kubernetes.io/docs/concepts/policy/resource-quotas/)."""

    hard: dict[str, str | int | float] = Field(default_factory=dict, validation_alias=AliasPath("spec", "hard"))
    scopes: tuple[str, ...] = Field(default=(), validation_alias=AliasPath("spec", "scopes"))
    scope_selector: dict[str, object] = Field(default_factory=dict, validation_alias=AliasPath("spec", "scopeSelector"))

    @property
    def names_devices(self) -> bool:
        """Whether it limits an extended resource, or claims of devices."""
        return any((key.startswith(_REQUESTS) and "/" in key) or counts_claims(key) for key in self.hard)

    @property
    def told_scopes(self) -> tuple[str, ...]:
        """The scopes that a pod must be in to count, by name; empty: every pod of the namespace counts."""
        named = [term.get("scopeName") for term in objects_of(self.scope_selector.get("matchExpressions"))]
        scopes = (*self.scopes, *(name for name in named if isinstance(name, str)))
        return tuple(dict.fromkeys(scopes)) or (("scopeSelector",) if self.scope_selector else ())

    def of(self, resource: str) -> str | int | float | None:
        """What its pods may request of an extended resource in total; None: it does not limit it."""
        return self.hard.get(f"{_REQUESTS}{resource}")
