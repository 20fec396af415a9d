"""Automatic names: an object that is declared without a name gets one and keeps it."""

import hashlib
import secrets
from typing import Any, Final

from plimsoll.kube import annotation, metadata_of, name_of
from plimsoll.provider.values import is_unknown

AUTONAMED: Final = "pulumi.com/autonamed"
_AUTONAME_DIGITS: Final = 8


def is_autonamed(obj: dict[str, Any]) -> bool:
    return annotation(obj, AUTONAMED) == "true"


def autoname(obj: dict[str, Any], logical_name: str, seed: bytes, proposed: str | None = None) -> None:
    """Names an object without a name: `proposed`, else `<logical name>-<8 hex digits>`, derived from `seed`.

    An object whose metadata or name is not known yet is not changed.
    """
    if is_unknown(obj.get("metadata")) or metadata_of(obj).get("name"):
        return
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(_AUTONAME_DIGITS)
    _set_autoname(obj, proposed or f"{logical_name}-{digits[:_AUTONAME_DIGITS]}")


def adopt_autoname(obj: dict[str, Any], old: dict[str, Any]) -> None:
    """Copies the automatic name from the object's previous version."""
    if not is_unknown(obj.get("metadata")) and not metadata_of(obj).get("name") and is_autonamed(old):
        _set_autoname(obj, name_of(old))


def _set_autoname(obj: dict[str, Any], name: str) -> None:
    metadata = obj.setdefault("metadata", {})
    metadata["name"] = name
    annotations = metadata.setdefault("annotations", {})
    if isinstance(annotations, dict):
        annotations[AUTONAMED] = "true"
