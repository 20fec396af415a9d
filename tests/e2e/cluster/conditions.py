"""Conditions of an object's status."""

from typing import Any


def condition(manifest: dict[str, Any] | None, kind: str) -> dict[str, Any]:
    """The condition of that type; an empty one where there is none."""
    for item in ((manifest or {}).get("status") or {}).get("conditions") or ():
        if item["type"] == kind:
            found: dict[str, Any] = item
            return found
    return {}


def is_ready(manifest: dict[str, Any] | None) -> bool:
    """Whether its condition Ready is True."""
    return condition(manifest, "Ready").get("status") == "True"
