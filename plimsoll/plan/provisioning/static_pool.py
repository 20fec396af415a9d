"""The provisioner `static-nodepool`: a NodePool (karpenter.sh/v1) for each Workspace, with a number of replicas.

Karpenter creates and removes the nodes, and chooses which to remove: those not launched yet, then empty ones, then by
disruption cost. It has no deadline for a node without allocatable GPUs; Plimsoll deletes such a NodeClaim, and
Karpenter creates another.
"""

from collections.abc import Iterable

from plimsoll.plan.owned import ClaimProgress, PlanBuilder, claim_names
from plimsoll.plan.provisioning.manifest import node_pool_manifest, set_replicas
from plimsoll.plan.provisioning.node_claims import DeletionOrder
from plimsoll.plan.provisioning.provisioner import NodeTarget, ProvisionerContext
from plimsoll.text import counted


class StaticNodePoolProvisioner:
    """Keeps one NodePool for each Workspace, whose replicas are its nodes."""

    def __init__(self, context: ProvisionerContext, progress: ClaimProgress, names: Iterable[str]) -> None:
        """`names` are those of every NodePool of the cluster."""
        self._used = set(names)
        self._context = context
        self._progress = progress

    def provide(self, target: NodeTarget, builder: PlanBuilder) -> None:
        """Creates the NodePool, changes its replicas, or deletes its late NodeClaims, which Karpenter then replaces.

        NodeClaims from before the provisioner changed count; surplus ones are removed.
        """
        _, staying = self._context.replace_late(target, builder)
        pools = self._context.ownership.pools_of(target.workspace)
        pool = next((each for each in pools if not each.deleting), None)
        if self._context.give_up_others(target, staying, builder):
            if pool is not None:
                set_replicas(target, self._context.environment, pool, 0, builder, keep=True)
            return
        busy = self._context.places.nodes_of(target.workspace.ref, target.workspace.replicas)
        order = DeletionOrder(self._progress, (), busy)
        why = f"surplus: {counted(target.nodes, 'node')} needed, {counted(len(staying), 'NodeClaim')} exist"
        for claim in order.first(staying, max(0, len(staying) - target.nodes)):
            builder.delete(claim, f"{why}; {order.state(claim)}")
        wanted = max(0, target.nodes - len(staying))
        if pool is None:
            # A NodePool that is being deleted keeps its name, and its nodes still count for the limits.
            if wanted and not pools and (room := self._context.room(target, wanted, builder)):
                name = next(claim_names(target.workspace, self._used))
                self._used.add(name)
                manifest = node_pool_manifest(target, self._context.environment, room, name)
                builder.create(
                    manifest, target.verdict.workspace, f"{counted(target.nodes, 'node')} needed, {len(staying)} exist"
                )
            return
        replicas = pool.replicas or 0
        if wanted > replicas:
            wanted = replicas + self._context.room(target, wanted - replicas, builder)
        set_replicas(target, self._context.environment, pool, wanted, builder, keep=True)
