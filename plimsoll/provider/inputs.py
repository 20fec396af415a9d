"""Normalizes declared objects to the format in which the plugin records and compares them."""

import base64
import binascii
from typing import Any, Final

from plimsoll.kube import Kind, kind_of
from plimsoll.provider.quantities import with_canonical_quantities
from plimsoll.provider.values import Properties, is_unknown

_SERVER_SET: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_OWN_GROUPS: Final = frozenset(
    {"", "apps", "autoscaling", "batch", "extensions", "policy"}
    | {
        f"{name}.k8s.io"
        for name in (
            "admissionregistration",
            "authentication",
            "authorization",
            "certificates",
            "coordination",
            "discovery",
            "events",
            "flowcontrol.apiserver",
            "networking",
            "node",
            "rbac.authorization",
            "resource",
            "scheduling",
            "storage",
            "storagemigration",
        )
    }
)
"""API groups of Kubernetes itself. The plugin has no types of other groups, and records their objects unchanged."""
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")


def declared(obj: Properties) -> Properties:
    """A copy of the object as it is recorded and compared, without fields that only the apiserver sets.

    In Kubernetes' own kinds, quantities are in the apiserver's form (`1` for `1000m`), a Secret's stringData becomes
    data, and empty labels and annotations are left out. Unknown values are not changed.
    """
    result = without_server_set(obj)
    if "kind" not in result or "apiVersion" not in result:
        return result
    kind = kind_of(result)
    if (kind.group, kind.kind) == _DEFINITION:
        return _definition(result)
    if kind == Kind("", "v1", "Secret"):
        return _secret(result)
    if kind.group not in _OWN_GROUPS:
        return result
    metadata = result.get("metadata")
    if isinstance(metadata, dict):
        kept = {key: value for key, value in metadata.items() if key not in ("annotations", "labels") or value != {}}
        result["metadata"] = kept
    spelled: Properties = with_canonical_quantities(result)
    return spelled


def without_server_set(obj: Properties) -> Properties:
    """A copy without the metadata that only the apiserver sets."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return dict(obj)
    return obj | {"metadata": {key: value for key, value in metadata.items() if key not in _SERVER_SET}}


def _secret(obj: Properties) -> Properties:
    """Moves stringData to data, which it overwrites. Data is encoded again as the apiserver encodes it, whatever its
    line breaks."""
    data, text = obj.get("data"), obj.get("stringData")
    result = dict(obj)
    if isinstance(data, dict):
        result["data"] = {key: _reencoded(value) for key, value in data.items()}
    if isinstance(text, dict) and text and all(isinstance(value, str) for value in text.values()):
        given = result.get("data")
        if given is None or isinstance(given, dict):
            del result["stringData"]
            result["data"] = (given or {}) | {key: _encoded(value) for key, value in text.items()}
    return result


def _encoded(text: str) -> str:
    return text if is_unknown(text) else base64.b64encode(text.encode()).decode()


def _reencoded(value: Any) -> Any:
    if not isinstance(value, str) or is_unknown(value):
        return value
    try:
        text = base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return value  # the apiserver refuses it, and names the key
    return base64.b64encode(text).decode()


def _definition(obj: Properties) -> Properties:
    """The apiserver removes preserveUnknownFields if it is false, and the status is not a part of the declaration."""
    result = {key: value for key, value in obj.items() if key != "status"}
    spec = result.get("spec")
    if isinstance(spec, dict) and spec.get("preserveUnknownFields") is False:
        result["spec"] = {key: value for key, value in spec.items() if key != "preserveUnknownFields"}
    return result
