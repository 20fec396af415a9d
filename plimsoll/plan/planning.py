"""Planning: the Plan of one round, from a snapshot and the verdicts on its Workspaces."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from plimsoll.cluster.catalog import OfferedType
from plimsoll.cluster.pods import competing_warnings, marked_pods
from plimsoll.estimating import preset_of
from plimsoll.labels import NODEPOOL, SPEC_HASH
from plimsoll.model import Deletion, DemandRef, ObjectKey, Plan, PreferredDeletion, Snapshot, Verdict
from plimsoll.model.api import Provisioner as Kind
from plimsoll.model.api import Workspace, WorkspaceRef
from plimsoll.model.cluster import SERVICE, Workload
from plimsoll.plan.demand import DemandPlanner
from plimsoll.plan.limits import NamespaceBudget, environment_budget, environment_room
from plimsoll.plan.owned import (
    AttemptTracker,
    Owned,
    PlanBuilder,
    alive,
    by_age,
    key_of,
    object_labels,
    ownership_labels,
)
from plimsoll.plan.provisioning import (
    NodeClaimProvisioner,
    NodeTarget,
    Provisioner,
    ProvisionerContext,
    StaticNodePoolProvisioner,
    shrink,
)
from plimsoll.plan.requests import RequestRound, gate_removals
from plimsoll.plan.view import ClusterView, autoscaled
from plimsoll.plan.workspaces import (
    LEADER_WORKER_SET,
    Scale,
    WorkspaceNodes,
    spec_hash,
    startable,
    workload_kind,
    workload_manifest,
)
from plimsoll.presets import ModelPreset
from plimsoll.serving import service_manifest, service_name
from plimsoll.text import counted, did_you_mean, shortlist

WORKLOADS = ("Deployment", "StatefulSet", LEADER_WORKER_SET)


def plan(
    observed: Snapshot | ClusterView, verdicts: Sequence[Verdict], now: datetime, planner: DemandPlanner | None = None
) -> Plan:
    """The difference between the snapshot and what its accepted Workspaces need; `verdicts` are those of `validate`.

    `now`, with a time zone, decides which NodeClaims are late and when the next attempt is due. Objects of a refused
    Workspace stay as they are, except that fewer replicas are applied. After a plan is applied, the next plan is empty,
    unless a limit cut it short. `planner` caches results of demand planning between rounds; it changes no plan.
    """
    return _Round(ClusterView.of(observed), verdicts, now, planner or DemandPlanner()).plan()


class _Round:
    def __init__(self, view: ClusterView, verdicts: Sequence[Verdict], now: datetime, planner: DemandPlanner) -> None:
        self._view = view
        self._snapshot = snapshot = view.snapshot
        self._planner = planner
        self._environment = snapshot.environment
        self._now = now
        self._verdicts = verdicts
        self._ownership = view.ownership
        judged = {(verdict.workspace.namespace, verdict.workspace.name): verdict for verdict in verdicts}
        self._accepted = [
            (workspace, verdict)
            for workspace in sorted(snapshot.workspaces, key=by_age)
            if not workspace.deleting and (verdict := judged.get(workspace.key)) is not None and verdict.accepted
        ]
        self._builder = PlanBuilder()
        self._builder.warnings += snapshot.warnings
        self._autoscaled = autoscaled(snapshot)
        if self._environment.spec.auto_provisioning:
            self._types = view.types
            self._builder.warnings += [
                f"catalog.prices of the Environment: instance type {name!r} is not known"
                + _suggestion(self._types.near(name))
                for name in self._types.unknown_prices()
            ]
            self._provisioner = self._choose_provisioner()
        self._nodes = WorkspaceNodes(view, verdicts)

    def _choose_provisioner(self) -> Provisioner:
        snapshot, progress = self._snapshot, self._view.progress
        self._budget = environment_budget(self._view)
        tracker = AttemptTracker(snapshot, progress, self._now)
        namespaces, places = NamespaceBudget(self._view), self._view.places
        context = ProvisionerContext(snapshot.environment, self._ownership, self._budget, namespaces, places, tracker)
        if snapshot.environment.spec.effective_provisioner is Kind.STATIC_NODEPOOL:
            pools = (pool.name for pool in snapshot.node_pools)
            return StaticNodePoolProvisioner(context, progress, pools)
        names = (claim.name for claim in snapshot.node_claims)
        return NodeClaimProvisioner(context, progress, names, self._now)

    def plan(self) -> Plan:
        self._remove_orphans()
        builder, view = self._builder, self._view
        for workspace, verdict in self._accepted:
            for warning in verdict.warnings:
                builder.warn(workspace.ref, warning)
            if verdict.per_replica_node_count == 0:
                self._empty(workspace.ref)
                continue
            if self._environment.spec.auto_provisioning:
                self._warn_of_existing(workspace)
                offered = self._types.find(workspace.spec.resource.instance_type or "")
                assert offered is not None, "validation accepts known instance types only"
                self._provisioner.provide(self._target(workspace, verdict, offered), builder)
                spellings = offered.spellings(workspace.spec.resource.instance_type or "")
                self._workload(workspace, verdict, spellings, self._nodes_there(workspace, offered))
            else:
                self._workload(workspace, verdict, (), len(verdict.node_names))
            self._service(workspace, verdict)
        self._shrink_refused()
        if not self._environment.spec.auto_provisioning:
            # Also for Workspaces that are now refused because they set an instance type.
            for workspace in sorted(self._snapshot.workspaces, key=by_age):
                self._leftovers(workspace)
        room = self._budget.room() if self._environment.spec.auto_provisioning else environment_room(view)
        requesting = RequestRound(
            self._snapshot, self._planner, builder, self._now, room=room, requests=view.requests, progress=view.progress
        )
        reports = requesting.plan()
        withdrawn = [each for each in builder.deletions if isinstance(each.owner, DemandRef)]
        capacity = [each for each in builder.deletions if not isinstance(each.owner, DemandRef)]
        deletions = [*withdrawn, *self._capped(sorted(capacity, key=_deletion_order))]
        return Plan(
            verdicts=tuple(self._verdicts),
            creations=tuple(sorted(builder.creations, key=lambda each: _order(each.key))),
            updates=tuple(sorted(builder.updates, key=lambda each: _order(each.key))),
            deletions=tuple(sorted(deletions, key=lambda each: _order(each.key))),
            signals=tuple(sorted(builder.signals, key=lambda each: _order(each.key))),
            demands=reports,
            demand_least_gpus=requesting.demand.least_requested_gpus,
            preferred_deletions=tuple(self._preferred_deletions()),
            gate_removals=gate_removals(self._snapshot, requesting.demand.demands, requesting.reserved),
            warnings=(*builder.warnings, *competing_warnings(marked_pods(self._snapshot.pods))),
            next_deadline=min(builder.deadlines, default=None),
        )

    def _warn_of_existing(self, workspace: Workspace) -> None:
        existing, paid = self._nodes.existing(workspace), workspace.spec.resource.capacity_type
        if existing and paid is not None:
            self._builder.warn(
                workspace.ref,
                f"resource.capacityType is {paid!r}, and existing nodes that resource.labelSelector matches count "
                f"whatever theirs is: {shortlist(existing)}",
            )

    def _remove_orphans(self) -> None:
        for obj in self._ownership.orphans:
            self._builder.delete(obj, "its Workspace is deleted, or is being deleted")

    def _shrink_refused(self) -> None:
        """Applies fewer replicas of what is refused or cannot be read, unless an autoscaler sets them."""
        accepted = {verdict.workspace for _, verdict in self._accepted}
        wanted = {
            each.ref: (each.replicas, each.per_replica_node_count)
            for each in self._snapshot.invalid_workspaces
            if not each.deleting
        }
        wanted |= {
            each.ref: (each.replicas, each.status.per_replica_node_count)
            for each in self._snapshot.workspaces
            if not each.deleting and each.spec.inference is not None and each.ref not in accepted
        }
        for ref, (replicas, size) in wanted.items():
            if replicas is None or not self._autoscaled.isdisjoint(
                each.target for each in self._ownership.workloads_of(ref)
            ):
                continue
            if replicas:
                shrink(self._view, ref, replicas, size, self._builder)
            else:
                self._empty(ref)

    def _empty(self, owner: WorkspaceRef) -> None:
        """Deletes everything of a Workspace that has no replicas and could have none."""
        ownership = self._ownership
        objs: list[Owned] = [*ownership.workloads_of(owner), *ownership.services_of(owner)]
        objs += ownership.pools_of(owner)
        objs += [claim for claim in ownership.claims_of(owner) if NODEPOOL not in claim.labels]
        for obj in objs:
            self._builder.delete(obj, "the Workspace has no replicas")

    def _target(self, workspace: Workspace, verdict: Verdict, offered: OfferedType) -> NodeTarget:
        access = self._environment.spec.access_of(workspace.namespace)
        node_class = self._types.node_class_ref(offered, self._environment.spec, access)
        assert node_class is not None, "validation accepts types with a node class only"
        existing = len(self._nodes.existing(workspace))
        target = max(0, (verdict.target_node_count or 0) - existing)
        pool = self._types.pool(offered, access)
        return NodeTarget(workspace, verdict, offered, node_class, pool, target, self._preset(workspace))

    def _leftovers(self, workspace: Workspace) -> None:
        claims = [claim for claim in alive(self._ownership.claims_of(workspace)) if NODEPOOL not in claim.labels]
        pools = [pool for pool in self._ownership.pools_of(workspace) if not pool.deleting]
        for kind, names in (
            ("NodeClaim", [claim.name for claim in claims]),
            ("static NodePool", [f"{pool.name} (replicas: {pool.replicas or 0})" for pool in pools]),
        ):
            if names:
                self._builder.warn(
                    workspace.ref,
                    f"{counted(len(names), kind)} from when node auto-provisioning was enabled, not deleted: "
                    + shortlist(sorted(names)),
                )

    def _nodes_there(self, workspace: Workspace, offered: OfferedType) -> int:
        """Number of the Workspace's usable nodes with allocatable GPUs."""
        existing = len(self._nodes.existing(workspace))
        for claim in alive(self._ownership.claims_of(workspace)):
            node = self._view.progress.node_of(claim)
            if node is not None and node.ready is True and node.usable:
                shown = offered.devices is None or self._view.progress.shows_gpus(claim)
                existing += shown
                if not shown and self._view.progress.serves(claim):
                    lacks = f"node {node.name} has no allocatable {self._environment.spec.devices_on(node.labels)}"
                    advice = "its pods could not start again: check NVIDIA's device plugin"
                    self._builder.warn(workspace.ref, f"{lacks}, and {advice}")
        return existing

    def _workload(
        self, workspace: Workspace, verdict: Verdict, instance_types: tuple[str, ...], nodes_there: int
    ) -> None:
        """Creates, updates or deletes the workload of one Workspace, which has `nodes_there` nodes."""
        existing = self._ownership.workloads_of(workspace)
        inference = workspace.spec.inference
        if inference is None:
            for workload in existing:
                self._builder.delete(workload, "the Workspace declares no inference")
            return
        version, kind = workload_kind(inference, verdict.per_replica_node_count or 1)
        key = ObjectKey(api_version=version, kind=kind, namespace=workspace.namespace, name=workspace.name)
        same = next((workload for workload in existing if key_of(workload) == key), None)
        scale = self._scale(workspace, verdict, key, same, nodes_there)
        known = self._preset(workspace)
        manifest = workload_manifest(
            workspace, inference, verdict, self._environment, instance_types, known=known, scale=scale
        )
        others = [workload for workload in existing if workload is not same]
        for workload in others:
            self._builder.delete(workload, f"{key.kind} {key.name} replaces it")
        if same is None:
            # Two workloads would use the same nodes, so the old one is deleted first.
            enough = verdict.target_node_count or 0 if self._environment.spec.auto_provisioning else 1
            if nodes_there >= enough and not others and scale.replicas:
                reason = "the nodes of the Workspace are ready"
                self._builder.create(manifest, verdict.workspace, reason)
        elif not same.deleting and same.spec_hash != manifest["metadata"]["annotations"][SPEC_HASH]:
            wanted = scale.replicas
            changed = wanted is not None and wanted != same.replicas
            reason = f"replicas {same.replicas} -> {wanted}" if changed else "the Workspace changed"
            self._builder.update(manifest, verdict.workspace, reason)

    def _preset(self, workspace: Workspace) -> ModelPreset | None:
        """The preset that the Workspace serves, where its figures are known."""
        inference = workspace.spec.inference
        found = preset_of(inference, self._view.models) if inference is not None else None
        return found if isinstance(found, ModelPreset) else None

    def _service(self, workspace: Workspace, verdict: Verdict) -> None:
        """Creates the Service of one Workspace with its workload, or updates or deletes it."""
        inference, name = workspace.spec.inference, service_name(workspace)
        same = None
        for service in self._ownership.services_of(workspace):
            if service.name == name:
                same = service
            else:
                self._builder.delete(service, "the Workspace declares no Service of this name")
        if inference is None or not name or SERVICE in self._snapshot.missing_kinds:
            return
        manifest = service_manifest(
            workspace,
            inference,
            object_labels(workspace, self._environment),
            ownership_labels(workspace),
            groups=(verdict.per_replica_node_count or 1) > 1,
        )
        manifest["metadata"]["annotations"] = {SPEC_HASH: spec_hash(manifest)}
        if same is None:
            created = any(
                each.owner == verdict.workspace and each.key.kind in WORKLOADS for each in self._builder.creations
            )
            if created or self._ownership.workloads_of(workspace):
                self._builder.create(manifest, verdict.workspace, "the Workspace serves a preset")
        elif not same.deleting and same.spec_hash != manifest["metadata"]["annotations"][SPEC_HASH]:
            self._builder.update(manifest, verdict.workspace, "the Service changed")

    def _scale(
        self, workspace: Workspace, verdict: Verdict, key: ObjectKey, same: Workload | None, nodes_there: int
    ) -> Scale:
        """The replicas to declare: an autoscaler's number is kept, and replicas that span nodes start whole."""
        wanted = workspace.replicas
        if (key.api_version.rpartition("/")[0], key.kind, key.namespace, key.name) in self._autoscaled:
            # While our field manager owns the number, leaving it out would reset it to 1.
            return Scale(wanted if same is None or same.sets_replicas else None, autoscaled=True)
        if key.kind != LEADER_WORKER_SET:
            return Scale(startable(workspace, verdict, same.replicas if same is not None else 0))
        if not self._environment.spec.auto_provisioning:
            start = self._nodes.start(workspace)
            return Scale(start.replicas if start is not None else 0)
        running = same.replicas if same is not None else 0
        return Scale(min(wanted, max(running, nodes_there // (verdict.per_replica_node_count or 1))))

    def _preferred_deletions(self) -> Iterator[PreferredDeletion]:
        """Pods on nodes that are deleted, of Deployments that scale down: a Deployment deletes any of its pods unless
        marked."""
        deletions = {deletion.key for deletion in self._builder.deletions}
        going = {claim.node_name for claim in self._snapshot.node_claims if key_of(claim) in deletions}
        for update in self._builder.updates:
            if update.key.kind == "Deployment" and isinstance(update.owner, WorkspaceRef):
                for pod in self._view.places.on(going, update.owner):
                    yield PreferredDeletion(namespace=pod.namespace, name=pod.name, uid=pod.uid)

    def _capped(self, deletions: list[Deletion]) -> list[Deletion]:
        cap = self._environment.spec.limits.deletions_per_tick
        if len(deletions) > cap:
            self._builder.warnings.append(
                f"{len(deletions)} deletions are due, and limits.deletionsPerTick of the Environment is {cap}: the "
                "others wait for the next round"
            )
        return deletions[:cap]


def _suggestion(near: Sequence[str]) -> str:
    return f" ({did_you_mean(near)})" if near else ""


def _order(key: ObjectKey) -> tuple[str, str, str, str]:
    return (key.kind, key.namespace, key.name, key.api_version)


def _deletion_order(deletion: Deletion) -> tuple[bool, tuple[str, str, str, str]]:
    """Sort key: workloads before their nodes."""
    return (deletion.key.kind in ("NodeClaim", "NodePool"), _order(deletion.key))
