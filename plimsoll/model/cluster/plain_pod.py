"""Plain pods: pods without GPU requests. Only what they use of their node is kept, and what rules about pods see."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from plimsoll.labels import is_device
from plimsoll.model.kai import POD_GROUP_NAME, is_share_annotation
from plimsoll.model.meta import HostRequest, PodRules, read_rules
from plimsoll.packing import Relation

_NO_GROUP: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A plain pod as rules of other pods see it. The fields have the names of those of Pod."""

    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """Only that of its PodGroup."""
    deleting: bool
    rules: PodRules
    """Those that keep other pods away: required anti-affinity."""


class PodLoad(NamedTuple):
    """What a plain pod uses of its node; one object for equal pods."""

    host: HostRequest
    daemon_set: str = ""
    """`namespace/name` of the DaemonSet that owns the pod; empty for others."""
    neighbour: Neighbour | None = None
    """None for a pod that does not exist yet."""


class PlainPod(NamedTuple):
    node: str
    load: PodLoad

    @classmethod
    def read(cls, manifest: Mapping[str, Any]) -> "PlainPod | None":
        """None if it is not bound, or finished. Raises ValueError on an invalid quantity or rule."""
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        node = spec.get("nodeName")
        if not node or status.get("phase") in ("Succeeded", "Failed"):
            return None
        daemon_set = _daemon_set(manifest.get("metadata") or {})
        return cls(str(node), _shared(HostRequest.read(spec), daemon_set, _neighbour_key(manifest)))


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


_NeighbourKey = tuple[str, tuple[tuple[str, str], ...], str, bool, PodRules]


def _neighbour_key(manifest: Mapping[str, Any]) -> _NeighbourKey:
    """Equal for pods that are equal neighbours. Raises ValueError, which names the field that cannot be read."""
    metadata = manifest.get("metadata") or {}
    rules = read_rules(manifest.get("spec") or {})
    return (
        str(metadata.get("namespace") or ""),
        tuple((metadata.get("labels") or {}).items()),
        (metadata.get("annotations") or {}).get(POD_GROUP_NAME) or "",
        bool(metadata.get("deletionTimestamp")),
        tuple(rule for rule in rules if rule.relation is Relation.APART) if rules else (),
    )


def _neighbour_of(key: _NeighbourKey) -> Neighbour:
    namespace, labels, group, deleting, rules = key
    return Neighbour(namespace, dict(labels), {POD_GROUP_NAME: group} if group else _NO_GROUP, deleting, rules)


@lru_cache(maxsize=65_536)
def _shared(host: HostRequest, daemon_set: str, key: _NeighbourKey) -> PodLoad:
    return PodLoad(host, daemon_set, _neighbour_of(key))
