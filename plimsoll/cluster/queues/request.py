"""What a pod's request for GPUs counts in a queue."""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from plimsoll.cluster.nodes import GpuLabels, mig_gpus, parse_gpu_labels
from plimsoll.cluster.pods import ASSUMED_MILLI, tflops_milli
from plimsoll.labels import MIG_PREFIX
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI, Milli


class GpuFigures(NamedTuple):
    """Of one GPU of a node; None where they are not known."""

    memory_mib: int | None = None
    tflops_milli: int | None = None

    @classmethod
    def of(cls, node: Node, tflops: Mapping[str, float]) -> "GpuFigures":
        known = parse_gpu_labels(node.labels)
        if not isinstance(known, GpuLabels):
            return cls()
        return cls(known.memory_mib, tflops_milli(known.product, tflops))


def gpu_milli(share: GPUShare, gpu: GpuFigures) -> Milli:
    """Thousandths of GPUs that a share uses in total."""
    memory = share.divided_mib(gpu.memory_mib or 0)
    known = (memory or share.memory_mib is None) and (gpu.tflops_milli or share.tflops_milli is None)
    return (share.milli_of(memory, gpu.tflops_milli or 0) if known else ASSUMED_MILLI) * share.devices


def mig_milli(pod: Pod) -> int:
    """What KAI counts for the MIG devices that a pod requests, in thousandths of a GPU. A number that cannot be read
    counts as 0."""
    stated = (each.get("resources") or {} for each in (*pod.containers, *pod.init_containers))
    names = {name for each in stated for part in ("requests", "limits") for name in each.get(part) or ()}
    requested = {}
    for name in names:
        if name.startswith(MIG_PREFIX):
            with suppress(ValueError):
                requested[name] = pod.devices(name)
    return mig_gpus(requested) * GPU_MILLI
