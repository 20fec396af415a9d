"""Owners of fields: moves fields from the manager of a create (operation Update) to that of later applies, and finds
the lists of other managers."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from plimsoll.kube.identity import metadata_of
from plimsoll.kube.objects import Object, Objects

Fields = dict[str, Any]
"""FieldsV1 of structured-merge-diff: nested keys with prefixes `f:`, `k:` and `v:`."""

CREATOR: Final = "pulumi-kubernetes"
"""Field manager of the plugin's creates, whatever manager its updates use."""


def owned_by_apply(obj: Object, manager: str) -> bool:
    """Whether the manager's fields are already owned by an apply, so that the next apply may remove them."""
    mine = [entry for entry in _entries(obj) if entry.get("manager") == manager]
    return bool(mine) and all(entry.get("operation") == "Apply" for entry in mine)


def take_over(objects: Objects, live: Object, former: str, manager: str) -> None:
    """Moves the fields that `former`, or a create, set to `manager`, as if it had applied them.

    Otherwise an apply would conflict with fields of the create, or never remove them, because the apiserver counts two
    owners. Makes no request if there is nothing to move.
    """
    entries = list(metadata_of(live).get("managedFields") or [])
    turned = [
        entry
        for entry in _entries(live)
        if entry.get("operation") == "Update" and entry.get("manager") in {former, manager, CREATOR}
    ]
    if not turned:
        return
    applied = next((e for e in _entries(live) if e.get("operation") == "Apply" and e.get("manager") == manager), None)
    kept = [entry for entry in entries if entry not in turned and entry is not applied]
    fields: Fields = dict((applied or {}).get("fieldsV1") or {})
    for entry in turned:
        fields = _union(fields, entry.get("fieldsV1") or {})
    merged = (applied or turned[0]) | {"manager": manager, "operation": "Apply", "fieldsV1": fields}
    objects.patch(
        live,
        [
            {"op": "replace", "path": "/metadata/managedFields", "value": [*kept, merged]},
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": metadata_of(live).get("resourceVersion"),
            },
        ],
    )


def lists_of_others(live: Object) -> Iterator[tuple[str | int, ...]]:
    """Paths of the lists that field managers other than Pulumi's own as a whole, such as tolerations, and of all lists
    in these. Lists whose items have owners of their own, such as containers, are not among them."""
    for entry in _entries(live):
        if not str(entry.get("manager")).startswith(CREATOR):
            yield from _owned_lists(entry.get("fieldsV1") or {}, live, ())


def _owned_lists(fields: Fields, value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if not fields:
        yield from _lists(value, path)
    for key, below in fields.items():
        if key.startswith("f:") and isinstance(value, dict) and key[2:] in value:
            yield from _owned_lists(below, value[key[2:]], (*path, key[2:]))
        elif key.startswith("k:") and isinstance(value, list):
            names = orjson.loads(key[2:]).items()
            for index, item in enumerate(value):
                if isinstance(item, dict) and names <= item.items():
                    yield from _owned_lists(below, item, (*path, index))


def _lists(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, list):
        yield path
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _lists(item, (*path, step))


def _entries(obj: Object) -> list[dict[str, Any]]:
    return [entry for entry in metadata_of(obj).get("managedFields") or [] if not entry.get("subresource")]


def _union(left: Fields, right: Fields) -> Fields:
    return left | {
        key: _union(left[key], value) if isinstance(left.get(key), dict) else value for key, value in right.items()
    }
