"""The NodeClaims, nodes and workloads of each Workspace, and the users of each node."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from plimsoll.labels import WORKSPACE, WORKSPACE_NAMESPACE
from plimsoll.model import ObjectKey, Plan, Snapshot, Verdict
from plimsoll.model.api import Alternative, Provisioning, Tries, Workspace, WorkspaceRef
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import Attempts, AttemptTracker, Idle, idle_nodes
from plimsoll.plan.view import ClusterView, Holding
from plimsoll.plan.workspaces.alternatives import split_by_alternative
from plimsoll.plan.workspaces.existing import existing_nodes
from plimsoll.plan.workspaces.replicas import Start, whole_replicas
from plimsoll.text import counted


class AppliedClaims:
    """NodeClaims that a plan created and deleted, which its snapshot does not show yet."""

    def __init__(self, plan: Plan, failures: Container[ObjectKey] = ()) -> None:
        """`failures` are the keys of operations that failed."""
        self.by_owner: dict[WorkspaceRef, list[NodeClaim]] = {}
        """The NodeClaims that were created."""
        for creation in plan.creations:
            key = creation.key
            owner = creation.owner
            if key.kind == "NodeClaim" and key not in failures and isinstance(owner, WorkspaceRef):
                self.by_owner.setdefault(owner, []).append(NodeClaim.read(creation.manifest))
        self.deleted = frozenset(
            deletion.key.name
            for deletion in plan.deletions
            if deletion.key.kind == "NodeClaim" and deletion.key not in failures
        )

    def created(self, workspace: Workspace) -> list[NodeClaim]:
        return self.by_owner.get(workspace.ref, []) if self.by_owner else []


class WorkspaceNodes:
    """Nodes and NodeClaims of the Workspaces of one snapshot; `made` are the changes that a plan has applied since."""

    def __init__(
        self, observed: Snapshot | ClusterView, verdicts: Sequence[Verdict], made: AppliedClaims | None = None
    ) -> None:
        self._view = view = ClusterView.of(observed)
        self._made = made or AppliedClaims(Plan())
        self.auto_provisioning = view.settings.auto_provisioning
        self.ownership = view.ownership
        self.nodes = view.index.by_name
        self._tracker: AttemptTracker | None = None
        self._existing: Mapping[tuple[str, str], tuple[str, ...]] = {}
        self._starts: Mapping[tuple[str, str], Start] = {}
        judged, claims = tuple(verdicts), view.observed.node_claims
        if self.auto_provisioning:
            self._existing = view.known.result(
                "existing nodes of Workspaces",
                (
                    view.by_age,
                    view.rolling,
                    judged,
                    claims,
                    view.settings,
                    view.types,
                    view.index,
                    view.usage,
                    view.storage,
                ),
                lambda: existing_nodes(view, _targets(judged)),
            )
        else:
            self._starts = view.known.result(
                "whole replicas",
                (view.by_age, judged, view.ownership, view.settings, view.index, view.usage),
                lambda: whole_replicas(view, judged),
            )

    def existing(self, workspace: Workspace) -> tuple[str, ...]:
        """Existing nodes that count for the Workspace, with node auto-provisioning."""
        return self._existing.get(workspace.key, ())

    def attempts(self, workspace: Workspace, verdict: Verdict, previous: Provisioning, now: datetime) -> Attempts:
        """The state of the Workspace's NodeClaims; `previous` is from its status."""
        if self._tracker is None or self._tracker.now != now:
            self._tracker = AttemptTracker(self._view.snapshot, self._view.progress, now)
        tracker, dropped, types = self._tracker, self._made.deleted, self._view.types
        made, made_back = split_by_alternative(self._made.created(workspace), verdict.move_back_to, types)
        claims, back = split_by_alternative(self.ownership.claims_of(workspace), verdict.move_back_to, types)
        created, known = [each.name for each in made], verdict.gpus_per_node is not None
        found = tracker.evaluate(
            previous, claims, gpus_known=known, created=created, dropped=dropped, on=verdict.alternative
        )
        tries = Tries()
        if verdict.move_back_to is not None:
            created = [each.name for each in made_back]
            moved = tracker.of_move(previous.move_back, back, created=created, dropped=dropped)
            tries = Tries.model_construct(**{name: getattr(moved.record, name) for name in Tries.model_fields})
        return replace(found, record=found.record.model_copy(update={"move_back": tries}))

    def staying_claims(self, workspace: Workspace, verdict: Verdict) -> list[NodeClaim]:
        """Its NodeClaims, without those to which its replicas are to move back."""
        return split_by_alternative(self.ownership.claims_of(workspace), verdict.move_back_to, self._view.types)[0]

    @property
    def observed(self) -> Snapshot:
        """The snapshot."""
        return self._view.observed

    def holding(self, workspace: Workspace) -> Holding:
        """Everything that is of the Workspace."""
        return self._view.holdings[workspace.key]

    def idle(self, workspace: Workspace, verdict: Verdict, previous: Provisioning, now: datetime) -> Idle | None:
        """Until when its created nodes stay without replicas; None if it has none, or needs them."""
        if verdict.target_node_count or not self.auto_provisioning or not self.ownership.requested_for(workspace):
            return None
        return idle_nodes(workspace, self._view.settings, previous, now)

    @property
    def read(self) -> tuple[object, ...]:
        """What this gives for all Workspaces, besides what their holdings give, as arguments of what is Known."""
        return self._existing, self._starts, self._view.index, self._made.by_owner, self._made.deleted

    @property
    def dropped(self) -> frozenset[str]:
        """NodeClaims that the plan has deleted."""
        return self._made.deleted

    def read_of(self, workspace: Workspace, verdict: Verdict) -> tuple[object, ...]:
        """What this gives for a Workspace, besides what its holding gives, as arguments of what is Known."""
        existing = self.existing(workspace)
        nodes = tuple(self.nodes.get(name) for name in (*existing, *verdict.allocated_nodes))
        return existing, self.start(workspace), nodes, tuple(self._made.created(workspace)), self._made.deleted

    def start(self, workspace: Workspace) -> Start | None:
        """How many replicas may start, where they span existing nodes; None otherwise."""
        return self._starts.get(workspace.key)

    def ready_nodes(self, names: Iterable[str]) -> list[str]:
        """The names that are usable nodes, sorted."""
        return sorted(name for name in set(names) if name in self.nodes and self.nodes[name].usable)


def _targets(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], tuple[int, Alternative | None]]:
    """Number of nodes for each Workspace, 0 of one that is refused, and what was chosen of several instance types."""
    return {
        (verdict.workspace.namespace, verdict.workspace.name): (verdict.target_node_count or 0, verdict.alternative)
        for verdict in verdicts
    }


class NodeUsers:
    """The users of the nodes of one snapshot."""

    def __init__(self, view: ClusterView, verdicts: Sequence[Verdict], workspace_nodes: WorkspaceNodes) -> None:
        snapshot = view.observed
        self._resource = snapshot.environment.spec.gpu_resource
        self._usage = view.usage
        self._nodes = workspace_nodes.nodes
        self._by_node: dict[str, list[str]] = {}
        for verdict in verdicts:
            for name in verdict.allocated_nodes:
                self._by_node.setdefault(name, []).append(f"Workspace {verdict.workspace}")
        for workspace in snapshot.workspaces:
            for name in workspace_nodes.existing(workspace):
                self._by_node.setdefault(name, []).append(f"Workspace {workspace.ref}")

    def of(self, name: str, workspace: Workspace) -> tuple[str, ...]:
        """Workspaces that the node is allocated to or was created for, then pods of others than `workspace`; sorted."""
        labels = self._nodes[name].labels
        owner = f"Workspace {labels.get(WORKSPACE_NAMESPACE, '')}/{labels[WORKSPACE]}" if WORKSPACE in labels else ""
        given = {*self._by_node.get(name, ()), *([owner] if owner else ())}
        pods = [
            f"pod {use.pod}" + (f" ({counted(use.devices, 'device')})" if use.devices else "")
            for use in self._usage.others(name, workspace, self._resource)
        ]
        return (*sorted(given), *pods)
