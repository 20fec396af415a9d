"""What identifies an object: its kind, its name and namespace, its id and type in Pulumi."""

import hashlib
import secrets
from typing import Any, Final, NamedTuple

from plimsoll.errors import PlimsollError
from plimsoll.provider.values import is_unknown

AUTONAMED: Final = "pulumi.com/autonamed"
_AUTONAME_DIGITS: Final = 8


class Kind(NamedTuple):
    """Group, version and kind. The group is empty for core."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


def kind_of(obj: dict[str, Any]) -> Kind:
    """The kind of an object. Raises PlimsollError where it has none."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        raise PlimsollError("an object has no apiVersion or no kind", "set both")
    group, _, version = api_version.rpartition("/")
    return Kind("" if group == "core" else group, version, kind)


def kind_of_type(token: str) -> Kind:
    """The kind behind a type token such as `kubernetes:apps/v1:Deployment`."""
    parts = token.split(":")
    if len(parts) != 3 or parts[0] != "kubernetes" or "/" not in parts[1]:
        raise PlimsollError(f"{token} is no type of the kubernetes package")
    group, _, version = parts[1].rpartition("/")
    return Kind("" if group == "core" else group, version, parts[2])


def type_of(kind: Kind) -> str:
    return f"kubernetes:{kind.group or 'core'}/{kind.version}:{kind.kind}"


def metadata_of(obj: dict[str, Any]) -> dict[str, Any]:
    """The metadata of an object, or an empty dict where it is missing or not yet known."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def name_of(obj: dict[str, Any]) -> str:
    return str(metadata_of(obj).get("name") or "")


def namespace_of(obj: dict[str, Any]) -> str:
    return str(metadata_of(obj).get("namespace") or "")


def annotation(obj: dict[str, Any], key: str) -> str:
    annotations = metadata_of(obj).get("annotations")
    value = annotations.get(key) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def id_of(obj: dict[str, Any]) -> str:
    """`namespace/name`, or `name` for a cluster-scoped object: the id in Pulumi's state."""
    namespace = namespace_of(obj)
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


def parse_id(resource_id: str) -> tuple[str, str]:
    """Namespace (may be empty) and name of an id. Raises PlimsollError where it has no name."""
    namespace, _, name = resource_id.rpartition("/")
    if not name or "/" in namespace:
        raise PlimsollError(
            f"the id {resource_id!r} names no object", "write namespace/name, or name for a cluster-scoped object"
        )
    return namespace, name


def is_autonamed(obj: dict[str, Any]) -> bool:
    return annotation(obj, AUTONAMED) == "true"


def autoname(obj: dict[str, Any], logical_name: str, seed: bytes, proposed: str | None = None) -> None:
    """Names an object that has no name: `proposed`, else `<logical name>-<8 hex digits>` drawn from `seed`.

    An object whose metadata or name is not yet known is left alone.
    """
    if is_unknown(obj.get("metadata")) or metadata_of(obj).get("name"):
        return
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(_AUTONAME_DIGITS)
    _set_autoname(obj, proposed or f"{logical_name}-{digits[:_AUTONAME_DIGITS]}")


def adopt_autoname(obj: dict[str, Any], old: dict[str, Any]) -> None:
    """Keeps the automatic name of the object's former version."""
    if not is_unknown(obj.get("metadata")) and not metadata_of(obj).get("name") and is_autonamed(old):
        _set_autoname(obj, name_of(old))


def _set_autoname(obj: dict[str, Any], name: str) -> None:
    metadata = obj.setdefault("metadata", {})
    metadata["name"] = name
    annotations = metadata.setdefault("annotations", {})
    if isinstance(annotations, dict):
        annotations[AUTONAMED] = "true"


def new_field_manager() -> str:
    """A field manager nobody else has, in the plugin's form."""
    return f"pulumi-kubernetes-{secrets.token_hex(4)}"
