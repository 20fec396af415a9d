"""Volume sources (v1 Volume without its name): exactly one kind, with its fields."""

from collections.abc import Mapping
from typing import Any, Final

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
