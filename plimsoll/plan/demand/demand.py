"""Demand: the GPU capacity that the pods of a class need and the cluster lacks, and the nodes to request."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from plimsoll.cluster.pods import PodShare
from plimsoll.model.meta import Terms
from plimsoll.packing import Milli
from plimsoll.packing.gpus import least_gpus
from plimsoll.packing.nodes import FilledNode
from plimsoll.plan.classes import DemandClass
from plimsoll.text import counted


@dataclass(frozen=True)
class PlannedNode:
    """A new node that is planned for pods of one or several classes."""

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
    """CPU that the pods on it request."""
    memory_mib: int
    """Host memory that the pods on it request."""
    alternatives: tuple[str, ...] = ()
    """Other instance types of the NodePool with as many GPUs, on which the same pods fit; sorted."""
    demands: tuple[str, ...] = ()
    """Names of the demands that it serves, sorted."""
    gpu_memory_mib: int | None = None
    """Shareable MiB of one of its GPUs; None where it is not known."""
    requires: Terms = ()
    """What its pods require of labels that the NodePool leaves open, such as a zone; alternatives of conditions."""
    resource: str = ""
    """Extended resource that its GPUs will be announced as, where that is not the Environment's."""

    @cached_property
    def pods(self) -> tuple[str, ...]:
        """UIDs, sorted, each once."""
        return tuple(sorted({uid for held in self.held for uid in held}))


@dataclass(frozen=True, slots=True)
class RequestedNode:
    """A requested node that has not registered yet; it counts as supply."""

    name: str
    instance_types: tuple[str, ...]
    """The node will have one of these types."""
    node_pool: str
    gpus: int
    kind: str
    requires: Terms = ()
    """As of PlannedNode."""
    claimed: bool = False
    """Whether there is a NodeClaim for it: it is awaited though its types are not requested any more."""
    since: str = ""
    """RFC 3339: when it was requested; empty where that is not known."""


@dataclass(frozen=True)
class Demand:
    """One class with the places of its pods. Each pod of `pods` is in exactly one of the places."""

    of: DemandClass
    pods: Mapping[str, PodShare]
    """Pods whose GPUs no autoscaler sees by itself, by UID."""
    on_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Existing node, or NodeClaim on its way, to the UIDs of the pods that fit its free GPUs."""
    on_requested: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Requested node to the UIDs of the pods that are planned on it."""
    on_new: Mapping[str, int] = field(default_factory=dict)
    """UID of a pod to the number of its node among those of the plan."""
    awaiting: tuple[str, ...] = ()
    """UIDs of pods for which requested nodes suffice, though it is not known which of them."""
    in_grace: tuple[str, ...] = ()
    """UIDs of pods for which no node is requested yet: they were found to be unschedulable just now."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """UID to why no capacity is requested for it, with what to change; pods by name."""
    nameless: Mapping[str, str] = field(default_factory=dict)
    """The same without names, of those whose reason has some."""
    blocked: str = ""
    """Why the queue would admit none of the pods; empty: it admits some."""
    spoken_for: Mapping[str, PodShare] = field(default_factory=dict)
    """Pods that request whole GPUs, by UID. An autoscaler sees them, so nothing is requested for them."""
    kept_out: Mapping[str, str] = field(default_factory=dict)
    """The part of `spoken_for` that the queue does not admit, by UID, with the reason. An autoscaler would provide
    nodes for them, unless they have a scheduling gate."""
    gpu_milli: int = 0
    """Thousandths of the GPUs of new and requested nodes that are this demand's share: that of its pods in what all
    pods on a node use."""
    beyond: Mapping[Milli, int] = field(default_factory=dict)
    """Shares on new and requested nodes: how many GPUs have one of each size, in thousandths of a GPU."""
    warnings: tuple[str, ...] = ()
    """Assumptions that the plan had to make."""

    @cached_property
    def name(self) -> str:
        """Of its GPUDemand: a function of the class alone."""
        return self.of.name

    @cached_property
    def least_gpus(self) -> int:
        """GPUs that its shares on new and requested nodes need at least, were it alone."""
        return least_gpus(self.beyond)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why pods are refused, sorted, each once, for readers who may not read the pods."""
        return tuple(sorted({self.nameless.get(uid, why) for uid, why in self.refused.items()}))

    @property
    def kept_out_reasons(self) -> tuple[str, ...]:
        """Why pods with whole GPUs are kept out, each once, with the number of pods and what to do."""
        return tuple(
            f"{counted(count, 'pod')} with whole GPUs are not admitted by the queue, but an autoscaler would provide "
            f"nodes: {why}; set plimsoll:capacityGate with wholeGpus to keep such pods from the autoscaler"
            for why, count in sorted(Counter(self.kept_out.values()).items())
        )


@dataclass(frozen=True)
class DemandPlan:
    """The demand of one snapshot."""

    demands: tuple[Demand, ...] = ()
    """By name."""
    nodes: tuple[PlannedNode, ...] = ()
    """New nodes to request, beyond free GPUs and requested nodes."""
    places: tuple[FilledNode, ...] = ()
    """Where pods are planned on existing nodes and on NodeClaims, GPU by GPU."""
    needed: frozenset[str] = frozenset()
    """Names of requested nodes that pods need; the others can be withdrawn."""
    least_gpus: int = 0
    """GPUs of new nodes that no plan for the same pods can do without."""
    lower_bound: float = 0.0
    """The same by the linear program over patterns, as if nodes did not matter."""
    next_deadline: str = ""
    """RFC 3339: when pods whose grace lasts are planned for; empty without one."""

    @cached_property
    def least_beyond_gpus(self) -> int:
        """GPUs of new and requested nodes that the shares of all demands need at least."""
        found = Counter[Milli]()
        for demand in self.demands:
            found.update(demand.beyond)
        return least_gpus(found)

    @property
    def gpus(self) -> int:
        """GPUs of the new nodes, used or not."""
        return sum(node.gpus for node in self.nodes)

    @property
    def refused(self) -> int:
        """Number of refused pods."""
        return sum(len(demand.refused) for demand in self.demands)
