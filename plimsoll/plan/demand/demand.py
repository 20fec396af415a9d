"""Demand and DemandPlan: the GPU capacity that pending pods need and the cluster lacks, and the nodes to request."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from plimsoll.cluster.pods import PodShare
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import Terms
from plimsoll.packing import Milli
from plimsoll.packing.gpus import least_gpus
from plimsoll.packing.nodes import FilledNode
from plimsoll.plan.classes import DemandClass, Refusal, RefusalReason
from plimsoll.text import counted


@dataclass(frozen=True)
class PlannedNode:
    """A new node that is planned for pods of one or several classes."""

    instance_type: str
    node_pool: str
    """The NodePool that allows the type; empty if the cluster has no NodePools and the type is that of existing
    nodes."""
    gpus: int
    """Number of GPUs of the instance type."""
    kind: str
    """GPU product: as GPU Feature Discovery will label it if that is known, else as in the catalog."""
    held: tuple[tuple[str, ...], ...]
    """UIDs of the pods on each GPU that is used. A pod that uses several GPUs is listed on each. Which GPU a
    shared device belongs to is not known: the plan counts those of one GPU before those of the next."""
    cpu_milli: int
    """Sum of the pods' CPU requests, in millicores."""
    memory_mib: int
    """Sum of the pods' memory requests, in MiB."""
    storage_mib: int = 0
    """Sum of the pods' requests of ephemeral storage, in MiB."""
    alternatives: tuple[str, ...] = ()
    """Other instance types of the NodePool with the same number of GPUs that the same pods fit, sorted."""
    demands: tuple[str, ...] = ()
    """Names of the demands whose pods it serves, sorted."""
    gpu_memory_mib: int | None = None
    """MiB of one GPU; None if it is not known."""
    requires: Terms = ()
    """Conditions on labels that the NodePool leaves open, such as a zone: alternatives, each a set of conditions."""
    resource: str = ""
    """Extended resource under which its GPUs will be allocatable, if it is not that of the Environment."""
    scheduler: str = ""
    """The scheduler of the pods that share its GPUs: those of others cannot join them. Empty if no GPU is shared."""

    @cached_property
    def pods(self) -> tuple[str, ...]:
        """UIDs of its pods, sorted, without duplicates."""
        return tuple(sorted({uid for held in self.held for uid in held}))


@dataclass(frozen=True, slots=True)
class RequestedNode:
    """A requested node that has not registered yet. It counts as supply."""

    name: str
    instance_types: tuple[str, ...]
    """The instance types that the request allows."""
    node_pool: str
    gpus: int
    kind: str
    requires: Terms = ()
    """As in PlannedNode."""
    claimed: bool = False
    """Whether a NodeClaim exists for it. Such a node is expected even if its instance types are skipped for now."""
    since: str = ""
    """When it was requested (RFC 3339); empty if that is not known."""
    scheduler: str = ""
    """As in PlannedNode; empty if that is not known."""


@dataclass(frozen=True)
class Demand:
    """One class of pods and where each of its pods is planned. Each pod of `pods` is in exactly one of the places."""

    demand_class: DemandClass
    pods: Mapping[str, PodShare]
    """Pods that share GPUs, by UID. Autoscalers do not see their GPU requests."""
    on_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """UIDs of the pods that fit free GPUs, by the name of the existing node or NodeClaim."""
    on_requested: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """UIDs of the pods that are planned on requested nodes, by the name of the requested node."""
    on_new: Mapping[str, int] = field(default_factory=dict)
    """Index of the new node in `DemandPlan.nodes`, by UID of the pod."""
    awaiting: tuple[str, ...] = ()
    """UIDs of the pods for which the requested nodes suffice, without an assignment to one of them."""
    in_grace: tuple[str, ...] = ()
    """UIDs of the pods that became unschedulable less than `graceSeconds` ago: no node is requested for them yet."""
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    """Why no capacity is requested for a pod, by UID."""
    whole_gpu_pods: Mapping[str, PodShare] = field(default_factory=dict)
    """Pods that request whole GPUs, by UID. Autoscalers provide nodes for them, so nothing is requested."""
    refused_with_event: Mapping[str, Pod] = field(default_factory=dict)
    """Refused pods that are not in `pods` and get an event all the same, by UID."""
    kept_out: Mapping[str, Refusal] = field(default_factory=dict)
    """Why a pod of `whole_gpu_pods` is not admitted, by UID. An autoscaler would provide nodes for these pods,
    unless they have a scheduling gate."""
    gpu_milli: int = 0
    """This demand's part of the GPUs of new and requested nodes, in thousandths of a GPU. The GPUs of a node are
    divided in proportion to what its pods use."""
    requested_shares: Mapping[Milli, int] = field(default_factory=dict)
    """Number of shares on new and requested nodes, by size in thousandths of a GPU."""
    warnings: tuple[str, ...] = ()
    """Assumptions that the plan is based on."""

    @cached_property
    def name(self) -> str:
        """Name of its GPUDemand. It depends on the class only."""
        return self.demand_class.name

    @cached_property
    def least_gpus(self) -> int:
        """Lower bound of the GPUs that its shares on new and requested nodes need if no other demand uses them."""
        return least_gpus(self.requested_shares)

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why pods are refused, without names of pods; sorted, without duplicates."""
        whys = self.refused.values()  # of many pods the same object
        return tuple(sorted({each.without_names for each in dict(zip(map(id, whys), whys, strict=True)).values()}))

    @property
    def queue_refusal(self) -> Refusal | None:
        """Why the queue admits none of the pods; None if it admits some."""
        whys = [why for uid in self.pods if (why := self.refused.get(uid)) and why.reason is RefusalReason.QUEUE]
        return whys[0] if whys and len(whys) == len(self.pods) else None

    @property
    def kept_out_reasons(self) -> tuple[str, ...]:
        """Why pods that request whole GPUs are not admitted, with their number and what to do; without duplicates."""
        return tuple(
            self.kept_out_reason(why, count)
            for why, count in sorted(Counter(each.without_names for each in self.kept_out.values()).items())
        )

    @staticmethod
    def kept_out_reason(why: str, count: int) -> str:
        """The sentence about so many pods that are kept out for one reason."""
        return (
            f"{counted(count, 'pod')} with whole GPUs {'is' if count == 1 else 'are'} not admitted, but an "
            f"autoscaler would provide nodes: {why}; set plimsoll:capacityGate with wholeGpus to keep such pods from "
            "the autoscaler"
        )


@dataclass(frozen=True)
class DemandPlan:
    """The demands of one snapshot and the nodes to request for them."""

    demands: tuple[Demand, ...] = ()
    """Sorted by name."""
    nodes: tuple[PlannedNode, ...] = ()
    """New nodes to request, in addition to free GPUs and requested nodes."""
    places: tuple[FilledNode, ...] = ()
    """The pods that are planned on existing nodes and on NodeClaims, by GPU."""
    needed: frozenset[str] = frozenset()
    """Names of the requested nodes that pods need. The other requests can be withdrawn."""
    least_gpus: int = 0
    """Lower bound of the GPUs of new nodes, for any plan for the same pods."""
    lower_bound: float = 0.0
    """Lower bound of the new GPUs by the linear program over patterns of GPUs, which ignores CPU, memory and nodes."""
    next_deadline: str = ""
    """When the first grace period ends (RFC 3339); empty if there is none."""

    @cached_property
    def least_requested_gpus(self) -> int:
        """Lower bound of the GPUs of new and requested nodes that the shares of all demands need."""
        found = Counter[Milli]()
        for demand in self.demands:
            found.update(demand.requested_shares)
        return least_gpus(found)

    @property
    def gpus(self) -> int:
        """GPUs of the new nodes, including unused ones."""
        return sum(node.gpus for node in self.nodes)

    @property
    def refused(self) -> int:
        """Number of refused pods."""
        return sum(len(demand.refused) for demand in self.demands)
