"""The provisioner `static-nodepool`: a NodePool (karpenter.sh/v1) for each Workspace, with a number of replicas.

Karpenter creates and removes the nodes, and chooses which to remove: those not launched yet, then empty ones, then by
disruption cost. It has no deadline for a node without allocatable GPUs; Plimsoll deletes such a NodeClaim, and
Karpenter creates another.
"""

from collections.abc import Iterable
from typing import Any

from plimsoll.labels import DO_NOT_DISRUPT, SPEC_HASH
from plimsoll.model.api import Environment
from plimsoll.model.karpenter import NodePool
from plimsoll.plan.owned import KARPENTER, ClaimProgress, PlanBuilder, claim_names, object_labels
from plimsoll.plan.provisioning.manifest import requirements, taints
from plimsoll.plan.provisioning.provisioner import NodeTarget, ProvisionerContext
from plimsoll.plan.workspaces import spec_hash
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
        own = sorted(staying, key=lambda claim: (self._progress.ready(claim), claim.name))
        for claim in own[: max(0, len(own) - target.nodes)]:
            builder.delete(
                claim, f"surplus: {counted(target.nodes, 'node')} needed, {counted(len(own), 'NodeClaim')} exist"
            )
        wanted = max(0, target.nodes - len(own))
        pools = self._context.ownership.pools_of(target.workspace)
        pool = next((each for each in pools if not each.deleting), None)
        if pool is None:
            # A NodePool that is being deleted keeps its name, and its nodes still count for the limits.
            if wanted and not pools and (room := self._context.room(target, wanted, builder)):
                name = next(claim_names(target.workspace, self._used))
                self._used.add(name)
                manifest = node_pool_manifest(target, self._context.environment, room, name)
                builder.create(
                    manifest, target.verdict.workspace, f"{counted(target.nodes, 'node')} needed, {len(own)} exist"
                )
            return
        replicas = pool.replicas or 0
        if wanted > replicas:
            wanted = replicas + self._context.room(target, wanted - replicas, builder)
        set_replicas(target, self._context.environment, pool, wanted, builder, keep=True)


def set_replicas(
    target: NodeTarget,
    environment: Environment,
    pool: NodePool,
    replicas: int,
    builder: PlanBuilder,
    *,
    keep: bool = False,
) -> None:
    """Sets the NodePool's replicas; without replicas it is deleted unless `keep`."""
    if not replicas and not keep:
        builder.delete(pool, "spec.provisioner of the Environment changed")
        return
    manifest = node_pool_manifest(target, environment, replicas, pool.name)
    if pool.replicas != replicas:
        builder.update(manifest, target.verdict.workspace, f"replicas {pool.replicas} -> {replicas}")
    elif pool.spec_hash != manifest["metadata"]["annotations"][SPEC_HASH]:
        builder.update(manifest, target.verdict.workspace, "the node template changed")


def node_pool_manifest(target: NodeTarget, environment: Environment, replicas: int, name: str) -> dict[str, Any]:
    """A static NodePool of exactly that instance type, from which Karpenter removes no node by itself.

    No consolidation, drift or expiry: a budget of 0 nodes allows only changes of `replicas`. The template has no values
    that change by themselves, because Karpenter would replace the nodes.
    """
    workspace = target.workspace
    spec: dict[str, Any] = {
        "replicas": replicas,
        "limits": {"nodes": str(max(replicas, workspace.spec.resource.node_count_limit or 0))},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "Never",
            "budgets": [{"nodes": "0"}],
        },
        "template": {
            "metadata": {
                "labels": {
                    **workspace.spec.resource.label_selector.match_labels,
                    **object_labels(workspace, environment),
                },
                "annotations": {DO_NOT_DISRUPT: "true"},
            },
            "spec": {
                "nodeClassRef": target.node_class.model_dump(),
                "requirements": requirements(target, environment),
                "expireAfter": "Never",
                **({"taints": taints(environment)} if environment.spec.node_claims.taints else {}),
            },
        },
    }
    return {
        "apiVersion": KARPENTER,
        "kind": "NodePool",
        "metadata": {
            "name": name,
            "labels": object_labels(workspace, environment),
            "annotations": {SPEC_HASH: spec_hash(spec)},
        },
        "spec": spec,
    }
