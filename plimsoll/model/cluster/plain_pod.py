"""Plain pods: pods without GPU requests. Only what they use of their node is kept."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from plimsoll.labels import is_device
from plimsoll.model.kai import is_share_annotation
from plimsoll.model.meta import HostRequest


class PodLoad(NamedTuple):
    """What a plain pod uses of its node; one object for equal pods."""

    host: HostRequest
    daemon_set: str = ""
    """`namespace/name` of the DaemonSet that owns the pod; empty for others."""


class PlainPod(NamedTuple):
    node: str
    load: PodLoad

    @classmethod
    def read(cls, manifest: Mapping[str, Any]) -> "PlainPod | None":
        """None if it is not bound, or finished. Raises ValueError on an invalid quantity."""
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        node = spec.get("nodeName")
        if not node or status.get("phase") in ("Succeeded", "Failed"):
            return None
        return cls(str(node), _shared(HostRequest.read(spec), _daemon_set(manifest.get("metadata") or {})))


def requests_devices(manifest: Mapping[str, Any]) -> bool:
    """Whether a pod, or a pod template, requests or claims devices, or requests GPU shares.

    Devices are extended resources (with a domain other than kubernetes.io): the Environment determines which of them
    are GPUs, and may change.
    """
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    if any(map(is_share_annotation, annotations)):
        return True
    spec = manifest.get("spec") or {}
    if spec.get("resourceClaims"):
        return True
    return any(_names_device(each) for part in ("containers", "initContainers") for each in spec.get(part) or ())


def _names_device(container: Any) -> bool:
    resources = container.get("resources") if isinstance(container, Mapping) else None
    return any(is_device(resource) for part in ("requests", "limits") for resource in (resources or {}).get(part) or {})


def _daemon_set(metadata: Mapping[str, Any]) -> str:
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("kind") == "DaemonSet" and owner.get("controller", True):
            return f"{metadata.get('namespace') or ''}/{owner.get('name') or ''}"
    return ""


_shared = lru_cache(maxsize=65_536)(PodLoad)
