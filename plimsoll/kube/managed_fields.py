"""Moves the ownership of fields from the manager of a create (operation Update) to the manager of later applies."""

from typing import Any, Final

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


def _entries(obj: Object) -> list[dict[str, Any]]:
    return [entry for entry in metadata_of(obj).get("managedFields") or [] if not entry.get("subresource")]


def _union(left: Fields, right: Fields) -> Fields:
    return left | {
        key: _union(left[key], value) if isinstance(left.get(key), dict) else value for key, value in right.items()
    }
