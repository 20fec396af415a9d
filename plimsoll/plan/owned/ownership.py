"""Which objects the controller created, their owners by their labels, and those without an owner."""

from collections.abc import Iterable
from typing import TypeVar

from plimsoll.cluster.pods import workspace_key
from plimsoll.labels import ENVIRONMENT, NODEPOOL, as_label_value, is_label_value
from plimsoll.model import Owner, Snapshot, is_created
from plimsoll.model.api import Workspace, WorkspaceRef
from plimsoll.model.cluster import SERVICE, Workload
from plimsoll.model.dra import ResourceClaimTemplate
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.plan.owned.request_object import KINDS, RequestObject, demand_of

Owned = NodeClaim | NodePool | Workload | ResourceClaimTemplate
Kind = TypeVar("Kind", NodeClaim, NodePool, Workload, ResourceClaimTemplate)


class Ownership:
    """NodeClaims, NodePools and workloads by Workspace.

    An object belongs to a Workspace if its labels match namespace, name and, where both are known, the UID. Objects of
    a deleted Workspace with the same name are orphans. Objects of other environments are ignored, and workloads in
    other namespaces: whoever may create them there has no rights in the Workspace's. Labels are an index only: what
    the controller did not create (`is_created`) belongs to nobody.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._present: dict[tuple[str, str], WorkspaceRef] = {}
        """Each Workspace that exists and is not being deleted, by its label values."""
        there = [each.ref for each in snapshot.workspaces if not each.deleting]
        there += [each.ref for each in snapshot.invalid_workspaces if not each.deleting]
        # Last those that labels name as they are: a longer name has a form that may be the name of another.
        self._present |= {workspace_key(ref): ref for ref in sorted(there, key=lambda ref: is_label_value(ref.name))}
        self.claims = [claim for claim in snapshot.node_claims if _ours(claim, snapshot)]
        """Every NodeClaim that the controller created, including those that are being deleted."""
        self.pools = [pool for pool in snapshot.node_pools if _ours(pool, snapshot)]
        """Every NodePool that the controller created, including those that are being deleted."""
        workloads = [workload for workload in snapshot.workloads if _ours(workload, snapshot)]
        self.workloads = [workload for workload in workloads if workload.kind != SERVICE]
        """Every workload that the controller created, Services aside, including those that are being deleted."""
        self.services = [workload for workload in workloads if workload.kind == SERVICE]
        """Every Service that the controller created, including those that are being deleted."""
        self.claim_templates = [each for each in snapshot.resource_claim_templates if _ours(each, snapshot)]
        """Every ResourceClaimTemplate that the controller created, including those that are being deleted."""
        self._claims, left_claims = self._by_owner(self.claims)
        self._pools, left_pools = self._by_owner(self.pools)
        self._workloads, left_workloads = self._by_owner(self.workloads)
        self._services, left_services = self._by_owner(self.services)
        self._claim_templates, left_templates = self._by_owner(self.claim_templates)
        # NodeClaims of a NodePool are deleted with it.
        left_claims = [claim for claim in left_claims if NODEPOOL not in claim.labels]
        self.orphans: list[Owned] = [*left_workloads, *left_services, *left_templates, *left_pools, *left_claims]
        """Objects to delete: their Workspace is deleted, or is being deleted."""

    def _by_owner(self, objs: Iterable[Kind]) -> tuple[dict[tuple[str, str], list[Kind]], list[Kind]]:
        """The objects by the label values of their Workspace, and those without one."""
        owned: dict[tuple[str, str], list[Kind]] = {}
        orphans: list[Kind] = []
        for obj in objs:
            namespace, name, uid = obj.owner
            present = self._present.get((namespace, name))
            if present is None or (uid and present.uid and uid != as_label_value(present.uid)):
                orphans.append(obj)
            else:
                owned.setdefault((namespace, name), []).append(obj)
        return owned, orphans

    def labelled(self, workspace: Workspace) -> WorkspaceRef:
        """The Workspace that the labels of its objects name: itself, or another of the same namespace."""
        return self._present.get(workspace_key(workspace), workspace.ref)

    def claims_of(self, workspace: Workspace | WorkspaceRef) -> list[NodeClaim]:
        """The Workspace's NodeClaims, including those that are being deleted."""
        return self._claims.get(workspace_key(workspace), [])

    def pools_of(self, workspace: Workspace | WorkspaceRef) -> list[NodePool]:
        """The Workspace's NodePools, including those that are being deleted."""
        return self._pools.get(workspace_key(workspace), [])

    def requested_for(self, workspace: Workspace) -> int:
        """Number of nodes requested for the Workspace: its own NodeClaims, and the replicas of its NodePools."""
        own = sum(NODEPOOL not in claim.labels for claim in alive(self.claims_of(workspace)))
        return own + sum(pool.replicas or 0 for pool in self.pools_of(workspace) if not pool.deleting)

    def workloads_of(self, workspace: Workspace | WorkspaceRef) -> list[Workload]:
        """The Workspace's workloads, including those that are being deleted."""
        return self._workloads.get(workspace_key(workspace), [])

    def rolling_out(self, workspace: Workspace) -> bool:
        """Whether pods of an earlier template of the Workspace exist."""
        return any(each.rolling_out and not each.deleting for each in self.workloads_of(workspace))

    def rollout_stalled(self, workspace: Workspace) -> bool:
        """Whether the rollout of the Workspace made no progress within its deadline."""
        return any(each.rolling_out and each.stalled for each in self.workloads_of(workspace))

    def services_of(self, workspace: Workspace | WorkspaceRef) -> list[Workload]:
        """The Services of the Workspace's workloads, including those that are being deleted."""
        return self._services.get(workspace_key(workspace), [])

    def claim_templates_of(self, workspace: Workspace | WorkspaceRef) -> list[ResourceClaimTemplate]:
        """The ResourceClaimTemplates of the Workspace's pods, including those that are being deleted."""
        return self._claim_templates.get(workspace_key(workspace), [])


def created_objects(snapshot: Snapshot) -> dict[tuple[str, str], list[Owned]]:
    """Every object that the controller created, including those being deleted, by the owner's label values."""
    made: dict[tuple[str, str], list[Owned]] = {}
    objs: list[Owned] = [*snapshot.node_claims, *snapshot.node_pools, *snapshot.workloads]
    objs += snapshot.resource_claim_templates
    for obj in objs:
        if _ours(obj, snapshot):
            namespace, name, _ = obj.owner
            made.setdefault((namespace, name), []).append(obj)
    return made


def alive(claims: Iterable[NodeClaim]) -> list[NodeClaim]:
    """The NodeClaims that are not being deleted; only these count as supply."""
    return [claim for claim in claims if not claim.deleting]


def owner_of(obj: Owned | RequestObject) -> Owner:
    """The Workspace or demand that the labels name."""
    if isinstance(obj, KINDS):
        return demand_of(obj)
    namespace, name, uid = obj.owner
    return WorkspaceRef(namespace=namespace, name=name, uid=uid)


def by_age(workspace: Workspace) -> tuple[str, str, str]:
    """Sort key: age, then namespace and name. Older Workspaces are served first."""
    return (workspace.creation_timestamp, workspace.namespace, workspace.name)


def _ours(obj: Owned, snapshot: Snapshot) -> bool:
    namespace, name, _ = obj.owner
    if not (namespace and name):
        return False
    if isinstance(obj, Workload | ResourceClaimTemplate):
        kind = obj.kind if isinstance(obj, Workload) else type(obj).__name__
        # One that is being deleted is in no state any more, and in the way of its successor.
        made = obj.deleting or is_created(kind, obj.uid, snapshot.recorded)
        if not made or as_label_value(obj.namespace) != namespace:
            return False
    environment = snapshot.environment.name
    return obj.labels.get(ENVIRONMENT, environment) == as_label_value(environment)
