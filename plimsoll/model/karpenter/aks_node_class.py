"""Karpenter's AKSNodeClass (karpenter.azure.com/v1beta1): the disk of its nodes.

How Karpenter counts it: `ephemeralStorage` in
https://github.com/Azure/karpenter-provider-azure/blob/main/pkg/providers/instancetype/instancetype.go: the whole disk,
in decimal gigabytes. Without a size, releases differ: 128 GB, or by the type (`osdisk.go` beside it).
"""

from typing import ClassVar, Final

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import ObservedObject

AKS_GROUP: Final = "karpenter.azure.com"


class AksNodeClass(ObservedObject):
    kind: ClassVar = "AKSNodeClass"
    group: ClassVar = AKS_GROUP
    disk_gb: int | None = Field(default=None, validation_alias=AliasPath("spec", "osDiskSizeGB"))

    def disk_mib(self, nvme_gib: float | None) -> int | None:
        """Ephemeral storage of a node as Karpenter counts it, MiB; None if the size is not known. Local disks of the
        type count for nothing: the kubelet's files are on the OS disk, wherever that is."""
        del nvme_gib
        return None if self.disk_gb is None else self.disk_gb * 10**9 // 2**20

    def larger_disk(self, nvme_gib: float | None, least_mib: int) -> str:
        """What to change for a disk of at least `least_mib` MiB."""
        del nvme_gib
        return f"set spec.osDiskSizeGB of AKSNodeClass {self.name} to {-(-least_mib * 2**20 // 10**9)} or more"
