"""The resources that the pods of a class need, by the kinds of GPU that could serve them."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from plimsoll.cluster.nodes import mig_gpus
from plimsoll.cluster.pods import GpuKind, KindSizes, PodShare, is_of_model, size_by_kind, tflops_milli
from plimsoll.cluster.queues import NO_LOAD, NOTHING, Amount, QueueLoad
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api import DemandSettings
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI, Milli, exact_milli
from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.text import shortlist

Kinds = Mapping[str, GpuKind]
"""By name."""


Sizes = dict[GPUShare, KindSizes]
"""By what a share requests."""


@dataclass
class ClassNeeds:
    needs: dict[str, PodNeed] = field(default_factory=dict)
    """By UID."""
    load: QueueLoad = NO_LOAD
    """The most that all of the pods would take of their queue, as if none were preemptible."""
    sizes: Sizes = field(default_factory=dict)
    """By share."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why no kind of GPU can serve a pod, by UID."""
    warnings: tuple[str, ...] = ()

    def share(self, before: "ClassNeeds") -> None:
        """Reuses the equal values of an earlier result."""
        old = before.needs
        self.needs = {uid: old[uid] if need == old.get(uid) else need for uid, need in self.needs.items()}


class KnownNeeds:
    """Caches the needs of classes that did not change."""

    def __init__(self) -> None:
        self._known: dict[
            tuple[DemandClass, int], tuple[Mapping[str, PodShare], Kinds, DemandSettings, ClassNeeds]
        ] = {}

    def of(
        self, of: DemandClass, pods: Mapping[str, PodShare], kinds: Kinds, settings: DemandSettings, level: int = 0
    ) -> ClassNeeds:
        """As `class_needs`; `pods` is the same object while none of the pods changed. Levels are kept apart."""
        known = self._known.get((of, level))
        if known is not None and known[1:3] == (kinds, settings):
            if known[0] is pods:
                return known[3]
            found = class_needs(pods, kinds, settings, known[3].sizes)
            found.share(known[3])
        else:
            found = class_needs(pods, kinds, settings)
        self._known[of, level] = (pods, kinds, settings, found)
        return found

    def keep(self, classes: AbstractSet[DemandClass]) -> None:
        """Drops all other classes from the cache."""
        for key in [key for key in self._known if key[0] not in classes]:
            del self._known[key]


def class_needs(
    pods: Mapping[str, PodShare], kinds: Kinds, settings: DemandSettings, sizes: Sizes | None = None
) -> ClassNeeds:
    """The needs of the pods by UID. A share in MiB is a fraction of the shareable memory of each kind.

    `sizes` are those of an earlier result with the same kinds: equal shares then have the same value.
    """
    found = ClassNeeds(sizes={} if sizes is None else sizes)
    total = NOTHING
    assumed: set[str] = set()
    for uid, each in pods.items():
        share, host = each.share, each.pod.host
        size = found.sizes.get(share)
        if size is None:
            size = found.sizes[share] = size_by_kind(share, kinds, settings.assumed_share_milli, settings.gpu_tflops)
        if size.milli:
            # Whole GPUs, and devices that are parts of GPUs, are of no scheduler alone.
            scheduler = "" if share.whole or share.resource else each.pod.scheduler_name
            found.needs[uid] = PodNeed(uid, size.milli, size.devices, host.cpu_milli, host.memory_mib, scheduler)
            total += Amount.of(queue_milli(each, found.needs[uid]), host)
            assumed.update(size.assumed)
        else:
            found.refused[uid] = _too_large(each, kinds, settings)
    found.load = QueueLoad.of(total, preemptible=False)
    if assumed:
        found.warnings = (
            f"a share is counted as {settings.assumed_share_milli} thousandths of a GPU on "
            f"{shortlist(sorted(assumed))}: the memory or TFLOPS of these GPUs are not known "
            "(spec.demand.assumedShareMilli and gpuTflops of the Environment)",
        )
    return found


def share_milli(pod: PodShare, need: PodNeed, kinds: Kinds) -> Milli:
    """Thousandths of a GPU that a pod takes of each of its devices, on the kind where that is the least."""
    if pod.share.resource:
        return exact_milli(1, max(kinds[kind].sharing.per_gpu for kind in need.milli))
    return min(need.milli.values())


def milli_of(need: PodNeed) -> Milli:
    """Thousandths of its devices that a pod takes in total, on the kind where that is the least."""
    return need.devices * min(need.milli.values())


def queue_milli(pod: PodShare, need: PodNeed) -> Milli:
    """Thousandths of GPUs that a pod takes of its queue. Of devices that are parts of GPUs, KAI counts the compute
    slices of MIG, and one GPU for each that keeps the name of whole GPUs."""
    share = pod.share
    if share.resource == GPU_RESOURCE:
        return share.devices * GPU_MILLI
    return mig_gpus({share.resource: share.devices}) * GPU_MILLI if share.resource else milli_of(need)


def _too_large(pod: PodShare, kinds: Kinds, settings: DemandSettings) -> str:
    announced = sorted({kind.sharing.resource for kind in kinds.values()} - {""})
    if pod.share.resource or announced == sorted({kind.sharing.resource for kind in kinds.values()}):
        return (
            f"requests {pod.share}, but nodes that could serve it announce {shortlist(announced) or 'whole GPUs'} "
            "(spec.demand.sharedDevices of the Environment): request that, or select other nodes"
        )
    of_model = [kind for kind in kinds.values() if is_of_model(pod.share, kind)]
    if not of_model:
        products = shortlist(sorted({kind.product for kind in kinds.values()}))
        return (
            f"requests {pod.share}, but none that could serve it is of this model (known: {products}): correct "
            "the model, or declare a NodePool with such GPUs"
        )
    largest = max((pod.share.divided_mib(kind.memory_mib or 0) for kind in of_model), default=0)
    speeds = (tflops_milli(kind.product, settings.gpu_tflops) or 0 for kind in of_model)
    speed = f" and {max(speeds, default=0) / 1000:g} TFLOPS" if pod.share.tflops_milli else ""
    rounded = "" if pod.share.by_tensor_fusion else " (KAI counts whole hundreds of MiB)"
    return (
        f"requests {pod.share}, but the largest GPU that could serve it has {largest} MiB{speed} to share{rounded}: "
        "request less, or declare a NodePool with larger GPUs"
    )
