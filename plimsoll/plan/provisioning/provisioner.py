"""Provisioners: how the nodes that a Workspace lacks, or has too many of, become objects."""

from dataclasses import dataclass
from typing import Protocol

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Environment, NodeClassRef, Workspace
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.plan.catalog import OfferedType
from plimsoll.plan.limits import Budget
from plimsoll.plan.owned import Delta, Ownership
from plimsoll.plan.pods import PodPlaces


@dataclass(frozen=True)
class NodeTarget:
    """What one accepted Workspace wants of its provisioner."""

    workspace: Workspace
    verdict: Verdict
    offered: OfferedType
    node_class: NodeClassRef
    pool: NodePool | None
    """The NodePool of others that allows the type, whose limits hold."""
    nodes: int
    """Nodes to be made for the Workspace: those that it brings are taken off."""


class Provisioner(Protocol):
    """One way to make nodes; one object serves a whole round."""

    def provide(self, target: NodeTarget, delta: Delta) -> None:
        """Adds to the delta what takes the Workspace's nodes to the target, within the limits."""


@dataclass(frozen=True)
class ProvisionerContext:
    """What provisioners of one round share."""

    environment: Environment
    ownership: Ownership
    budget: Budget
    places: PodPlaces

    def room(self, target: NodeTarget, missing: int, delta: Delta) -> int:
        """How many of the missing nodes the limits leave room for; they are taken, and a shortage is told."""
        gpus = target.offered.claimable or 0
        for made in range(missing):
            over = self.budget.short(1, gpus, target.pool)
            if over:
                delta.warnings.append(
                    f"Workspace {target.workspace.ref}: {Reason.LIMIT_EXCEEDED.value}: {made} of {missing} missing "
                    f"nodes are created: {over}"
                )
                return made
            self.budget.take(1, gpus, target.pool)
        return max(missing, 0)

    def claims(self, target: NodeTarget) -> list[NodeClaim]:
        """The Workspace's NodeClaims, those under deletion too."""
        return self.ownership.claims_of(target.workspace)

    def pools(self, target: NodeTarget) -> list[NodePool]:
        """The Workspace's own NodePools, those under deletion too."""
        return self.ownership.pools_of(target.workspace)
