"""Namespace and ResourceQuota: what a cluster allows the pods of one namespace."""

from typing import Final

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject, objects_of

_REQUESTS: Final = "requests."


class Namespace(ObservedObject):
    """A namespace, with its labels."""


class ResourceQuota(ObservedObject):
    """A ResourceQuota (https://kubernetes.io/docs/concepts/policy/resource-quotas/)."""

    hard: dict[str, str | int | float] = Field(default_factory=dict, validation_alias=AliasPath("spec", "hard"))
    scopes: tuple[str, ...] = Field(default=(), validation_alias=AliasPath("spec", "scopes"))
    scope_selector: dict[str, object] = Field(default_factory=dict, validation_alias=AliasPath("spec", "scopeSelector"))

    @property
    def names_devices(self) -> bool:
        """Whether it limits an extended resource."""
        return any(key.startswith(_REQUESTS) and "/" in key for key in self.hard)

    @property
    def told_scopes(self) -> tuple[str, ...]:
        """The scopes that a pod must be in to count, by name; empty: every pod of the namespace counts."""
        named = [term.get("scopeName") for term in objects_of(self.scope_selector.get("matchExpressions"))]
        scopes = (*self.scopes, *(name for name in named if isinstance(name, str)))
        return tuple(dict.fromkeys(scopes)) or (("scopeSelector",) if self.scope_selector else ())

    def of(self, resource: str) -> str | int | float | None:
        """What its pods may request of an extended resource in total; None: it does not limit it."""
        return self.hard.get(f"{_REQUESTS}{resource}")
