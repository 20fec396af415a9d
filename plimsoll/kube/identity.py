"""Identity of an object: kind, name and namespace, and its id and type in Pulumi."""

from typing import Any, NamedTuple

from plimsoll.errors import PlimsollError


class Kind(NamedTuple):
    """Group, version and kind. The group of core kinds is empty."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


def kind_of(obj: dict[str, Any]) -> Kind:
    """The kind of an object. Raises PlimsollError if it has none."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        raise PlimsollError("an object has no apiVersion or no kind", "set both")
    group, _, version = api_version.rpartition("/")
    return Kind("" if group == "core" else group, version, kind)


def kind_of_type(token: str) -> Kind:
    """The kind of a Pulumi type token such as `kubernetes:apps/v1:Deployment`."""
    parts = token.split(":")
    if len(parts) != 3 or parts[0] != "kubernetes" or "/" not in parts[1]:
        raise PlimsollError(f"{token} is not a type of the kubernetes package")
    group, _, version = parts[1].rpartition("/")
    return Kind("" if group == "core" else group, version, parts[2])


def type_of(kind: Kind) -> str:
    return f"kubernetes:{kind.group or 'core'}/{kind.version}:{kind.kind}"


def id_of(obj: dict[str, Any]) -> str:
    """Id in Pulumi's state: `namespace/name`, or `name` for a cluster-scoped object."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def parse_id(resource_id: str) -> tuple[str, str]:
    """Namespace (may be empty) and name of an id. Raises PlimsollError if it has no name."""
    namespace, _, name = resource_id.rpartition("/")
    if not name or "/" in namespace:
        raise PlimsollError(
            f"the id {resource_id!r} names no object", "write namespace/name, or name for a cluster-scoped object"
        )
    return namespace, name
