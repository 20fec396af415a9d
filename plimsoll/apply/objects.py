"""Objects of the cluster: the kind of a key, and whether an object is being deleted."""

from collections.abc import Mapping
from typing import Any

from plimsoll.kube import Kind, kind_of
from plimsoll.model import ObjectKey


def kind_of_key(key: ObjectKey) -> Kind:
    return kind_of({"apiVersion": key.api_version, "kind": key.kind})


def is_being_deleted(live: Mapping[str, Any]) -> bool:
    """Whether the object is terminating: deleted, but kept by its finalizers or its grace period."""
    return bool((live.get("metadata") or {}).get("deletionTimestamp"))
