"""What an update would change, and which changes replace the object because the field is immutable.

The list of fields is that of the plugin (its documentation: "immutable fields trigger replacement"), and in addition
the spec of a NodeClaim, which is immutable in Karpenter.
"""

from dataclasses import dataclass
from typing import Final

from plimsoll.kube import Kind, kind_of, name_of, namespace_of
from plimsoll.provider.autonaming import is_autonamed
from plimsoll.provider.comparison import Change, Path, changes, covers, prune, touches
from plimsoll.provider.inputs import declared
from plimsoll.provider.session import Session
from plimsoll.provider.state import INPUTS
from plimsoll.provider.values import Properties, plain

_IDENTITY: Final[tuple[Path, ...]] = (("metadata", "name"), ("metadata", "namespace"), ("kind",))
_SELECTOR: Final[Path] = ("spec", "selector")
_CONTAINER_MUTABLE: Final = frozenset({"name", "envFrom", "resizePolicy", "restartPolicy", "startupProbe"})

_BY_KIND: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("", "ResourceQuota"): (("spec", "scopes"),),
    ("", "Service"): (("spec", "clusterIP"),),
    ("", "PersistentVolumeClaim"): (
        ("spec", "accessModes"),
        _SELECTOR,
        ("spec", "storageClassName"),
        ("spec", "volumeName"),
    ),
    ("apps", "DaemonSet"): (_SELECTOR,),
    ("apps", "Deployment"): (_SELECTOR,),
    ("apps", "StatefulSet"): (
        ("spec", "podManagementPolicy"),
        ("spec", "revisionHistoryLimit"),
        _SELECTOR,
        ("spec", "serviceName"),
        ("spec", "volumeClaimTemplates"),
    ),
    ("batch", "Job"): (("spec", "completions"), ("spec", "parallelism"), _SELECTOR, ("spec", "template")),
    ("karpenter.sh", "NodeClaim"): (("spec",),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("storage.k8s.io", "StorageClass"): (("parameters",), ("provisioner",)),
}

_MUTABLE_POD_SPEC: Final = frozenset(
    {"activeDeadlineSeconds", "ephemeralContainers", "schedulingGates", "tolerations", "topologySpreadConstraints"}
)
_MUTABLE_VOLUME_SPEC: Final = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


@dataclass(frozen=True)
class Diff:
    """The changes of an update, and those that replace the object; none if `changed` is empty."""

    changed: list[Change]
    replaced: list[Change]
    deletes_first: bool
    """Whether the old object must be deleted before its replacement is created, because both have the same explicit
    name."""


def diff(session: Session, state: Properties, inputs: Properties, ignored: list[Path]) -> Diff:
    """Compares the live object as last read, limited to the old inputs, with the new inputs."""
    live = plain(state)
    old_inputs = live.pop(INPUTS, None)
    new = declared(plain(inputs))
    old = prune(declared(live), declared(old_inputs) if isinstance(old_inputs, dict) else {})
    before, after = old.get("metadata"), new.get("metadata")
    if isinstance(before, dict) and isinstance(after, dict):
        if name_of(new):
            before["name"] = name_of(live)
        namespaced = session.objects.is_namespaced(kind_of(new))
        for metadata, obj in ((before, live), (after, new)):
            metadata["namespace"] = (namespace_of(obj) or "default") if namespaced else None
    found = [change for change in changes(old, new) if not any(covers(path, change.path) for path in ignored)]
    replaced = replacing(found, new, session)
    return Diff(found, replaced, bool(replaced) and _deletes_first(new, live))


def replacing(found: list[Change], new: Properties, session: Session) -> list[Change]:
    """The changes that cannot be made in place."""
    kind = kind_of(new)
    patterns = _IDENTITY + _BY_KIND.get((kind.group, kind.kind), ()) + _data(kind, new, session)
    return [
        change
        for change in found
        if any(touches(pattern, change) for pattern in patterns)
        or (kind.group == "" and kind.kind == "Pod" and _replaces_pod(change.path))
        or (kind.group == "" and kind.kind == "PersistentVolume" and _replaces_volume(change.path))
    ]


def _deletes_first(new: Properties, live: Properties) -> bool:
    return (
        bool(name_of(new))
        and not is_autonamed(new)
        and name_of(new) == name_of(live)
        and namespace_of(new) == namespace_of(live)
    )


def _data(kind: Kind, new: Properties, session: Session) -> tuple[Path, ...]:
    """The plugin replaces a ConfigMap or Secret when its data changes, unless it is configured otherwise."""
    immutable = new.get("immutable") is True
    if kind == Kind("", "v1", "Secret"):
        if immutable or not session.secret_mutable:
            return ("type",), ("data",), ("stringData",)
        return (("type",),)
    if kind == Kind("", "v1", "ConfigMap") and (immutable or not session.config_map_mutable):
        return ("data",), ("binaryData",)
    return ()


def _replaces_pod(path: Path) -> bool:
    if path[:1] != ("spec",):
        return False
    if len(path) >= 4 and path[1] in ("containers", "initContainers"):
        return path[3] not in _CONTAINER_MUTABLE
    return len(path) == 1 or path[1] not in _MUTABLE_POD_SPEC


def _replaces_volume(path: Path) -> bool:
    return path[:1] == ("spec",) and (len(path) == 1 or path[1] not in _MUTABLE_VOLUME_SPEC)
