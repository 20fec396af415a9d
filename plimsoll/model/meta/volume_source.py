"""Volume sources (v1 Volume without its name): exactly one kind, with its fields."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from plimsoll.model.meta.fields import dig
from plimsoll.quantity import parse_quantity

KINDS: Final = frozenset(
    {
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "hostPath",
        "image",
        "iscsi",
        "nfs",
        "persistentVolumeClaim",
        "photonPersistentDisk",
        "portworxVolume",
        "projected",
        "quobyte",
        "rbd",
        "scaleIO",
        "secret",
        "storageos",
        "vsphereVolume",
    }
)
"""Fields of core/v1 VolumeSource."""


def check_volume_source(source: Mapping[str, Any]) -> None:
    """Raises ValueError, which says what is wrong, where the apiserver would refuse a pod with the volume."""
    unknown = sorted(source.keys() - KINDS)
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a type of volume: set one such as persistentVolumeClaim, without a name"
        )
    if len(source) != 1:
        kinds = ", ".join(sorted(source)) or "none"
        raise ValueError(f"a volume has exactly one type, such as persistentVolumeClaim, but these are set: {kinds}")
    [(kind, fields)] = source.items()
    if not isinstance(fields, dict):
        raise ValueError(f"{kind} must be an object")
    for path, check in _CHECKS.get(kind, {}).items():
        try:
            check(dig(fields, path))
        except ValueError as error:
            raise ValueError(f"{kind}.{path}: {error}") from None


_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _name(value: Any) -> None:
    if not isinstance(value, str) or len(value) > 253 or not _NAME.fullmatch(value):
        raise ValueError(f"{value!r} is no name: a-z 0-9 - and . are allowed")


def _path(value: Any) -> None:
    if not isinstance(value, str) or not value or ".." in value.split("/"):
        raise ValueError(f"{value!r} is no path: give one without ..")


def _size(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or parse_quantity(value) <= 0:
        raise ValueError(f"{value!r} is no size above 0, such as 100Gi")


def _size_or_none(value: Any) -> None:
    if value is not None:
        _size(value)


def _modes(value: Any) -> None:
    if not isinstance(value, list) or not value:
        raise ValueError("give a list such as [ReadWriteOnce]")


_CHECKS: Final[Mapping[str, Mapping[str, Callable[[Any], None]]]] = {
    "emptyDir": {"sizeLimit": _size_or_none},
    "ephemeral": {
        "volumeClaimTemplate.spec.accessModes": _modes,
        "volumeClaimTemplate.spec.resources.requests.storage": _size,
    },
    "hostPath": {"path": _path},
    "persistentVolumeClaim": {"claimName": _name},
}
"""What the apiserver checks of the kinds that are used most, by the path of the field."""
