"""Resources of a Pulumi program as the manifests that the rules read."""

from collections.abc import Mapping
from typing import Any, Final

_KUBERNETES: Final = "kubernetes:"
_CORE: Final = "core/"


def manifest_of(resource_type: str, props: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The manifest that a resource declares, with the resource's name where it has none; None for other providers.

    The type's token is `kubernetes:<group>/<version>:<kind>`, with the group `core` for the core's.
    """
    if not resource_type.startswith(_KUBERNETES):
        return None
    group_version, _, kind = resource_type.removeprefix(_KUBERNETES).rpartition(":")
    metadata = props.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    metadata["name"] = _text(metadata.get("name")) or _text(metadata.get("generateName")) or name
    for part in ("labels", "annotations"):
        if not isinstance(metadata.get(part), Mapping | None):
            del metadata[part]  # not known before the update
    return {
        **props,
        "apiVersion": group_version.removeprefix(_CORE),
        "kind": kind,
        "metadata": metadata,
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
