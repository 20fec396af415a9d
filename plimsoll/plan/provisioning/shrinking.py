"""Scales down Workspaces that are refused, or that cannot be read, where fewer replicas are declared than exist.

Only the number of replicas of the workload changes, because its other fields cannot be computed from such a Workspace.
Nothing is created.
"""

from plimsoll.labels import NODEPOOL
from plimsoll.model.api import WorkspaceRef
from plimsoll.plan.owned import PlanBuilder, alive
from plimsoll.plan.provisioning.node_claims import DeletionOrder
from plimsoll.plan.view import ClusterView
from plimsoll.text import counted


def shrink(view: ClusterView, owner: WorkspaceRef, replicas: int, size: int | None, builder: PlanBuilder) -> None:
    """Adds what brings the Workspace down to so many replicas, at least 1.

    `size` is the number of nodes that one replica takes by its status; that of a workload takes precedence. Without
    either, no nodes are released, because it is not known how many replicas they would serve.
    """
    for workload in view.ownership.workloads_of(owner):
        if workload.deleting:
            continue
        size = workload.size
        if workload.replicas > replicas:
            builder.scale(workload, replicas, owner)
            builder.warn(
                owner,
                "it is refused, and inference.replicas alone is applied, because fewer are wanted than run: "
                f"{workload.replicas} -> {replicas}",
            )
    if size is not None and view.observed.environment.spec.auto_provisioning:
        _release(view, owner, replicas, size, builder)


def _release(view: ClusterView, owner: WorkspaceRef, replicas: int, size: int, builder: PlanBuilder) -> None:
    """Deletes NodeClaims, and lowers static NodePools, until the replicas have their nodes, existing ones included."""
    everything = view.ownership.claims_of(owner)
    claims = [each for each in alive(everything) if NODEPOOL not in each.labels]
    pools = [each for each in view.ownership.pools_of(owner) if not each.deleting]
    busy = view.places.nodes_of(owner, replicas)
    existing = busy - {each.node_name for each in everything}
    surplus = len(existing) + len(claims) + sum(pool.replicas or 0 for pool in pools) - replicas * size
    # During a rollout there are more nodes than replicas, and pods that are not Ready yet.
    order = DeletionOrder(view.progress, (), busy, view.places.serving(owner))
    for claim in order.first(claims, max(surplus, 0)):
        surplus -= 1
        builder.delete(claim, f"surplus: {counted(replicas * size, 'node')} needed; {order.state(claim)}")
    for pool in pools:
        less = min(max(surplus, 0), pool.replicas or 0)
        if less:
            surplus -= less
            builder.scale(pool, (pool.replicas or 0) - less, owner)
