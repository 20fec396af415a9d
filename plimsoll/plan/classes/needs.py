"""The resources that the pods of a class need, by the kinds of GPU that could serve them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.cluster.pods import KindSizes, PodShare, is_of_model, size_by_kind, tflops_milli
from plimsoll.cluster.profiles import mig_gpus
from plimsoll.cluster.queues import NO_LOAD, NOTHING, Amount, Counted, QueueLoad, counted, seen_by_kai
from plimsoll.labels import GPU_MEMORY, GPU_RESOURCE
from plimsoll.model.api import DemandSettings
from plimsoll.model.cluster import VENDOR_RESOURCES, Device
from plimsoll.model.kai import GPUShare
from plimsoll.packing import GPU_MILLI, Milli, exact_milli
from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.plan.classes.members import ClassMembers
from plimsoll.plan.classes.refusal import Refusal, RefusalReason
from plimsoll.text import shortlist

Kinds = Mapping[str, Device]
"""By name."""
Sizes = dict[GPUShare, KindSizes]
"""By what a share requests."""


@dataclass(frozen=True)
class ClassNeeds:
    needs: Mapping[str, PodNeed] = field(default_factory=dict)
    """By UID."""
    load: QueueLoad = NO_LOAD
    """The most that all of the pods would take of their queue, as if none were preemptible."""
    sizes: Sizes = field(default_factory=dict)
    """By share."""
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    """Why no kind of GPU can serve a pod, by UID."""
    warnings: tuple[str, ...] = ()


_Key = tuple[DemandClass, bool, frozenset[str]]
"""A class, whether its pods with whole GPUs are meant, and the names of kinds."""


class KnownNeeds:
    """Caches the needs of classes that did not change from one plan to the next."""

    def __init__(self) -> None:
        self._settings: DemandSettings | None = None
        self._known: dict[_Key, tuple[Mapping[str, PodShare], ClassNeeds]] = {}
        self._before: dict[_Key, tuple[Mapping[str, PodShare], ClassNeeds]] = {}
        """What the last plan used."""

    def begin(self, settings: DemandSettings) -> None:
        """Begins a plan with these settings. What the last one did not use is dropped."""
        self._before = self._known if settings == self._settings else {}
        self._known, self._settings = {}, settings

    def of(self, demand_class: DemandClass, members: ClassMembers, kinds: Kinds, *, whole: bool = False) -> ClassNeeds:
        """The needs of the pods with shares, or with whole GPUs. The name of a kind says all about it."""
        assert self._settings is not None, "a plan has begun"
        pods = members.whole if whole else members.shares
        key = demand_class, whole, frozenset(kinds)
        read_of, needs = self._known.get(key) or self._before.get(key) or (None, None)
        if needs is None or read_of is not pods:  # the same object while none of the pods changed
            needs = class_needs(pods, kinds, self._settings, needs)
        self._known[key] = pods, needs
        return needs


def class_needs(
    pods: Mapping[str, PodShare], kinds: Kinds, settings: DemandSettings, before: ClassNeeds | None = None
) -> ClassNeeds:
    """The needs of the pods by UID. A share in MiB is a fraction of the shareable memory of each kind.

    `before` is an earlier result with the same kinds, of which equal values are the same objects in the new one.
    """
    known = before or ClassNeeds()
    sizes, needs, refused = Sizes(), dict[str, PodNeed](), dict[str, Refusal]()
    total = NOTHING
    assumed: set[str] = set()
    for uid, pod in pods.items():
        share, host = pod.share, pod.pod.host
        size = sizes.get(share)
        if size is None:
            size = known.sizes.get(share) or size_by_kind(
                share, kinds, settings.assumed_share_milli, settings.gpu_tflops
            )
            sizes[share] = size
        if size.milli:
            # Whole GPUs, and devices that are parts of GPUs, are of no scheduler alone.
            scheduler = "" if share.whole or share.resource or share.claims else pod.pod.scheduler_name
            amounts = host.cpu_milli, host.memory_mib, scheduler, host.storage_mib
            order = -pod.pod.priority, pod.pod.creation_timestamp, pod.pod.namespace, pod.pod.name
            need = PodNeed(uid, size.milli, size.devices, *amounts, order)
            same = known.needs.get(uid)
            needs[uid] = same if same is not None and same == need else need
            in_queue = queue_counted(pod, need)
            total += Amount.of(in_queue.milli + in_queue.rounding, host)
            assumed.update(size.assumed)
        else:
            refused[uid] = _unmet(pod, size) if share.claims else _too_large(pod, kinds, settings)
    warnings: tuple[str, ...] = ()
    if assumed:
        warnings = (
            f"a share is counted as {settings.assumed_share_milli} thousandths of a GPU on "
            f"{shortlist(sorted(assumed))}: the memory or TFLOPS of these GPUs are not known "
            "(spec.demand.assumedShareMilli and gpuTflops of the Environment)",
        )
    return ClassNeeds(needs, QueueLoad.of(total, preemptible=False), sizes, refused, warnings)


def share_milli(pod: PodShare, need: PodNeed, kinds: Kinds) -> Milli:
    """Thousandths of a GPU that a pod takes of each of its devices, on the kind where that is the least."""
    if pod.share.resource:
        return exact_milli(1, max(kinds[kind].replicas for kind in need.milli))
    return min(need.milli.values())


def milli_of(need: PodNeed) -> Milli:
    """Thousandths of its devices that a pod takes in total, on the kind where that is the least."""
    return need.devices * min(need.milli.values())


def queue_counted(pod: PodShare, need: PodNeed) -> Counted:
    """What a pod counts in its queue, on the kind where that is the least. Of devices that are parts of GPUs, KAI
    counts the compute slices of MIG, and one GPU for each that keeps the name of whole GPUs."""
    share = pod.share
    if share.claims:
        return Counted(sum(claim.gpus_in_queue for claim in share.claims) * GPU_MILLI)
    if share.resource == GPU_RESOURCE or (share.resource and seen_by_kai(share.resource)):
        return Counted(share.devices * GPU_MILLI)
    if share.resource:
        return Counted(mig_gpus({share.resource: share.devices}) * GPU_MILLI)
    return counted(share, min(need.milli.values()))


def _unmet(pod: PodShare, size: KindSizes) -> Refusal:
    """Why no node has devices that meet the claims of a pod."""
    if not size.why:
        return Refusal(
            RefusalReason.CLAIM,
            f"claims {pod.share}, but no node that could serve it gets GPUs by claims",
            "declare or wait for such nodes (NodeProfile), or request the extended resource of a device plugin",
        )
    return Refusal(
        RefusalReason.CLAIM,
        f"claims {pod.share}, but no devices of nodes that could serve it meet that: {shortlist(size.why)}",
        "change the claim, or declare a NodePool with such devices",
    )


def _too_large(pod: PodShare, kinds: Kinds, settings: DemandSettings) -> Refusal:
    announced = sorted({kind.resource for kind in kinds.values()})
    if pod.share.resource in VENDOR_RESOURCES:
        return _refusal(
            f"requests {pod.share}, but the nodes that could serve it have no {pod.share.resource}",
            "select nodes that have it, or declare them in a NodeProfile",
        )
    if pod.share.resource or "" not in announced:
        return _refusal(
            f"requests {pod.share}, but nodes that could serve it announce "
            f"{shortlist([resource for resource in announced if resource]) or 'whole GPUs'} "
            "(spec.demand.sharedDevices of the Environment)",
            "request that, or select other nodes",
        )
    of_model = [kind for kind in kinds.values() if is_of_model(pod.share, kind)]
    if not of_model:
        products = shortlist(sorted({kind.product for kind in kinds.values()}))
        return _refusal(
            f"requests {pod.share}, but none that could serve it is of this model (known: {products})",
            "correct the model, or declare a NodePool with such GPUs",
        )
    if pod.share.memory_mib and not any(kind.memory_mib != 0 for kind in of_model):
        return _refusal(
            f"requests {pod.share}, but the nodes that could serve it have no valid label {GPU_MEMORY}, without which "
            "no share in MiB is placed there",
            "run GPU Feature Discovery on them",
        )
    largest = max((pod.share.divided_mib(kind.memory_mib or 0) for kind in of_model), default=0)
    speeds = (tflops_milli(kind.product, settings.gpu_tflops) or 0 for kind in of_model)
    speed = f" and {max(speeds, default=0) / 1000:g} TFLOPS" if pod.share.tflops_milli else ""
    rounded = "" if pod.share.by_tensor_fusion else " (KAI counts whole hundreds of MiB)"
    return _refusal(
        f"requests {pod.share}, but the largest GPU that could serve it has {largest} MiB{speed} to share{rounded}",
        "request less, or declare a NodePool with larger GPUs",
    )


def _refusal(problem: str, advice: str) -> Refusal:
    return Refusal(RefusalReason.TOO_LARGE, problem, advice)
