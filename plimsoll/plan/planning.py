"""Planning: the Plan of one round, from a snapshot and the verdicts on its Workspaces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, zip_longest
from typing import TypeVar

from plimsoll.cluster.pods import competing_warnings, marked_pods
from plimsoll.labels import NODEPOOL
from plimsoll.model import (
    Change,
    Deletion,
    DemandRef,
    ObjectKey,
    Plan,
    PreferredDeletion,
    Reason,
    RefusedOperation,
    Snapshot,
    Verdict,
)
from plimsoll.model.api import Workspace, WorkspaceRef
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.demand import DemandPlanner
from plimsoll.plan.limits import uncounted_quotas
from plimsoll.plan.owned import PlanBuilder, alive
from plimsoll.plan.provisioning import shrink
from plimsoll.plan.requests import RequestPlanner, gate_removals
from plimsoll.plan.view import ClusterView, Holding
from plimsoll.plan.workspace_objects import WorkspaceObjects, delete_all
from plimsoll.text import counted, did_you_mean, shortlist

Operation = TypeVar("Operation", Change, Deletion)


def plan(
    observed: Snapshot | ClusterView,
    verdicts: Sequence[Verdict],
    now: datetime,
    planner: DemandPlanner | None = None,
    refused: Mapping[ObjectKey, RefusedOperation] | None = None,
) -> Plan:
    """The difference between the snapshot and what its accepted Workspaces need; `verdicts` are those of `validate`.

    `now`, with a time zone, decides which NodeClaims are late and when the next attempt is due. Objects of a refused
    Workspace stay as they are, except that fewer replicas are applied. After a plan is applied, the next plan is empty,
    unless a limit cut it short. `planner` caches results of demand planning between rounds; it changes no plan.
    `refused` are operations that the plan must not contain yet: they take nothing of a limit.
    """
    return _Round(ClusterView.of(observed), verdicts, now, planner or DemandPlanner(), refused or {}).plan()


class _Round:
    def __init__(
        self,
        view: ClusterView,
        verdicts: Sequence[Verdict],
        now: datetime,
        planner: DemandPlanner,
        refused: Mapping[ObjectKey, RefusedOperation],
    ) -> None:
        self._view = view
        self._refused = refused
        self._waiting: set[ObjectKey] = set()
        self._snapshot = snapshot = view.snapshot
        self._planner = planner
        self._settings = view.settings
        self._now = now
        self._verdicts = tuple(verdicts)
        self._ownership = view.ownership
        self._builder = PlanBuilder()
        self._builder.warnings += snapshot.warnings
        self._builder.warnings += [
            f"Workspace {each.workspace}: {each.message}" for each in verdicts if each.reason is Reason.INTERNAL_ERROR
        ]
        self._builder.warnings += uncounted_quotas(self._settings, snapshot.resource_quotas)
        if self._settings.auto_provisioning:
            self._builder.warnings += [
                f"catalog.prices of the Environment: instance type {name!r} is not known"
                + _suggestion(view.types.near(name))
                for name in view.types.unknown_prices()
            ]
        self._objects = WorkspaceObjects(view, self._verdicts, now)
        late, deadline = self._objects.leaving
        self._builder.deadlines += [deadline] if deadline is not None else []
        for claim in late:
            namespace, name, uid = claim.owner
            owner = WorkspaceRef(namespace=namespace, name=name, uid=uid)
            self._builder.warn(owner, f"NodeClaim {claim.name} counts against no limit any more: {claim.stays}")

    def plan(self) -> Plan:
        self._remove_orphans()
        builder, view = self._builder, self._view
        parts = self._objects.plan()
        for part in parts.values():
            builder.add(part)
        self._shrink_refused(each for each in view.by_age if not each.deleting and each.key not in parts)
        if not self._settings.auto_provisioning:
            # Also for Workspaces that are now refused because they set an instance type.
            for holding in view.holdings.values():
                self._leftovers(holding)
        requesting = RequestPlanner(
            self._snapshot,
            self._planner,
            builder,
            self._now,
            room=self._objects.room(),
            namespaces=self._objects.namespaces,
            requests=view.requests,
            progress=view.progress,
            known=view.known,
        )
        reports = requesting.plan()
        creations, updates = self._due(builder.creations), self._due(builder.updates)
        # Nodes stay as long as the change of their workload is refused: it removes the pods that are on them.
        staying = {each.owner for each in builder.updates if each.key in self._waiting}
        due = self._due([each for each in builder.deletions if each.owner not in staying])
        withdrawn = [each for each in due if isinstance(each.owner, DemandRef)]
        capacity = [each for each in due if not isinstance(each.owner, DemandRef)]
        deletions = [*withdrawn, *self._capped(sorted(capacity, key=_deletion_order))]
        return Plan(
            verdicts=self._verdicts,
            creations=tuple(sorted(creations, key=lambda each: _order(each.key))),
            updates=tuple(sorted(updates, key=lambda each: _order(each.key))),
            deletions=tuple(sorted(deletions, key=lambda each: _order(each.key))),
            signals=tuple(sorted(builder.signals, key=lambda each: _order(each.key))),
            demands=reports,
            demand_least_gpus=requesting.demand.least_requested_gpus,
            preferred_deletions=tuple(self._preferred_deletions()),
            dry_runs=tuple(builder.dry_runs),
            gate_removals=gate_removals(self._snapshot, requesting.demand.demands, requesting.reserved),
            waiting=tuple(sorted(self._waiting, key=_order)),
            warnings=(*builder.warnings, *competing_warnings(marked_pods(self._snapshot.pods))),
            next_deadline=min(builder.deadlines, default=None),
        )

    def _remove_orphans(self) -> None:
        orphans = self._ownership.orphans
        if Workspace.__name__ in self._snapshot.missing_kinds:
            # A Workspace cannot be read then, which is not to say that it was deleted.
            if orphans:
                self._builder.warnings.append(
                    f"the cluster does not serve the kind Workspace: {counted(len(orphans), 'object')} of Workspaces "
                    "are kept until it does"
                )
            return
        for obj in orphans:
            self._builder.delete(obj, "its Workspace is deleted, or is being deleted")

    def _shrink_refused(self, refused: Iterable[Workspace]) -> None:
        """Applies fewer replicas of what is refused or cannot be read, unless an autoscaler sets them."""
        wanted = {
            invalid.ref: (invalid.replicas, invalid.per_replica_node_count)
            for invalid in self._snapshot.invalid_workspaces
            if not invalid.deleting
        }
        wanted |= {
            workspace.ref: (workspace.replicas, workspace.status.per_replica_node_count)
            for workspace in refused
            if workspace.spec.inference is not None
        }
        for ref, (replicas, size) in wanted.items():
            if replicas is None or not self._view.autoscaled.isdisjoint(
                workload.target for workload in self._ownership.workloads_of(ref)
            ):
                continue
            if replicas:
                shrink(self._view, ref, replicas, size, self._builder)
            else:
                delete_all(ref, self._ownership, self._builder)

    def _leftovers(self, holding: Holding) -> None:
        claims = [claim for claim in alive(holding.claims) if NODEPOOL not in claim.labels]
        pools = [pool for pool in holding.pools if not pool.deleting]
        for kind, names in (
            ("NodeClaim", [claim.name for claim in claims]),
            ("static NodePool", [f"{pool.name} (replicas: {pool.replicas or 0})" for pool in pools]),
        ):
            if names:
                self._builder.warn(
                    holding.workspace.ref,
                    f"{counted(len(names), kind)} from when node auto-provisioning was enabled, not deleted: "
                    + shortlist(sorted(names)),
                )

    def _preferred_deletions(self) -> Iterator[PreferredDeletion]:
        """Pods on nodes that are deleted, of Deployments that scale down: a Deployment deletes any of its pods unless
        marked."""
        deleted = {each.key.name for each in self._builder.deletions if each.key.kind == NodeClaim.__name__}
        going = {claim.node_name for claim in self._snapshot.node_claims if claim.name in deleted}
        for update in self._builder.updates:
            if update.key.kind == "Deployment" and isinstance(update.owner, WorkspaceRef):
                for pod in self._view.places.on(going, update.owner):
                    yield PreferredDeletion(namespace=pod.namespace, name=pod.name, uid=pod.uid)

    def _due(self, operations: Sequence[Operation]) -> list[Operation]:
        """Without those that the cluster refused and that are not tried again yet."""
        if not self._refused:
            return list(operations)
        due = []
        for operation in operations:
            refused = self._refused.get(operation.key)
            if refused is not None and refused.blocks(operation):
                self._waiting.add(operation.key)
                self._builder.deadlines.append(refused.until)
            else:
                due.append(operation)
        return due

    def _capped(self, deletions: list[Deletion]) -> list[Deletion]:
        """As many as one round may delete, each namespace's share in turn: no namespace keeps another waiting."""
        cap = self._settings.limits.deletions_per_tick
        if len(deletions) > cap:
            self._builder.warnings.append(
                f"{len(deletions)} deletions are due, and limits.deletionsPerTick of the Environment is {cap}: the "
                "others wait for the next round"
            )
        return list(islice(_in_turn(deletions), cap))


def _in_turn(deletions: Iterable[Deletion]) -> Iterator[Deletion]:
    """One of each namespace, then a second one of each, and so on; those of one namespace stay in their order."""
    of_namespaces: dict[str, list[Deletion]] = {}
    for deletion in deletions:
        of_namespaces.setdefault(deletion.owner.namespace, []).append(deletion)
    turns = zip_longest(*(of_namespaces[namespace] for namespace in sorted(of_namespaces)))
    return (each for turn in turns for each in turn if each is not None)


def _suggestion(near: Sequence[str]) -> str:
    return f" ({did_you_mean(near)})" if near else ""


def _order(key: ObjectKey) -> tuple[str, str, str, str]:
    return (key.kind, key.namespace, key.name, key.api_version)


def _deletion_order(deletion: Deletion) -> tuple[bool, tuple[str, str, str, str]]:
    """Sort key: workloads before their nodes."""
    return (deletion.key.kind in ("NodeClaim", "NodePool"), _order(deletion.key))
