"""Karpenter's EC2NodeClass (karpenter.k8s.aws/v1): the capacity reservations that it selects, and its nodes' disk.

How Karpenter counts the disk: blockDeviceMappings and instanceStorePolicy in
https://karpenter.sh/docs/concepts/nodeclasses/, `ephemeralStorage` and `evictionThreshold` in
https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instancetype/types.go.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.labels import ZONE
from plimsoll.model.karpenter.aks_node_class import AksNodeClass
from plimsoll.model.meta import Condition, Observed, ObservedObject, condition_of
from plimsoll.quantity import parse_bytes

EC2_GROUP: Final = "karpenter.k8s.aws"
RESERVATION_LABELS: Final = f"{EC2_GROUP}/capacity-reservation-"
"""What the keys of labels that only nodes in reservations have begin with."""
_ID: Final = f"{RESERVATION_LABELS}id"
_TYPE: Final = f"{RESERVATION_LABELS}type"
BLOCK: Final = "capacity-block"
_DEVICES: Final = {"al2": "/dev/xvda", "al2023": "/dev/xvda", "bottlerocket": "/dev/xvdb"}
"""The volume with the pods' files, by AMI family."""
_DEFAULT_BYTES: Final = 20 * 2**30
"""Size of that volume in these families, where the node class sets none."""
_KUBELET_BYTES: Final = 2**30
"""What the kubelet keeps of the disk, where the node class does not say."""
_EVICTION: Final = "10%"
"""The free part of the disk at which it evicts pods, where the node class does not say."""
_STORAGE: Final = "ephemeral-storage"


class Reservation(Observed):
    """An On-Demand Capacity Reservation or a Capacity Block."""

    id: str = ""
    instance_type: str = Field(default="", validation_alias="instanceType")
    kind: str = Field(default="default", validation_alias="reservationType")
    zone: str = Field(default="", validation_alias="availabilityZone")
    end: str | None = Field(default=None, validation_alias="endTime")
    """RFC 3339; None: it has no end."""
    state: str = "active"
    """`expiring` from 40 minutes before the end of a capacity block: Karpenter launches nothing there any more
    (`Available` of the offering in pkg/providers/instancetype/offering of karpenter-provider-aws)."""

    @property
    def labels(self) -> dict[str, str]:
        """Labels of a node there."""
        return {_ID: self.id, _TYPE: self.kind, ZONE: self.zone}

    def __str__(self) -> str:
        return f"{'capacity block' if self.kind == BLOCK else 'capacity reservation'} {self.id}"


class Volume(Observed):
    """An EBS volume of a node."""

    device: str = Field(default="", validation_alias="deviceName")
    root: bool = Field(default=False, validation_alias="rootVolume")
    """Whether it holds the kubelet's files, which are those of pods, whatever the family."""
    size: str | int | None = Field(default=None, validation_alias=AliasPath("ebs", "volumeSize"))


class _Image(Observed):
    alias: str = ""
    """Family and version, such as `al2023@latest`."""


class _Kubelet(Observed):
    kube: dict[str, Any] = Field(default_factory=dict, validation_alias="kubeReserved")
    system: dict[str, Any] = Field(default_factory=dict, validation_alias="systemReserved")
    eviction: dict[str, Any] = Field(default_factory=dict, validation_alias="evictionHard")


class Ec2NodeClass(ObservedObject):
    kind: ClassVar = "EC2NodeClass"
    group: ClassVar = EC2_GROUP
    family: str = Field(default="", validation_alias=AliasPath("spec", "amiFamily"))
    images: tuple[_Image, ...] = Field(default=(), validation_alias=AliasPath("spec", "amiSelectorTerms"))
    volumes: tuple[Volume, ...] = Field(default=(), validation_alias=AliasPath("spec", "blockDeviceMappings"))
    local_disks: str = Field(default="", validation_alias=AliasPath("spec", "instanceStorePolicy"))
    """`RAID0`: the disks of the instance hold the pods' files."""
    kubelet: _Kubelet | None = Field(default=None, validation_alias=AliasPath("spec", "kubelet"))
    reservations: tuple[Reservation, ...] = Field(
        default=(), validation_alias=AliasPath("status", "capacityReservations")
    )
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))

    @property
    def reports_reservations(self) -> bool:
        """Whether `reservations` are all: Karpenter leaves the field out where there are none."""
        found = condition_of(self.conditions, "CapacityReservationsReady")
        return bool(self.reservations) or (found is not None and found.status == "True")

    def disk_mib(self, nvme_gib: float | None) -> int | None:
        """Allocatable ephemeral storage of a node of a type with NVMe disks of `nvme_gib` GiB, MiB; None if the size is
        not known. 0 GiB: it has none, so that `RAID0` changes nothing."""
        if self.local_disks == "RAID0" and nvme_gib is None:
            return None
        nvme = nvme_gib if self.local_disks == "RAID0" else 0
        size = round(nvme * 2**30) if nvme else self._volume_bytes()
        return None if size is None else max(0, size - self._reserved(size)) // 2**20

    def larger_disk(self, nvme_gib: float | None, least_mib: int) -> str:
        """What to change for a disk of at least `least_mib` MiB on such a node."""
        larger = f"enlarge the volume in spec.blockDeviceMappings of EC2NodeClass {self.name}"
        if not self.local_disks and (nvme_gib or 0) * 2**10 > least_mib:
            larger += f", set its spec.instanceStorePolicy to RAID0 (the type has {nvme_gib:g} GiB of NVMe disks)"
        return larger

    def _volume_bytes(self) -> int | None:
        root = next((each for each in self.volumes if each.root), None)
        if root is None:
            device = _DEVICES.get(self._family)
            if device is None:
                return None
            root = next((each for each in self.volumes if each.device == device), None)
        if root is None:
            return _DEFAULT_BYTES
        return None if root.size is None else _bytes(root.size)  # that of its snapshot is not known

    @property
    def _family(self) -> str:
        named = (each.alias.partition("@")[0] for each in self.images if each.alias)
        return (self.family or next(named, "")).casefold()

    def _reserved(self, size: int) -> int:
        """Bytes that pods cannot have. Soft evictions, which not every family has, are left out."""
        settings = self.kubelet or _Kubelet()
        kube = _bytes(settings.kube[_STORAGE]) if _STORAGE in settings.kube else _KUBELET_BYTES
        system = _bytes(settings.system.get(_STORAGE, 0))
        return (kube or 0) + (system or 0) + _evicted(settings.eviction, size)


def _evicted(eviction: Mapping[str, Any], size: int) -> int:
    """Bytes below which the kubelet evicts pods; 100 percent is none."""
    said = str(eviction.get("nodefs.available", _EVICTION))
    if not said.endswith("%"):
        return _bytes(said) or 0
    percent = 0.0
    with suppress(ValueError):
        percent = float(said[:-1])
    return math.ceil(size * percent / 100) if 0 < percent < 100 else 0


def _bytes(amount: object) -> int | None:
    try:
        return parse_bytes(str(amount))
    except ValueError:
        return None


NodeClass = Ec2NodeClass | AksNodeClass
