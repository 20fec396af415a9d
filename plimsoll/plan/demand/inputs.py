"""DemandInputs: what a plan of demand is a function of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from plimsoll.cluster.pools import PoolLimits, Room
from plimsoll.cluster.profiles import NodeProfile
from plimsoll.cluster.queues import QueueGate, QueueTree
from plimsoll.model.api import DemandSettings, EnvironmentSpec
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup, Queue, Topology, group_key
from plimsoll.plan.classes import ClassMembers, DemandClass, LeftOut, NamespaceLimits, Refusal
from plimsoll.plan.demand.cluster_state import ClusterState
from plimsoll.plan.demand.demand import RequestedNode
from plimsoll.plan.demand.supply import Supplied


@dataclass(frozen=True)
class DemandInputs:
    """The arguments of a plan; see `DemandPlanner.plan`."""

    cluster: ClusterState
    classes: Mapping[DemandClass, ClassMembers]
    """The pods to plan for, in order of priority, highest first."""
    left_out: Sequence[LeftOut]
    supply: Mapping[str, Supplied]
    shapes: Sequence[NodeProfile]
    unready: Sequence[NodeProfile]
    """As in PoolProfiles: no more of these nodes are requested, and those that were requested may come."""
    divided: Sequence[NodeProfile]
    """Nodes whose GPUs pods cannot share."""
    blocked: frozenset[tuple[str, str]]
    requested: Sequence[RequestedNode]
    room: Room | None
    namespaces: NamespaceLimits | None
    now: datetime | None
    warnings: tuple[str, ...]
    without_place: Mapping[str, Refusal] = field(default_factory=dict)
    """Pods that found no place before, by UID: they are refused and use nothing of their queue."""

    @property
    def environment(self) -> EnvironmentSpec:
        return self.cluster.snapshot.environment.spec

    @property
    def settings(self) -> DemandSettings:
        return self.environment.demand

    def is_blocked(self, shape: NodeProfile) -> bool:
        return (shape.instance_type, shape.node_pool) in self.blocked

    def pool_limits(self) -> PoolLimits:
        return PoolLimits(self.cluster.snapshot.node_pools, self.environment.gpu_resource, self.room)

    def gate(self) -> QueueGate | None:
        """None if the cluster has no queues: all pods are admitted."""
        snapshot = self.cluster.snapshot
        return QueueGate(QueueTree.of(snapshot), self.cluster.queue_loads) if snapshot.queues else None

    @cached_property
    def topologies(self) -> Mapping[str, Topology]:
        """By name. Without any, the levels that PodGroups require are taken for labels of nodes."""
        return {each.name: each for each in self.cluster.snapshot.topologies}

    @cached_property
    def shards(self) -> frozenset[str]:
        """KAI's node pools that have a SchedulingShard. Without any, it is not known which have a scheduler."""
        return frozenset(each.node_pool for each in self.cluster.snapshot.scheduling_shards)

    def queue(self, name: str) -> Queue | None:
        return next((each for each in self.cluster.snapshot.queues if each.name == name), None)

    def group_of(self, pod: Pod) -> PodGroup | None:
        """The PodGroup that the pod's annotation names."""
        return self.cluster.groups.get(group_key(pod))
