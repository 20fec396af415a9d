"""The devices that a pod of a Workspace takes of a node: whole GPUs, shared ones, some of them, or a MIG slice."""

from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from plimsoll.cluster.pods import DeviceUse, device_name
from plimsoll.cluster.profiles import (
    GPU_REPLICAS,
    MIG_CONFIG_STATE,
    Discovery,
    InvalidGpuLabel,
    discovery_of,
    label_form,
    slice_mib,
)
from plimsoll.labels import GPU_RESOURCE, MIG_CONFIG, MIG_PREFIX
from plimsoll.model.api import Partition
from plimsoll.model.cluster import NVIDIA, VENDOR_RESOURCES, Device, Division, Node


class PodDevices(NamedTuple):
    """Devices of one pod; the same object for equal nodes."""

    device: Device
    """The node's devices, of which it takes some."""
    devices: int
    """Devices that one pod requests."""
    pods: int = 0
    """Pods per node, where each requests part of it; 0: one pod has the whole node."""

    @property
    def product(self) -> str:
        if self.device.profile or self.device.vendor == NVIDIA:
            return self.device.product or f"MIG {self.device.profile}"
        return self.device.product or self.device.resource

    @property
    def gpu_count(self) -> int:
        """GPUs of the node; for slices, as many as pods can request."""
        return self.device.announced if self.device.profile else self.device.count

    @property
    def memory_mib(self) -> int:
        """MiB of one GPU or slice."""
        memory = self.device.memory_mib or 0
        return memory // self.device.replicas if self.device.profile else memory

    @property
    def gpus(self) -> Device:
        """The GPUs of one pod."""
        if not self.device.separate:
            return Device(self.product, self.memory_mib, self.devices if self.pods else self.device.count)
        memory = max((self.device.memory_mib or 0) // self.device.replicas, 1)
        return Device(self.product, memory, 1, self.device.division, profile=self.device.profile)

    @property
    def uniformity(self) -> tuple[str, int, int]:
        """What must be equal on every node of a Workspace: product, count, MiB of one. Nodes may differ in the number
        of slices, of which each pod has one."""
        return (self.product, 0 if self.pods and self.device.profile else self.gpu_count, self.memory_mib)

    @property
    def warning(self) -> str:
        """What the pod does not have, or only with others; empty where it has its GPUs alone."""
        device = self.device
        shared = f"({GPU_REPLICAS}={device.replicas})"
        if device.profile and not self.pods:
            return (
                f"a node's GPUs are partitioned into {device.count} MIG slices, and a replica uses one of them and the "
                f"whole node: resource.partition with mode mig and profile {device.profile} lets several share a node"
            )
        if device.profile and device.replicas > 1:
            return (
                f"{device.profile} slices are shared ({device.resource}.replicas={device.replicas}): each pod counts "
                f"as having {self.memory_mib} of a slice's {device.memory_mib} MiB"
            )
        if device.division is Division.MPS:
            return (
                f"GPUs are shared by MPS {shared}: a pod may request one device, which has {self.gpus.memory_mib} of a "
                f"GPU's {device.memory_mib} MiB"
            )
        if device.division is Division.TIME_SLICING:
            return (
                f"GPUs are shared by time-slicing {shared}: a pod requests all {device.announced} devices to have the "
                f"node's {device.count} GPUs; sharing does not multiply their memory"
            )
        return ""

    def __str__(self) -> str:
        noun = " slices" if self.device.profile else ""
        memory = f" of {self.memory_mib} MiB each" if self.memory_mib or self.device.vendor == NVIDIA else ""
        return f"{self.gpu_count} x {self.product}{noun}{memory}"


class Unusable(NamedTuple):
    """A node whose GPUs the Workspace cannot use now."""

    problem: str
    profiles: tuple[str, ...] = ()
    """MIG profiles that it offers instead."""
    advice: str = ""
    """What makes it usable, where that is not one of these profiles."""


_UNLIKE: Final = Unusable(
    "its GPUs that pods get by claims differ, or are parts of GPUs",
    advice="select nodes whose GPUs are alike and whole",
)


def pod_devices(
    node: Node, partition: Partition | None, *, claims: bool = False
) -> PodDevices | Unusable | InvalidGpuLabel:
    """What a pod that requests such a partition takes of the node; None: the whole node. `claims`: it gets its GPUs by
    a claim."""
    discovery = discovery_of(node)
    vendors = discovery.of_vendor
    if vendors is not None and vendors.resource in VENDOR_RESOURCES and not claims:
        return _of_vendor(vendors, partition)
    other = _other_vendor(node) if vendors or (discovery.unlabelled and discovery.gpus is None) else None
    return other or (_claimed(discovery) if claims else _of(discovery, partition))


@lru_cache(maxsize=1024)
def _of_vendor(gpus: Device, partition: Partition | None) -> PodDevices | Unusable:
    """Of a node with GPUs of AMD or Intel, which their device plugin announces."""
    if gpus.division is not Division.WHOLE:
        return Unusable(f"its GPUs are shared: {gpus}", advice="select nodes whose GPUs are whole")
    if partition is None:
        return PodDevices(gpus, gpus.count)
    if partition.mode == "mig":
        return Unusable(f"has {gpus}, and MIG is of NVIDIA's GPUs", advice="remove resource.partition")
    return _some(gpus, partition.count or 1)


def _other_vendor(node: Node) -> Unusable | None:
    """Why a node of another vendor's device plugin cannot be used: discovery of NVIDIA's GPUs will never reach it."""
    for resource, amount in sorted(node.allocatable.items()):
        known = device_name(resource)
        if known is None or known.use is not DeviceUse.DEVICE or known.owner == "NVIDIA":
            continue
        if str(amount) != "0":
            can = "pods do not claim" if resource in VENDOR_RESOURCES else "no Workspace can request"
            return Unusable(
                f"its accelerators are {amount} {resource} of {known.owner}, which {can}",
                advice="remove resource.devices, or select nodes with a DRA driver"
                if resource in VENDOR_RESOURCES
                else "select nodes with GPUs of NVIDIA, AMD or Intel",
            )
    return None


@lru_cache(maxsize=8192)
def _of(node: Discovery, partition: Partition | None) -> PodDevices | Unusable | InvalidGpuLabel:
    """Cached, because many nodes say the same."""
    mig, gpus = node.mig, node.gpus
    profiles = tuple(device.profile for device in node.devices if device.profile)
    if mig.changing:
        return Unusable(
            f"its MIG configuration {mig.config!r} is not applied yet: label {MIG_CONFIG_STATE} is {mig.state!r}",
            advice=f"wait until the node has the slices of its MIG configuration, or change {MIG_CONFIG}",
        )
    if partition is not None and partition.mode == "mig":
        return _slices(node, partition.profile or "", profiles)
    if gpus is not None and gpus.profile and partition is None:
        return PodDevices(gpus, 1)
    if mig.active or profiles:
        return Unusable(f"{_partitioned(node, profiles)}: no whole GPUs", profiles)
    if node.invalid is not None:
        return node.invalid
    if gpus is None:
        served = _served(node)
        if isinstance(served, Unusable):
            return served
        gpus = served
    if partition is not None:
        return _some(gpus, partition.count or 1)
    # The device plugin rejects a pod that requests more than one device of MPS, and limits each to its memory.
    return PodDevices(gpus, 1 if gpus.division is Division.MPS else gpus.announced)


@lru_cache(maxsize=8192)
def _claimed(node: Discovery) -> PodDevices | Unusable | InvalidGpuLabel:
    """The GPUs of a node that pods get by claims of the DeviceClass of their driver."""
    if node.gpus is not None or (node.invalid is not None and not node.devices):
        return Unusable(
            "pods get its GPUs from a device plugin", advice="remove resource.devices, or select nodes of a DRA driver"
        )
    claimed = node.claimed
    if claimed is None or claimed.claimable is None:
        return _UNLIKE
    if not claimed.claimable.own_class:
        return Unusable(
            f"no DeviceClass {claimed.resource} selects its GPUs",
            advice=f"create DeviceClass {claimed.resource}, as the driver's chart does",
        )
    return PodDevices(claimed, claimed.announced)


def _served(node: Discovery) -> Device | Unusable:
    """The GPUs of a node that pods get by claims, which a DeviceClass serves as an extended resource."""
    claimed = node.claimed
    if claimed is None or claimed.claimable is None:
        return _UNLIKE
    if GPU_RESOURCE not in claimed.claimable.extended_resources:
        return Unusable(
            f"pods get its GPUs by claims of {claimed.resource} only",
            advice=f"set resource.devices to claim, or declare a DeviceClass of them with extendedResourceName "
            f"{GPU_RESOURCE}",
        )
    return replace(claimed, resource="")


def _partitioned(node: Discovery, profiles: tuple[str, ...]) -> str:
    return str(node.mig) if node.mig.active else f"partitioned by MIG into {', '.join(profiles)}"


def _slices(node: Discovery, profile: str, profiles: tuple[str, ...]) -> PodDevices | Unusable | InvalidGpuLabel:
    wanted = label_form(profile)
    device = next((each for each in node.devices if each.profile and label_form(each.profile) == wanted), None)
    if device is None and node.mig.active and not profiles and node.mig.config.casefold() == f"all-{wanted}":
        # Only the applied configuration names the profile: at least one slice exists.
        device = Device("", slice_mib(profile), 1, Division.MIG, 1, f"{MIG_PREFIX}{wanted}", profile)
    if device is None and not (node.mig.active or profiles):
        return InvalidGpuLabel(f"{MIG_PREFIX}{wanted}.count", None, "")
    if device is None:
        return Unusable(f"{_partitioned(node, profiles)}: no {profile} slices", profiles)
    return PodDevices(replace(device, profile=profile), 1, device.announced)


def _some(gpus: Device, count: int) -> PodDevices | Unusable:
    if count > gpus.count:
        return Unusable(
            f"has {gpus.count} GPUs, but resource.partition requests {count}",
            advice=f"set resource.partition.count to at most {gpus.count}",
        )
    if gpus.division is not Division.WHOLE or gpus.claimable is not None:
        return Unusable(
            f"its GPUs are shared ({GPU_REPLICAS}={gpus.replicas}): devices of a partition would not be whole GPUs",
            advice="remove resource.partition, or the sharing from the device plugin's configuration",
        )
    return PodDevices(gpus, count, gpus.count // count)
