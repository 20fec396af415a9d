"""Holding: everything in the cluster that is of one Workspace, as one value."""

from typing import NamedTuple

from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node, Pod, Workload
from plimsoll.model.dra import ResourceClaimTemplate
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.model.meta import condition_of


class Holding(NamedTuple):
    """A Workspace with the objects that belong to it, those that are being deleted included."""

    workspace: Workspace
    """With the replicas that an autoscaler set."""
    declared: Workspace
    """As it was observed."""
    claims: tuple[NodeClaim, ...]
    nodes: tuple[Node | None, ...]
    """The node of each NodeClaim."""
    pools: tuple[NodePool, ...]
    workloads: tuple[Workload, ...]
    services: tuple[Workload, ...]
    claim_templates: tuple[ResourceClaimTemplate, ...]
    pods: tuple[Pod, ...]
    """Its bound pods that are not finished."""
    hosts: tuple[Node | None, ...]
    """The node of each pod."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Why pods of its workloads are not created, or do not run, as Kubernetes tells."""
        failed = ((each, condition_of(each.conditions, "ReplicaFailure")) for each in self.workloads)
        refused = (
            f"pods of {workload.kind} {workload.name} are not created: {found.message}"
            for workload, found in failed
            if found is not None and found.status == "True"
        )
        return (*refused, *(f"pod {pod.name}: {pod.halted}" for pod in self.pods if pod.halted))
