"""Property values on the wire between engine and provider, and their secrets and unknowns.

The encoding is the engine's (`google.protobuf.Struct` with signature keys): a secret is an object
`{SIGNATURE: SECRET, "value": v}`, an unknown value is one of seven sentinel strings, a number is always a double.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf import struct_pb2

from plimsoll.errors import PlimsollError

_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_ASSET: Final = "c44067f5952c0a294b673a41bacd8c17"
_RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS: Final = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with the whole object as `kubectl apply` sent it."""

# JSON Schema extensions of CustomResourceDefinitions, because the SDKs cannot have field names with dashes.
_DASHED: Final = {
    name.replace("-", "_"): name
    for name in (
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
}
_UNDERSCORED: Final = {dashed: name for name, dashed in _DASHED.items()}

Properties = dict[str, Any]
PropertyPath = tuple[str | int, ...]
"""Keys and indices from an object to a property of it."""


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts in its state and hides in its output."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(frozen=True)
class Asset:
    """A file that is an input of a component. Kubernetes objects have no such fields."""

    text: str | None
    path: str | None

    def as_file(self, target: Path) -> str:
        """The path of a file with the asset's content: its own path, or `target`. Raises PlimsollError for a remote
        asset."""
        if self.path is not None:
            return self.path
        if self.text is None:
            raise PlimsollError("a remote asset is not supported by the built-in provider", "use a file or a string")
        target.write_text(self.text)
        return str(target)


def decode(struct: struct_pb2.Struct) -> Properties:
    """Decodes the properties of a request: removes nulls, wraps secrets, converts whole doubles to int, and restores
    dashes in schema extensions.

    Raises PlimsollError for archives, resource references and infinite numbers, which no Kubernetes field accepts.
    """
    return {
        _DASHED.get(key, key): _decode(value)
        for key, value in struct.fields.items()
        if value.WhichOneof("kind") not in (None, "null_value")
    }


def _decode(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "struct_value":
        return _decode_struct(value.struct_value)
    if kind == "number_value":
        return _number(value.number_value)
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_decode(item) for item in value.list_value.values]
    return None


def _number(number: float) -> int | float:
    """A whole number is an int as far as an int64 goes: in JSON, a larger one is a double."""
    if not math.isfinite(number):
        raise PlimsollError(f"a property is {number}, which no Kubernetes field takes", "pass a finite number")
    return int(number) if number.is_integer() and -(2**63) <= number < 2**63 else number


def _decode_struct(struct: struct_pb2.Struct) -> Any:
    fields = struct.fields
    if _SIGNATURE not in fields:
        return decode(struct)
    signature = fields[_SIGNATURE].string_value
    if signature == _SECRET:
        return Secret(_decode(fields["value"]))
    if signature == _OUTPUT:
        inner = _decode(fields["value"]) if "value" in fields else UNKNOWN
        return Secret(inner) if "secret" in fields and fields["secret"].bool_value else inner
    if signature == _ASSET:
        return Asset(*(fields[key].string_value if key in fields else None for key in ("text", "path")))
    raise PlimsollError(
        "a property is an archive or a reference to a resource, which no Kubernetes field takes",
        "pass an output of the resource instead",
    )


def encode(properties: Properties, *, underscored: bool = False) -> struct_pb2.Struct:
    """The inverse of `decode`. `underscored` renames schema extensions to names that SDKs can read (for outputs)."""
    struct = struct_pb2.Struct()
    _encode_into(struct, properties, underscored)
    return struct


def _encode_into(struct: struct_pb2.Struct, properties: Properties, underscored: bool) -> None:
    fields = struct.fields
    for key, value in properties.items():
        if value is not None:
            _encode(fields[_UNDERSCORED.get(key, key) if underscored else key], value, underscored)


def _encode(slot: struct_pb2.Value, value: Any, underscored: bool) -> None:
    if isinstance(value, str):
        slot.string_value = value
    elif isinstance(value, bool):
        slot.bool_value = value
    elif isinstance(value, int | float):
        slot.number_value = value
    elif isinstance(value, dict):
        slot.struct_value.SetInParent()
        _encode_into(slot.struct_value, value, underscored)
    elif isinstance(value, list):
        slot.list_value.SetInParent()
        for item in value:
            _encode(slot.list_value.values.add(), item, underscored)
    elif isinstance(value, Secret):
        fields = slot.struct_value.fields
        fields[_SIGNATURE].string_value = _SECRET
        _encode(fields["value"], value.value, underscored)
    elif value is None:
        slot.null_value = struct_pb2.NULL_VALUE
    else:
        raise TypeError(f"no property value: {type(value).__name__}")


def plain(value: Any) -> Any:
    """A deep copy without secret marks, for the apiserver."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Secret):
        return plain(value.value)
    if isinstance(value, Asset):
        raise PlimsollError("a property is an asset, which no Kubernetes field takes", "pass its text instead")
    return value


def secret_texts(value: Any, *, secret: bool = False) -> Iterator[str]:
    """All non-empty strings in `value` that are secret or part of a secret value."""
    if isinstance(value, Secret):
        yield from secret_texts(value.value, secret=True)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from secret_texts(item, secret=secret)
    elif secret and isinstance(value, str) and value:
        yield value


def reference(urn: str, resource_id: str, version: str) -> Properties:
    """A reference to a registered resource, as an output. An empty id means that it is not known yet."""
    return {_SIGNATURE: _RESOURCE, "urn": urn, "id": resource_id or UNKNOWN, "packageVersion": version}


def is_unknown(value: Any) -> bool:
    return isinstance(value, str) and value in _UNKNOWNS


def has_unknowns(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_unknowns(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknowns(item) for item in value)
    if isinstance(value, Secret):
        return has_unknowns(value.value)
    return is_unknown(value)


def has_secrets(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_secrets(item) for item in value.values())
    if isinstance(value, list):
        return any(has_secrets(item) for item in value)
    return isinstance(value, Secret)


def mark_secrets(plain_object: Properties, source: Properties) -> Properties:
    """A copy of `plain_object` in which whatever is secret in `source` is secret too.

    Objects and lists are walked, so one secret does not hide what is around it; a list in which a secret is no longer
    where `source` has it is secret as a whole. `data` and `stringData` of a Secret always are, and so is the copy of an
    object with secrets that `kubectl apply` leaves in an annotation.
    """
    marked = dict(plain_object)
    for key, origin in source.items():
        if marked.get(key) is not None:
            marked[key] = _marked(marked[key], origin)
    if "apiVersion" not in marked:
        return marked
    if marked.get("kind") == "Secret":
        for key in ("data", "stringData"):
            if key in marked and not isinstance(marked[key], Secret):
                marked[key] = Secret(plain(marked[key]))
    if marked.get("kind") == "Secret" or has_secrets(source):
        _mark_copy(marked)
    return marked


def _mark_copy(marked: Properties) -> None:
    metadata = marked.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(annotations, dict) and isinstance(annotations.get(LAST_APPLIED), str):
        hidden = {LAST_APPLIED: Secret(annotations[LAST_APPLIED])}
        marked["metadata"] = metadata | {"annotations": annotations | hidden}


def _marked(value: Any, origin: Any) -> Any:
    if isinstance(value, dict) and isinstance(origin, dict):
        return mark_secrets(value, origin)
    if isinstance(value, Secret) or not has_secrets(origin):
        return value
    if isinstance(value, list) and isinstance(origin, list) and _in_place(value, origin):
        return [*map(_marked, value, origin), *value[len(origin) :]]
    return Secret(value)


def _in_place(value: Any, origin: Any) -> bool:
    """Whether each secret of `origin` is at the same place in `value`."""
    if isinstance(origin, Secret):
        return bool(plain(value) == plain(origin))
    if isinstance(origin, dict):
        return isinstance(value, dict) and all(_in_place(value.get(key), item) for key, item in origin.items())
    if isinstance(origin, list):
        return isinstance(value, list) and len(value) >= len(origin) and all(map(_in_place, value, origin))
    return True
