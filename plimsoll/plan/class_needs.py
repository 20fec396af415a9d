"""What the pods of a class need of nodes, by the kinds of GPU that could serve them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.plan.demand_class import DemandClass
from plimsoll.plan.demand_supply import DemandSupply
from plimsoll.plan.node_need import FreeNode, PodNeed
from plimsoll.plan.pool_shape import PoolShape
from plimsoll.plan.shares import KindSizes, PodShare, size_by_kind
from plimsoll.plan.shortlist import shortlist

Kinds = dict[str, int | None]
"""MiB of one GPU by kind; None where it is not known."""


@dataclass
class ClassNeeds:
    needs: list[PodNeed] = field(default_factory=list)
    """Named by UID."""
    refused: dict[str, str] = field(default_factory=dict)
    """UID to why no kind of GPU can take it."""
    warnings: tuple[str, ...] = ()


class KnownNeeds:
    """The needs of classes; of those that did not change they are not read again."""

    def __init__(self) -> None:
        self._known: dict[DemandClass, tuple[Mapping[str, PodShare], Kinds, int, ClassNeeds]] = {}

    def of(self, of: DemandClass, pods: Mapping[str, PodShare], kinds: Kinds, assumed_milli: int) -> ClassNeeds:
        """As `class_needs`; `pods` are the same value as long as none of them changed."""
        known = self._known.get(of)
        if known is not None and known[0] is pods and known[1] == kinds and known[2] == assumed_milli:
            return known[3]
        found = class_needs(pods, kinds, assumed_milli)
        self._known[of] = (pods, kinds, assumed_milli, found)
        return found

    def keep(self, classes: Collection[DemandClass]) -> None:
        """Forgets all other classes."""
        self._known = {of: known for of, known in self._known.items() if of in classes}


def kinds_of(shapes: Iterable[PoolShape], nodes: Iterable[FreeNode], supply: DemandSupply) -> Kinds:
    """The kinds of GPU that could serve a class; of a kind with several memories the least counts."""
    found: Kinds = {}
    seen = [(shape.kind, shape.gpu_memory_mib) for shape in shapes]
    seen += [(node.kind, supply.gpu_memory(node.name)) for node in nodes]
    for kind, memory in seen:
        known = found.get(kind)
        found[kind] = memory if known is None else min(known, memory or known)
    return found


def class_needs(pods: Mapping[str, PodShare], kinds: Kinds, assumed_milli: int) -> ClassNeeds:
    """The needs of pods by UID. A share in MiB is a part of the real memory of each kind."""
    found = ClassNeeds()
    sizes: dict[tuple[int | None, int | None], KindSizes] = {}
    assumed: set[str] = set()
    for uid, each in pods.items():
        share, host = each.share, each.pod.host
        key = (share.milli, share.memory_mib)
        size = sizes.get(key)
        if size is None:
            size = sizes[key] = size_by_kind(share, kinds, assumed_milli)
        if size.milli:
            found.needs.append(PodNeed(uid, size.milli, share.devices, host.cpu_milli, host.memory_mib))
            assumed.update(size.assumed)
        else:
            largest = max((memory for memory in kinds.values() if memory), default=0)
            found.refused[uid] = (
                f"asks {share}, and the largest GPU that could serve it has {largest} MiB: ask for less, or declare a "
                "NodePool with larger GPUs"
            )
    if assumed:
        found.warnings = (
            f"gpu-memory is counted as {assumed_milli} thousandths of a GPU on {shortlist(sorted(assumed))}: the "
            "memory of these GPUs is not known (spec.demand.assumedShareMilli)",
        )
    return found
