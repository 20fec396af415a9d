"""What a node's GPUs offer to the pods of a Workspace: whole GPUs, shared ones, some of them, or MIG slices."""

from typing import NamedTuple

from plimsoll.cluster.nodes.gpu_labels import (
    GPU_REPLICAS,
    MIG_CONFIG,
    MIG_CONFIG_STATE,
    MPS,
    GpuLabels,
    InvalidGpuLabel,
    parse_gpu_labels,
)
from plimsoll.cluster.nodes.index import gpu_values
from plimsoll.cluster.nodes.mig import MigLabels, MigSlices, label_form, parse_mig_labels
from plimsoll.labels import MIG_PREFIX
from plimsoll.model.api import Partition
from plimsoll.model.cluster import Node, NodeGpus


class Offer(NamedTuple):
    """The offer of a node; the same object for equal nodes."""

    product: str
    gpu_count: int
    """GPUs of the node; for slices, as many as one node offers."""
    memory_mib: int
    """MiB of one GPU or slice."""
    devices: int
    """Devices that one pod requests."""
    gpus: NodeGpus
    """GPUs of one pod."""
    resource: str = ""
    """The extended resource of these devices; empty: that of the Environment."""
    pods: int = 0
    """Pods per node, where each requests part of it; 0: one pod has the whole node."""
    any_count: bool = False
    """Whether nodes of a Workspace may differ in count: slices of one profile are equal."""
    in_bytes: bool = False
    warning: str = ""

    @property
    def uniformity(self) -> tuple[str, int, int]:
        """What must be equal on every node of a Workspace: product, count, MiB of one."""
        return (self.product, 0 if self.any_count else self.gpu_count, self.memory_mib)

    def __str__(self) -> str:
        noun = " slices" if self.gpus.slices else ""
        return f"{self.gpu_count} x {self.product}{noun} of {self.memory_mib} MiB each"


class Unusable(NamedTuple):
    """A node whose GPUs the Workspace cannot use now."""

    problem: str
    profiles: tuple[str, ...] = ()
    """MIG profiles that it offers instead."""
    advice: str = ""
    """What makes it usable, where that is not one of these profiles."""


class Offers:
    """The offers of nodes, cached for equal nodes."""

    def __init__(self) -> None:
        self._found: dict[object, Offer | Unusable | InvalidGpuLabel] = {}

    def of(self, node: Node, partition: Partition | None) -> Offer | Unusable | InvalidGpuLabel:
        """What the node offers to pods that request such a partition; None: whole nodes."""
        key = (gpu_values(node), partition) if partition is not None else gpu_values(node)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _offer(node, partition)
        return found


def _offer(node: Node, partition: Partition | None) -> Offer | Unusable | InvalidGpuLabel:
    mig = parse_mig_labels(node.labels)
    if mig.changing:
        return Unusable(
            f"its MIG configuration {mig.config!r} is not applied yet: label {MIG_CONFIG_STATE} is {mig.state!r}",
            advice=f"wait until the node has the slices of its MIG configuration, or change {MIG_CONFIG}",
        )
    if partition is not None and partition.mode == "mig":
        return _slices(mig, partition.profile or "")
    if mig.single and partition is None and mig.slices:
        return _whole_node_of_slices(mig.slices[0])
    if mig.active:
        return Unusable(f"{mig}: no whole GPUs", tuple(each.profile for each in mig.slices))
    labels = parse_gpu_labels(node.labels)
    if isinstance(labels, InvalidGpuLabel):
        return labels
    return _whole(labels) if partition is None else _some(labels, partition.count or 1)


def _slices(mig: MigLabels, profile: str) -> Offer | Unusable | InvalidGpuLabel:
    found = mig.of_profile(profile)
    if found is None and not mig.active:
        return InvalidGpuLabel(f"{MIG_PREFIX}{label_form(profile)}.count", None, "")
    if found is None:
        return Unusable(f"{mig}: no {profile} slices", tuple(each.profile for each in mig.slices))
    product = found.product or f"MIG {profile}"
    return Offer(
        product=product,
        gpu_count=found.count,
        memory_mib=found.memory_mib,
        devices=1,
        gpus=NodeGpus(1, found.memory_mib, product, slices=True),
        resource=found.resource,
        pods=found.count,
        any_count=True,
    )


def _whole_node_of_slices(found: MigSlices) -> Offer:
    return Offer(
        product=found.product,
        gpu_count=found.count,
        memory_mib=found.memory_mib,
        devices=1,
        gpus=NodeGpus(1, found.memory_mib, found.product, slices=True),
        warning=f"a node's GPUs are partitioned into {found.count} MIG slices, and a replica uses one of them "
        f"and the whole node: resource.partition with mode mig and profile {found.profile} lets several share a node",
    )


def _whole(labels: GpuLabels) -> Offer:
    whole = Offer(
        product=labels.product,
        gpu_count=labels.count,
        memory_mib=labels.memory_mib,
        devices=labels.devices,
        gpus=NodeGpus(labels.count, labels.memory_mib, labels.product),
        in_bytes=labels.in_bytes,
    )
    if not labels.shared:
        return whole
    if labels.sharing_strategy == MPS:
        # The device plugin rejects a pod that requests more than one, and limits each to its part of the memory.
        memory = labels.memory_mib // labels.replicas
        return whole._replace(
            devices=1,
            gpus=NodeGpus(1, max(memory, 1), labels.product, slices=True),
            warning=f"GPUs are shared by MPS ({GPU_REPLICAS}={labels.replicas}): a pod may request one device, which "
            f"has {memory} of a GPU's {labels.memory_mib} MiB",
        )
    return whole._replace(
        warning=f"GPUs are shared by time-slicing ({GPU_REPLICAS}={labels.replicas}): a pod requests all "
        f"{labels.devices} devices to have the node's {labels.count} GPUs; sharing does not multiply their memory"
    )


def _some(labels: GpuLabels, count: int) -> Offer | Unusable:
    if count > labels.count:
        return Unusable(
            f"has {labels.count} GPUs, but resource.partition requests {count}",
            advice=f"set resource.partition.count to at most {labels.count}",
        )
    if labels.shared:
        return Unusable(
            f"its GPUs are shared ({GPU_REPLICAS}={labels.replicas}): devices of a partition would not be whole GPUs",
            advice="remove resource.partition, or the sharing from the device plugin's configuration",
        )
    return Offer(
        product=labels.product,
        gpu_count=labels.count,
        memory_mib=labels.memory_mib,
        devices=count,
        gpus=NodeGpus(count, labels.memory_mib, labels.product),
        pods=labels.count // count,
        in_bytes=labels.in_bytes,
    )
