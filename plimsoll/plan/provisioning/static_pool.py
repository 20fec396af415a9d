"""The provisioner `static-nodepool`: a NodePool (karpenter.sh/v1) of the Workspace's own, with a number of replicas.

Karpenter makes and removes the nodes, and chooses itself which of them go: those not launched yet, then the empty ones,
then by its cost of disruption. It has no deadline for a node that does not show its GPUs: the claim of such a one is
deleted here, and Karpenter makes another.
"""

from collections.abc import Iterable
from typing import Any

from plimsoll.labels import DO_NOT_DISRUPT, NODEPOOL, SPEC_HASH
from plimsoll.model.api import Environment
from plimsoll.model.karpenter import NodePool
from plimsoll.plan.owned import KARPENTER, AttemptTracker, ClaimProgress, Delta, alive, claim_names, object_labels
from plimsoll.plan.provisioning.manifest import requirements, taints
from plimsoll.plan.provisioning.provisioner import NodeTarget, ProvisionerContext
from plimsoll.plan.workspaces import spec_hash
from plimsoll.text import counted


class StaticNodePoolProvisioner:
    def __init__(
        self, context: ProvisionerContext, progress: ClaimProgress, tracker: AttemptTracker, names: Iterable[str]
    ) -> None:
        """`names` are those of every NodePool of the cluster."""
        self._used = set(names)
        self._context = context
        self._progress = progress
        self._tracker = tracker

    def provide(self, target: NodeTarget, delta: Delta) -> None:
        """Creates the NodePool, changes its replicas, or deletes its late claims, which Karpenter then makes anew.

        NodeClaims from before the provisioner was changed count; they go where there are too many nodes.
        """
        everything = self._context.claims(target)
        tries = self._tracker.judge(
            target.workspace.status.provisioning, everything, gpus_known=target.offered.devices is not None
        )
        if tries.next_deadline is not None:
            delta.deadlines.append(tries.next_deadline)
        for claim in alive(everything):
            if claim.name in tries.late:
                delta.delete(claim, f"{tries.late[claim.name]}: it is replaced")
        own = sorted(
            (claim for claim in alive(everything) if NODEPOOL not in claim.labels and claim.name not in tries.late),
            key=lambda claim: (self._progress.ready(claim), claim.name),
        )
        for claim in own[: max(0, len(own) - target.nodes)]:
            delta.delete(
                claim, f"superfluous: {counted(target.nodes, 'node')} wanted, {counted(len(own), 'NodeClaim')} there"
            )
        wanted = max(0, target.nodes - len(own))
        pools = self._context.pools(target)
        pool = next((each for each in pools if not each.deleting), None)
        if pool is None:
            # One that is being deleted has the name, and nodes that still count for the limits.
            if wanted and not pools and (room := self._context.room(target, wanted, delta)):
                name = next(claim_names(target.workspace, self._used))
                self._used.add(name)
                manifest = node_pool_manifest(target, self._context.environment, room, name)
                delta.create(
                    manifest, target.verdict.workspace, f"{counted(target.nodes, 'node')} wanted, {len(own)} there"
                )
            return
        replicas = pool.replicas or 0
        if wanted > replicas:
            wanted = replicas + self._context.room(target, wanted - replicas, delta)
        lowered(target, self._context.environment, pool, wanted, delta, keep=True)


def lowered(
    target: NodeTarget, environment: Environment, pool: NodePool, replicas: int, delta: Delta, *, keep: bool = False
) -> None:
    """Gives the NodePool so many replicas; one of none is deleted unless it is to be kept."""
    if not replicas and not keep:
        delta.delete(pool, "the Environment's provisioner is another one")
        return
    manifest = node_pool_manifest(target, environment, replicas, pool.name)
    if pool.replicas != replicas:
        delta.update(manifest, target.verdict.workspace, f"replicas {pool.replicas} -> {replicas}")
    elif pool.spec_hash != manifest["metadata"]["annotations"][SPEC_HASH]:
        delta.update(manifest, target.verdict.workspace, "what its nodes are to be has changed")


def node_pool_manifest(target: NodeTarget, environment: Environment, replicas: int, name: str) -> dict[str, Any]:
    """A static NodePool of exactly that instance type, from which Karpenter takes no node by itself.

    Neither consolidation, nor drift, nor age: a budget of 0 nodes holds for all but a change of `replicas`. The
    template carries nothing that changes by itself: Karpenter would replace the nodes.
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
                "nodeClassRef": {
                    "group": target.node_class.group,
                    "kind": target.node_class.kind,
                    "name": target.node_class.name,
                },
                "requirements": requirements(workspace, target.offered),
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
