"""PersistentVolumes, their claims and StorageClasses."""

from typing import Any

from plimsoll.model.cluster import PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.placement.rules import ZONE

TEAM = "team"


def terms(*alternatives: dict[str, list[str]]) -> list[dict[str, Any]]:
    return [
        {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
        for term in alternatives
    ]


def a_volume(
    name: str,
    *alternatives: dict[str, list[str]],
    claim: str = "models",
    namespace: str = TEAM,
    uid: str = "",
    size: Any = None,
    driver: str = "ebs.csi.aws.com",
) -> PersistentVolume:
    """A volume of a claim, where labels of nodes have one of these values, in one of these ways."""
    return PersistentVolume.read(
        {
            "metadata": {"name": name},
            "spec": {
                "claimRef": {"namespace": namespace, "name": claim, "uid": uid},
                "csi": {"driver": driver},
                "capacity": {} if size is None else {"storage": size},
                **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms(*alternatives)}}} if alternatives else {}),
            },
        }
    )


def in_zone(name: str, zone: str, **more: Any) -> PersistentVolume:
    return a_volume(name, {ZONE: [zone]}, **more)


def a_volume_claim(
    name: str = "models",
    volume: str = "",
    storage_class: str | None = None,
    *,
    namespace: str = TEAM,
    mode: str = "ReadWriteOnce",
    size: Any = None,
    **metadata: Any,
) -> PersistentVolumeClaim:
    spec: dict[str, Any] = {"volumeName": volume, "accessModes": [mode]} | (
        {} if storage_class is None else {"storageClassName": storage_class}
    )
    spec["resources"] = {"requests": {} if size is None else {"storage": size}}
    return PersistentVolumeClaim.read({"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec})


def a_storage_class(
    name: str = "fast",
    *zones: str,
    mode: str = "WaitForFirstConsumer",
    provisioner: str = "ebs.csi.aws.com",
    **meta: Any,
) -> StorageClass:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    fields = {"provisioner": provisioner, "volumeBindingMode": mode, "allowedTopologies": allowed}
    return StorageClass.read({"metadata": {"name": name, **meta}, **fields})
