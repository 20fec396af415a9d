"""What the engine made, told by ownership labels: whose it is, and what has no owner any more."""

from collections.abc import Iterable

from plimsoll.labels import ENVIRONMENT, NODEPOOL, as_label_value
from plimsoll.model import Owner, Snapshot
from plimsoll.model.api import Environment, Workspace, WorkspaceRef
from plimsoll.model.cluster import Workload
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.plan.owned.request_objects import KINDS, RequestObject, demand_of

Owned = NodeClaim | NodePool | Workload


class Ownership:
    """NodeClaims, NodePools and workloads by Workspace.

    An object is a Workspace's where the labels of namespace and name fit and, where both sides have one, the UID: what
    was made for a deleted Workspace of the same name is nobody's. Objects of another environment are not looked at.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._present: dict[tuple[str, str], str] = {}
        """UID of each Workspace that is there and not being deleted, by its labels' values."""
        for workspace in snapshot.workspaces:
            if not workspace.deleting:
                self._present[_labels(workspace.ref)] = workspace.uid
        for invalid in snapshot.invalid_workspaces:
            if not invalid.deleting:
                self._present[_labels(invalid.ref)] = invalid.ref.uid
        self._claims: dict[tuple[str, str], list[NodeClaim]] = {}
        self._workloads: dict[tuple[str, str], list[Workload]] = {}
        self.orphaned_claims: list[NodeClaim] = []
        self.orphaned_workloads: list[Workload] = []
        self.claims: list[NodeClaim] = []
        """Every NodeClaim that the engine made, those under deletion too."""
        self.workloads: list[Workload] = []
        """Every workload that the engine made, those under deletion too."""
        self._pools: dict[tuple[str, str], list[NodePool]] = {}
        self.pools: list[NodePool] = []
        """Every NodePool that the engine made, those under deletion too."""
        self.orphaned_pools: list[NodePool] = []
        for pool in snapshot.node_pools:
            if not _ours(pool, snapshot.environment):
                continue
            self.pools.append(pool)
            owner = self._owner(pool)
            if owner is None:
                self.orphaned_pools.append(pool)
            else:
                self._pools.setdefault(owner, []).append(pool)
        for claim in snapshot.node_claims:
            if not _ours(claim, snapshot.environment):
                continue
            self.claims.append(claim)
            owner = self._owner(claim)
            if owner is None:
                if NODEPOOL not in claim.labels:  # else it goes with its NodePool
                    self.orphaned_claims.append(claim)
            else:
                self._claims.setdefault(owner, []).append(claim)
        for workload in snapshot.workloads:
            if not _ours(workload, snapshot.environment):
                continue
            self.workloads.append(workload)
            owner = self._owner(workload)
            if owner is None:
                self.orphaned_workloads.append(workload)
            else:
                self._workloads.setdefault(owner, []).append(workload)

    def _owner(self, thing: Owned) -> tuple[str, str] | None:
        namespace, name, uid = thing.owner
        present = self._present.get((namespace, name))
        if present is None or (uid and present and uid != as_label_value(present)):
            return None
        return (namespace, name)

    def claims_of(self, workspace: Workspace) -> list[NodeClaim]:
        """The Workspace's NodeClaims, those under deletion too."""
        return self._claims.get(_labels(workspace.ref), [])

    def pools_of(self, workspace: Workspace) -> list[NodePool]:
        """The Workspace's NodePools, those under deletion too."""
        return self._pools.get(_labels(workspace.ref), [])

    def requested_for(self, workspace: Workspace) -> int:
        """Nodes that have been asked for on the Workspace's behalf: its own NodeClaims, and its NodePools' replicas."""
        own = sum(NODEPOOL not in claim.labels for claim in alive(self.claims_of(workspace)))
        return own + sum(pool.replicas or 0 for pool in self.pools_of(workspace) if not pool.deleting)

    def workloads_of(self, workspace: Workspace) -> list[Workload]:
        """The Workspace's workloads, those under deletion too."""
        return self._workloads.get(_labels(workspace.ref), [])


def made_for(snapshot: Snapshot) -> dict[tuple[str, str], list[Owned]]:
    """Everything that the engine made, those under deletion too, by the values of the owner's labels."""
    made: dict[tuple[str, str], list[Owned]] = {}
    things: list[Owned] = [*snapshot.node_claims, *snapshot.node_pools, *snapshot.workloads]
    for thing in things:
        if _ours(thing, snapshot.environment):
            namespace, name, _ = thing.owner
            made.setdefault((namespace, name), []).append(thing)
    return made


def alive(claims: Iterable[NodeClaim]) -> list[NodeClaim]:
    """Those that are not under deletion: what counts as supply."""
    return [claim for claim in claims if not claim.deleting]


def owner_of(thing: Owned | RequestObject) -> Owner:
    """The Workspace, or the demand, that the labels name."""
    if isinstance(thing, KINDS):
        return demand_of(thing)
    namespace, name, uid = thing.owner
    return WorkspaceRef(namespace=namespace, name=name, uid=uid)


def by_age(workspace: Workspace) -> tuple[str, str, str]:
    """Sorts Workspaces by age, then namespace and name: the order in which scarce things are given."""
    return (workspace.creation_timestamp, workspace.namespace, workspace.name)


def _labels(ref: WorkspaceRef) -> tuple[str, str]:
    return (as_label_value(ref.namespace), as_label_value(ref.name))


def _ours(thing: Owned, environment: Environment) -> bool:
    namespace, name, _ = thing.owner
    return bool(namespace and name) and thing.labels.get(ENVIRONMENT, environment.name) == as_label_value(
        environment.name
    )
