"""Reads fields of unvalidated manifests: a field with an unexpected type counts as absent."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

from plimsoll.model.meta import section

Manifest = Mapping[str, Any]

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def text(value: Any, name: str) -> str:
    """The text under a name; empty where there is none."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def items(value: Any, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The mappings of the list under a name, with their positions."""
    found = value.get(name) if isinstance(value, Mapping) else None
    if is_list(found):
        yield from ((number, item) for number, item in enumerate(found) if isinstance(item, Mapping))


def whole(value: Any) -> Any:
    """A copy of which every value was read: for a check of all fields together, such as a schema. A policy pack cannot
    read what a preview does not know."""
    if isinstance(value, Mapping):
        return {name: whole(value[name]) for name in value}
    return [whole(each) for each in value] if is_list(value) else value


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def join(path: str, *steps: str | int) -> str:
    """A field's path as Kubernetes writes it: `spec.containers[0].image`, `metadata.annotations[gpu-fraction]`."""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f"[{step}]"
    return path


def group_of(manifest: Manifest) -> str:
    """The API group; empty for the core's."""
    group, slash, _ = text(manifest, "apiVersion").partition("/")
    return group if slash else ""


def kind_of(manifest: Manifest) -> str:
    return text(manifest, "kind")


def labels_of(manifest: Manifest) -> Mapping[str, Any]:
    return section(manifest, "metadata", "labels")


def annotations_of(manifest: Manifest) -> Mapping[str, Any]:
    return section(manifest, "metadata", "annotations")


def name_of(manifest: Manifest) -> str:
    """`metadata.name`, else `generateName`; empty where there is neither."""
    metadata = section(manifest, "metadata")
    return text(metadata, "name") or text(metadata, "generateName")


def namespace_of(manifest: Manifest) -> str:
    return text(section(manifest, "metadata"), "namespace")


def is_kind(manifest: Manifest, group: str, *kinds: str) -> bool:
    return group_of(manifest) == group and kind_of(manifest) in kinds
