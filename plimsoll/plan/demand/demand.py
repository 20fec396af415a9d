"""Demand: the GPU capacity that the pods of a class need and the cluster lacks, and the nodes to request."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from plimsoll.packing.nodes import FilledNode, NodePacking
from plimsoll.plan.classes import DemandClass
from plimsoll.plan.pods import PodShare
from plimsoll.text import counted


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A new node that is planned for a class."""

    instance_type: str
    node_pool: str
    """That allows the type; empty where the cluster has no NodePools and the type is that of nodes it has."""
    gpus: int
    """Devices of the instance type."""
    kind: str
    """GPU product, as GPU Feature Discovery will say it where that is known, else as the catalog does."""
    held: tuple[tuple[str, ...], ...]
    """UIDs of the pods on each of its GPUs that are used, those first; a pod on several GPUs stands on each."""
    cpu_milli: int
    """CPU that the pods on it ask for."""
    memory_mib: int
    """Host memory that the pods on it ask for."""
    alternatives: tuple[str, ...] = ()
    """Other instance types of the NodePool with as many GPUs, on which the same pods fit; sorted."""

    @property
    def pods(self) -> tuple[str, ...]:
        """UIDs, sorted, each once."""
        return tuple(sorted({uid for held in self.held for uid in held}))


@dataclass(frozen=True, slots=True)
class Promise:
    """A requested node that has not registered yet; it counts as supply."""

    name: str
    demand: str
    """Name of the demand that it was asked for."""
    instance_types: tuple[str, ...]
    """One of them is to come."""
    node_pool: str
    gpus: int
    kind: str
    cpu_milli: int
    """CPU that was asked for."""
    memory_mib: int
    """Host memory that was asked for."""
    claimed: bool = False
    """Whether there is a NodeClaim for it: it is awaited though its types are not asked for any more."""


@dataclass(frozen=True)
class Demand:
    """One class with its packing."""

    of: DemandClass
    pods: Mapping[str, PodShare]
    """Pods whose GPUs no autoscaler sees by itself, by UID."""
    nodes: tuple[PlannedNode, ...] = ()
    """New nodes, beyond the free parts of existing GPUs and what is on its way."""
    on_promises: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Promise to the UIDs of the pods that are to run there; promises of no pods do not stand here."""
    on_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Existing node, or NodeClaim on its way, to the UIDs of the pods that it has room for."""
    places: tuple[FilledNode, ...] = ()
    """The pods by GPU of each node: of one that is there by its name, of one to come as `NodePool/instance type`."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """UID to why nothing is asked for it, with what to change; pods by name."""
    nameless: Mapping[str, str] = field(default_factory=dict)
    """The same without names, of those whose reason has some."""
    blocked: str = ""
    """Why the queue would admit none of the pods; empty: it admits some."""
    spoken_for: Mapping[str, PodShare] = field(default_factory=dict)
    """Pods that ask for whole GPUs, by UID: an autoscaler sees them by itself, so nothing is asked for them."""
    kept_out: Mapping[str, str] = field(default_factory=dict)
    """The part of `spoken_for` that the queue does not admit, by UID, with the reason. An autoscaler would provide
    nodes for them, unless they have a scheduling gate."""
    packing: NodePacking = field(default_factory=NodePacking)
    """Of the pods onto free GPUs and new nodes, as if nothing had been asked for yet, with its lower bound."""
    gpu_memory_mib: Mapping[str, int | None] = field(default_factory=dict)
    """MiB of one GPU of each kind that could serve the pods, by which shares in MiB are counted; None: not known."""
    warnings: tuple[str, ...] = ()
    """What had to be assumed."""

    @cached_property
    def name(self) -> str:
        """Of its GPUDemand: a function of the class alone."""
        return self.of.name

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why pods are refused, sorted, each once, for readers who may not read the pods."""
        return tuple(sorted({self.nameless.get(uid, why) for uid, why in self.refused.items()}))

    @property
    def kept_out_reasons(self) -> tuple[str, ...]:
        """Why pods with whole GPUs are kept out, each once, with the number of pods and what to do."""
        return tuple(
            f"{counted(count, 'pod')} with whole GPUs kept out by the queue, for which an autoscaler would provide "
            f"nodes: {why}; plimsoll:capacityGate with wholeGpus holds such pods back"
            for why, count in sorted(Counter(self.kept_out.values()).items())
        )

    @property
    def gpus(self) -> int:
        """GPUs of the new nodes that the pods need, those on their way included."""
        return self.packing.gpus
