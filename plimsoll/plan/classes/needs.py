"""The resources that the pods of a class need, by the kinds of GPU that could serve them."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from plimsoll.model.api import DemandSettings
from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.plan.pods import KindSizes, PodShare, size_by_kind, tflops_milli
from plimsoll.plan.queues import NO_LOAD, Amount, QueueLoad
from plimsoll.text import shortlist

Kinds = dict[str, int | None]
"""Memory of one GPU in MiB, by kind; None where it is not known."""


@dataclass
class ClassNeeds:
    needs: dict[str, PodNeed] = field(default_factory=dict)
    """By UID."""
    load: QueueLoad = NO_LOAD
    """The most that all of the pods would take of their queue, as if none were preemptible."""
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
        self._known: dict[DemandClass, tuple[Mapping[str, PodShare], Kinds, DemandSettings, ClassNeeds]] = {}
        self._left: dict[DemandClass, tuple[Mapping[str, PodNeed], set[str], dict[str, PodNeed]]] = {}

    def of(self, of: DemandClass, pods: Mapping[str, PodShare], kinds: Kinds, settings: DemandSettings) -> ClassNeeds:
        """As `class_needs`; `pods` is the same object while none of the pods changed."""
        known = self._known.get(of)
        if known is not None and known[0] is pods and known[1] == kinds and known[2] == settings:
            return known[3]
        same = known is not None and known[1] == kinds and known[2] == settings
        found = class_needs(pods, kinds, settings)
        if known is not None and same:
            found.share(known[3])
        self._known[of] = (pods, kinds, settings, found)
        return found

    def without(self, of: DemandClass, needs: Mapping[str, PodNeed], refused: AbstractSet[str]) -> dict[str, PodNeed]:
        """The needs without the refused pods; the same object while the content is the same."""
        left_out = {uid for uid in refused if uid in needs}
        known = self._left.get(of)
        if known is None or known[0] is not needs or known[1] != left_out:
            left = {uid: need for uid, need in needs.items() if uid not in left_out}
            known = self._left[of] = (needs, left_out, left)
        return known[2]

    def keep(self, classes: AbstractSet[DemandClass]) -> None:
        """Drops all other classes from the cache."""
        for of in self._known.keys() - classes:
            del self._known[of]
        for of in self._left.keys() - classes:
            del self._left[of]


def kinds_of(kinds: Iterable[tuple[str, int | None]]) -> Kinds:
    """Kinds of GPU by name, from (kind, MiB of one GPU); where a kind occurs with different sizes, the smallest."""
    found: Kinds = {}
    for kind, memory in kinds:
        known = found.get(kind)
        found[kind] = memory if known is None else min(known, memory or known)
    return found


def class_needs(pods: Mapping[str, PodShare], kinds: Kinds, settings: DemandSettings) -> ClassNeeds:
    """The needs of the pods by UID. A share in MiB is a fraction of the actual memory of each kind."""
    found = ClassNeeds()
    sizes: dict[tuple[object, ...], KindSizes] = {}
    assumed: set[str] = set()
    for uid, each in pods.items():
        share, host = each.share, each.pod.host
        key = (share.milli, share.memory_mib, share.tflops_milli, share.model)
        size = sizes.get(key)
        if size is None:
            size = sizes[key] = size_by_kind(share, kinds, settings.assumed_share_milli, settings.gpu_tflops)
        if size.milli:
            found.needs[uid] = PodNeed(uid, size.milli, share.devices, host.cpu_milli, host.memory_mib)
            found.load += QueueLoad.of(Amount.of(milli_of(found.needs[uid]), host), preemptible=False)
            assumed.update(size.assumed)
        else:
            largest = max((memory for memory in kinds.values() if memory), default=0)
            speed = max((tflops_milli(kind, settings.gpu_tflops) or 0 for kind in kinds), default=0)
            offer = f"{largest} MiB" + (f" and {speed / 1000:g} TFLOPS" if share.tflops_milli else "")
            found.refused[uid] = (
                f"requests {share}, but the largest GPU that could serve it has {offer}: request less, or declare a "
                "NodePool with larger GPUs"
            )
    if assumed:
        found.warnings = (
            f"a share is counted as {settings.assumed_share_milli} thousandths of a GPU on "
            f"{shortlist(sorted(assumed))}: the memory or TFLOPS of these GPUs are not known "
            "(spec.demand.assumedShareMilli and gpuTflops of the Environment)",
        )
    return found


def milli_of(need: PodNeed) -> int:
    """Thousandths of a GPU that a pod takes of its queue."""
    return need.devices * min(need.milli.values())
