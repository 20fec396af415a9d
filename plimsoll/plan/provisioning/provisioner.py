"""Provisioners: how missing and surplus nodes of a Workspace become objects."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from plimsoll.cluster.catalog import OfferedType, OfferedTypes
from plimsoll.cluster.pods import PodPlaces
from plimsoll.labels import NODEPOOL
from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Environment, NodeClassRef, Workspace
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.model.meta import ANYWHERE, Placement
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.limits import Budget, NamespaceBudget, PodQuotas
from plimsoll.plan.owned import Attempts, AttemptTracker, Ownership, PlanBuilder, alive
from plimsoll.plan.workspaces import AdmittedPod, of_others, split_by_alternative
from plimsoll.presets import ModelPreset


@dataclass(frozen=True)
class NodeTarget:
    """The nodes that one accepted Workspace needs from its provisioner."""

    workspace: Workspace
    verdict: Verdict
    offered: OfferedType
    node_class: NodeClassRef
    pool: NodePool | None
    """The NodePool that allows the instance type; its limits apply."""
    nodes: int
    """Number of nodes to provision, without existing nodes that count."""
    known: ModelPreset | None = None
    """The preset that the nodes serve, whose files need disk; None for a template."""
    placement: Placement = ANYWHERE
    """Where its pods may be by their volumes and KAI's node pool."""
    pod: AdmittedPod | None = None
    """One of its pods, where ResourceQuotas of its namespace count them."""


class Provisioner(Protocol):
    """One way to provision nodes. An instance serves one round."""

    def provide(self, target: NodeTarget, builder: PlanBuilder) -> None:
        """Adds to the Plan what brings the Workspace to its number of nodes, within the limits."""


@dataclass(frozen=True)
class ProvisionerContext:
    """What the provisioners of one round share."""

    environment: Environment
    ownership: Ownership
    budget: Budget
    namespaces: NamespaceBudget
    pods: PodQuotas
    places: PodPlaces
    tracker: AttemptTracker
    types: OfferedTypes

    def room(self, target: NodeTarget, missing: int, builder: PlanBuilder) -> int:
        """How many of the missing nodes the limits allow; these are counted, and a shortage becomes a warning."""
        builder.own = False  # what is left depends on the Workspaces before it
        gpus, resource = target.offered.claimable or 0, target.offered.resource
        for made in range(missing):
            namespace = target.workspace.namespace
            over = self.over(target, 1)
            if over:
                problem = f"{Reason.LIMIT_EXCEEDED.value}: {made} of {missing} missing nodes are created: {over}"
                builder.warn(target.workspace.ref, problem)
                return made
            self.budget.subtract(1, gpus, target.pool, resource)
            self.namespaces.subtract(namespace, gpus * GPU_MILLI, resource)
            if target.pod is not None:
                self.pods.subtract(target.workspace, target.pod, 1)
        return max(missing, 0)

    def replace_late(self, target: NodeTarget, builder: PlanBuilder) -> tuple[Attempts, list[NodeClaim]]:
        """Deletes the Workspace's late NodeClaims; returns its attempts, and the others that are not of a NodePool."""
        claims = self.staying_claims(target)
        before, chosen = target.workspace.status.provisioning, target.verdict.alternative
        attempts = self.tracker.evaluate(before, claims, gpus_known=target.offered.devices is not None, on=chosen)
        builder.own = builder.own and attempts.settled
        if attempts.next_deadline is not None:
            builder.deadlines.append(attempts.next_deadline)
        if chosen is not None and attempts.record.tries > before.tries:
            # Once the status has it, the next alternative is chosen.
            builder.deadlines.append(self.tracker.now)
        for claim in alive(claims):
            if claim.name in attempts.late:
                builder.delete(claim, f"{attempts.late[claim.name]}: it is replaced")
        return attempts, [
            claim for claim in alive(claims) if NODEPOOL not in claim.labels and claim.name not in attempts.late
        ]

    def give_up_others(self, target: NodeTarget, staying: Sequence[NodeClaim], builder: PlanBuilder) -> bool:
        """Deletes those that stay of other alternatives than the chosen one, and says whether the Workspace has any:
        until they are gone, nothing is created, so that its nodes are never of two. Those with its pods stay until
        these have moved."""
        chosen, with_pods = target.verdict.alternative, {each.name for each in self.left_by(target, staying)}
        for claim in of_others(staying, chosen, self.types):
            if claim.name not in with_pods:
                builder.delete(claim, f"{chosen} is used instead")
        there = of_others(alive(self.staying_claims(target)), chosen, self.types)
        return any(each.name not in with_pods for each in there)

    def staying_claims(self, target: NodeTarget) -> list[NodeClaim]:
        """The Workspace's NodeClaims, without those to which its replicas are to move back."""
        return split_by_alternative(
            self.ownership.claims_of(target.workspace), target.verdict.move_back_to, self.types
        )[0]

    def left_by(self, target: NodeTarget, claims: Iterable[NodeClaim]) -> list[NodeClaim]:
        """Those from whose nodes pods of the Workspace move to the chosen alternative."""
        busy = self.places.nodes_of(target.workspace.ref, target.workspace.replicas)
        return [each for each in of_others(claims, target.verdict.alternative, self.types) if each.node_name in busy]

    def over(self, target: NodeTarget, nodes: int) -> str:
        """The limit that so many more nodes would exceed; empty if none."""
        gpus, resource = target.offered.claimable or 0, target.offered.resource
        over = self.budget.short(nodes, gpus, target.pool, resource)
        over = over or self.namespaces.short(target.workspace.namespace, nodes * gpus * GPU_MILLI, resource)
        refused = None if target.pod is None else self.pods.refusal(target.workspace, target.pod, nodes)
        return over or ("" if refused is None else refused.message)
