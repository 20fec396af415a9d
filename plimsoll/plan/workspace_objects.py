"""The objects of accepted Workspaces: their nodes, workloads and Services."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from plimsoll.cluster.catalog import OfferedType
from plimsoll.cluster.pools import Room
from plimsoll.estimating import preset_of
from plimsoll.labels import GIVEN_UP, NODEPOOL, SPEC_HASH
from plimsoll.model import ObjectKey, Verdict
from plimsoll.model.api import NodeClassRef, Workspace, WorkspaceRef
from plimsoll.model.api import Provisioner as Kind
from plimsoll.model.cluster import SERVICE, Workload
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import Placement, Taint
from plimsoll.plan.limits import NamespaceBudget, PodQuotas, environment_budget, environment_room
from plimsoll.plan.owned import (
    AttemptTracker,
    Owned,
    Ownership,
    PlanBuilder,
    PlanPart,
    alive,
    key_of,
    leaving_claims,
    object_labels,
    ownership_labels,
)
from plimsoll.plan.provisioning import (
    NodeClaimProvisioner,
    NodeTarget,
    Provisioner,
    ProvisionerContext,
    StaticNodePoolProvisioner,
)
from plimsoll.plan.rollout import Rollout
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import (
    LEADER_WORKER_SET,
    AdmittedPod,
    Scale,
    WorkspaceNodes,
    claim_template,
    devices_of,
    known_placement,
    placements,
    spec_hash,
    startable,
    wanted_values,
    workload_kind,
    workload_manifest,
)
from plimsoll.presets import ModelPreset
from plimsoll.serving import service_manifest, service_name
from plimsoll.text import shortlist

WORKLOADS: Final = ("Deployment", "StatefulSet", LEADER_WORKER_SET)


class _NewNodes(NamedTuple):
    """What new nodes of a Workspace are made from."""

    offered: OfferedType
    node_class: NodeClassRef
    pool: NodePool | None
    """The NodePool that allows the type."""
    placement: Placement
    """Where its pods may be by their volumes and KAI's node pool."""
    move_back: "_NewNodes | None" = None
    """The same of the alternative to which its replicas move back."""


class WorkspaceObjects:
    """Plans the objects of the accepted Workspaces of one view, one Workspace after the other, oldest first."""

    def __init__(self, view: ClusterView, verdicts: Sequence[Verdict], now: datetime) -> None:
        self._view = view
        self._now = now
        self._nodes = WorkspaceNodes(view, verdicts)
        self._accepted = {
            (verdict.workspace.namespace, verdict.workspace.name): verdict for verdict in verdicts if verdict.accepted
        }
        self._environment = view.observed.environment
        self._settings = view.settings
        self._ownership = view.ownership
        self._serves_services = SERVICE not in view.observed.missing_kinds
        self._new_nodes: Mapping[tuple[str, str], _NewNodes] = {}
        self.leaving = leaving_claims(view.ownership.claims, view.settings.node_claims.deletion_deadline_seconds, now)
        """NodeClaims that are being deleted; those that are late count against no limit of nodes."""
        self.namespaces = NamespaceBudget(view)
        """What each namespace may have, after the Workspaces that were planned."""
        if self._settings.auto_provisioning:
            arguments = (view.by_age, tuple(verdicts), view.types, self._settings, placements(view))
            self._new_nodes = view.known.result("new nodes", arguments, self._find_new_nodes)
            self._budget = environment_budget(view, tuple(claim.name for claim in self.leaving.overdue))
            self._pod_quotas = PodQuotas(view)
            self._pods = self._counted_pods()
            self._provisioner = self._choose_provisioner(now)

    def _counted_pods(self) -> Mapping[tuple[str, str], AdmittedPod]:
        """A pod of each accepted Workspace, where ResourceQuotas of its namespace count pods. Those that come on nodes
        that it has are counted."""
        found = dict[tuple[str, str], AdmittedPod]()
        for each in self._view.by_age:
            verdict = self._accepted.get(each.key)
            if verdict is None or not self._pod_quotas.bounds(each.namespace):
                continue
            pod = AdmittedPod.of(
                each,
                self._view.models,
                self._environment,
                serving=verdict.serving,
                devices=verdict.gpus_per_node,
                resource=verdict.device_resource or "",
            )
            if pod is not None:
                self._pod_quotas.settle(each, pod, verdict.target_node_count or 0, len(self._nodes.existing(each)))
                found[each.key] = pod
        return found

    def _choose_provisioner(self, now: datetime) -> Provisioner:
        seen, progress = self._view.observed, self._view.progress
        tracker = AttemptTracker(seen, progress, now)
        places = self._view.places
        context = ProvisionerContext(
            self._environment,
            self._ownership,
            self._budget,
            self.namespaces,
            self._pod_quotas,
            places,
            tracker,
            self._view.types,
        )
        if self._settings.effective_provisioner is Kind.STATIC_NODEPOOL:
            return StaticNodePoolProvisioner(context, progress, (pool.name for pool in seen.node_pools))
        return NodeClaimProvisioner(context, progress, (claim.name for claim in seen.node_claims), now)

    def room(self) -> Room:
        """What the limits leave for demand, after the Workspaces that were planned."""
        return self._budget.room() if self._settings.auto_provisioning else environment_room(self._view)

    def plan(self) -> Mapping[tuple[str, str], PlanPart]:
        """The part of each accepted Workspace in the Plan, known while nothing that it depends on changes."""
        view, accepted, nodes = self._view, self._accepted, self._nodes
        own = {
            each.key: each.on(accepted[each.key].alternative)
            for each in view.by_age
            if each.key in accepted and not each.deleting
        }
        shared = (self._settings, self._environment.name, view.models, view.autoscaled, self._serves_services)
        return view.known.each(
            "objects",
            (view.holdings, accepted, *shared, *nodes.read, self._new_nodes),
            own,
            lambda key: (
                view.holdings[key],
                accepted[key],
                *shared,
                nodes.existing(own[key]),
                nodes.start(own[key]),
                self._new_nodes.get(key),
            ),
            lambda key: self._part(own[key], accepted[key]),
            lasts=PlanPart.lasts,
        )

    def _find_new_nodes(self) -> Mapping[tuple[str, str], _NewNodes]:
        """What new nodes are made from, by the key of each accepted Workspace that needs nodes."""
        places = placements(self._view)
        found = dict[tuple[str, str], _NewNodes]()
        for each in self._view.by_age:
            verdict = self._accepted.get(each.key)
            if verdict is None or not verdict.per_replica_node_count:
                continue
            placement = known_placement(places[each.key])
            new = self._made_from(each.on(verdict.alternative), placement)
            if verdict.move_back_to is not None:
                new = new._replace(move_back=self._made_from(each.on(verdict.move_back_to), placement))
            found[each.key] = new
        return found

    def _made_from(self, workspace: Workspace, placement: Placement) -> _NewNodes:
        types, settings = self._view.types, self._settings
        offered = types.find(workspace.spec.resource.instance_type or "")
        assert offered is not None, "validation accepts known instance types only"
        access = settings.access_of(workspace.namespace)
        wanted = wanted_values(workspace, settings, placement)
        node_class = types.node_class_ref(offered, settings, access, wanted)
        assert node_class is not None, "validation accepts types with a node class only"
        return _NewNodes(offered, node_class, types.pool(offered, access, wanted), placement)

    def _part(self, workspace: Workspace, verdict: Verdict) -> PlanPart:
        builder = PlanBuilder()
        for warning in verdict.warnings:
            builder.warn(workspace.ref, warning)
        if verdict.per_replica_node_count == 0:
            delete_all(workspace.ref, self._ownership, builder)
            return builder.part()
        types: tuple[str, ...] = ()
        taints: tuple[Taint, ...] = ()
        there = len(verdict.node_names)
        if self._settings.auto_provisioning:
            self._warn_of_existing(workspace, builder)
            new = self._new_nodes[workspace.key]
            self._provisioner.provide(self._target(workspace, verdict, new, builder), builder)
            if new.move_back is not None and isinstance(self._provisioner, NodeClaimProvisioner):
                self._provisioner.move_back(self._move_target(workspace, verdict, new.move_back), builder)
            types = new.offered.spellings(workspace.spec.resource.instance_type or "")
            taints = new.pool.taints if new.pool is not None else ()
            there = self._nodes_there(workspace, new.offered, builder)
        else:
            self._rollout(workspace, verdict).temporary_nodes(builder)
        self._workload(workspace, verdict, types, there, builder, taints=taints)
        self._claim_template(workspace, verdict, builder)
        self._service(workspace, verdict, builder)
        return builder.part()

    def _warn_of_existing(self, workspace: Workspace, builder: PlanBuilder) -> None:
        existing, paid = self._nodes.existing(workspace), workspace.spec.resource.capacity_type
        if existing and paid is not None:
            builder.warn(
                workspace.ref,
                f"resource.capacityType is {paid!r}, and existing nodes that resource.labelSelector matches count "
                f"whatever theirs is: {shortlist(existing)}",
            )

    def _target(self, workspace: Workspace, verdict: Verdict, new: _NewNodes, builder: PlanBuilder) -> NodeTarget:
        existing = len(self._nodes.existing(workspace))
        temporary = self._rollout(workspace, verdict).temporary_nodes(builder)
        nodes = max(0, (verdict.target_node_count or 0) + temporary - existing)
        idle = self._nodes.idle(workspace, verdict, workspace.status.provisioning, self._now)
        if idle is not None and self._now < idle.until:
            nodes = self._ownership.requested_for(workspace)
            builder.own = False
            builder.deadlines.append(idle.until)
        made_from = (new.offered, new.node_class, new.pool)
        known, pod = self._preset(workspace), self._pods.get(workspace.key)
        return NodeTarget(workspace, verdict, *made_from, nodes, known, new.placement, pod)

    def _move_target(self, workspace: Workspace, verdict: Verdict, new: _NewNodes) -> NodeTarget:
        """All nodes of the alternative to which the replicas move back; none during a rollout."""
        to = verdict.move_back_to
        nodes = 0 if workspace.key in self._view.rolling else verdict.target_node_count or 0
        there = verdict.model_copy(update={"alternative": to, "move_back_to": None})
        made_from = (new.offered, new.node_class, new.pool)
        known, pod = self._preset(workspace), self._pods.get(workspace.key)
        return NodeTarget(workspace.on(to), there, *made_from, nodes, known, new.placement, pod)

    def _rollout(self, workspace: Workspace, verdict: Verdict) -> Rollout:
        return Rollout(self._view, workspace, verdict, self._nodes.existing(workspace))

    def _nodes_there(self, workspace: Workspace, offered: OfferedType, builder: PlanBuilder) -> int:
        """Number of the Workspace's usable nodes with allocatable GPUs."""
        existing = len(self._nodes.existing(workspace))
        for claim in alive(self._ownership.claims_of(workspace)):
            node = self._view.progress.node_of(claim)
            if node is not None and node.ready is True and node.usable:
                shown = offered.devices is None or self._view.progress.shows_gpus(claim)
                existing += shown
                if not shown and self._view.progress.serves(claim):
                    advice = "its pods could not start again: check the device plugin"
                    builder.warn(workspace.ref, f"{self._view.progress.lacks_gpus(claim, node)}, and {advice}")
        return existing

    def _workload(
        self,
        workspace: Workspace,
        verdict: Verdict,
        instance_types: tuple[str, ...],
        nodes_there: int,
        builder: PlanBuilder,
        *,
        taints: tuple[Taint, ...],
    ) -> None:
        """Creates, updates or deletes the workload of one Workspace, which has `nodes_there` nodes."""
        existing = self._ownership.workloads_of(workspace)
        inference = workspace.spec.inference
        if inference is None:
            for workload in existing:
                builder.delete(workload, "the Workspace declares no inference")
            return
        version, kind = workload_kind(inference, verdict.per_replica_node_count or 1)
        key = ObjectKey(api_version=version, kind=kind, namespace=workspace.namespace, name=workspace.name)
        same = next((workload for workload in existing if key_of(workload) == key), None)
        scale = self._scale(workspace, verdict, key, same, nodes_there)
        known = self._preset(workspace)
        rollout = self._rollout(workspace, verdict)
        held, moved = rollout.held(same), rollout.moved(same)
        made_from = (workspace, inference, verdict, self._environment, instance_types)
        manifest = workload_manifest(*made_from, taints=taints, known=known, scale=scale, held=held, moved=moved)
        if (same is None or same.replicas < workspace.replicas) and _requests_nodes(builder):
            builder.dry_run(manifest, verdict.workspace)
        others = [workload for workload in existing if workload is not same]
        for workload in others:
            builder.delete(workload, f"{key.kind} {key.name} replaces it")
        if same is None:
            # Two workloads would use the same nodes, so the old one is deleted first.
            enough = verdict.target_node_count or 0 if self._settings.auto_provisioning else 1
            if nodes_there >= enough and not others and scale.replicas:
                reason = "the nodes of the Workspace are ready"
                builder.create(manifest, verdict.workspace, reason)
        elif not same.deleting:
            given_up, annotations = rollout.given_up(same, manifest), manifest["metadata"]["annotations"]
            if given_up:
                annotations[GIVEN_UP] = given_up
            reason = rollout.step(same, annotations) or _changed(same, annotations[SPEC_HASH], scale.replicas)
            if reason:
                builder.update(manifest, verdict.workspace, reason)

    def _claim_template(self, workspace: Workspace, verdict: Verdict, builder: PlanBuilder) -> None:
        """Creates the ResourceClaimTemplate of the pods of one Workspace with its workload, and deletes others."""
        devices = devices_of(verdict) if workspace.spec.inference is not None else 0
        manifest = claim_template(workspace, verdict, self._environment, devices)
        name, there = manifest["metadata"]["name"] if manifest is not None else "", False
        for each in self._ownership.claim_templates_of(workspace):
            there = there or each.name == name
            if each.name != name:
                builder.delete(each, "the pods of the Workspace do not claim by it")
        if manifest is not None and not there and self._runs(workspace, builder):
            builder.create(manifest, verdict.workspace, "the pods of the Workspace claim their GPUs")

    def _runs(self, workspace: Workspace, builder: PlanBuilder) -> bool:
        """Whether the Workspace has a workload, or gets one."""
        created = any(change.key.kind in WORKLOADS for change in builder.creations)
        return created or bool(self._ownership.workloads_of(workspace))

    def _preset(self, workspace: Workspace) -> ModelPreset | None:
        """The preset that the Workspace serves, where its figures are known."""
        inference = workspace.spec.inference
        found = preset_of(inference, self._view.models) if inference is not None else None
        return found if isinstance(found, ModelPreset) else None

    def _service(self, workspace: Workspace, verdict: Verdict, builder: PlanBuilder) -> None:
        """Creates the Service of one Workspace with its workload, or updates or deletes it."""
        inference, name = workspace.spec.inference, service_name(workspace)
        same = None
        for service in self._ownership.services_of(workspace):
            if service.name == name:
                same = service
            else:
                builder.delete(service, "the Workspace declares no Service of this name")
        if inference is None or not name or not self._serves_services:
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
            if self._runs(workspace, builder):
                builder.create(manifest, verdict.workspace, "the Workspace serves a preset")
        elif not same.deleting and same.spec_hash != manifest["metadata"]["annotations"][SPEC_HASH]:
            builder.update(manifest, verdict.workspace, "the Service changed")

    def _scale(
        self, workspace: Workspace, verdict: Verdict, key: ObjectKey, same: Workload | None, nodes_there: int
    ) -> Scale:
        """The replicas to declare: an autoscaler's number is kept, and replicas that span nodes start whole."""
        wanted = workspace.replicas
        if (key.api_version.rpartition("/")[0], key.kind, key.namespace, key.name) in self._view.autoscaled:
            # While our field manager owns the number, leaving it out would reset it to 1.
            return Scale(wanted if same is None or same.sets_replicas else None, autoscaled=True)
        if key.kind != LEADER_WORKER_SET:
            return Scale(startable(workspace, verdict, same.replicas if same is not None else 0))
        if not self._settings.auto_provisioning:
            start = self._nodes.start(workspace)
            return Scale(start.replicas if start is not None else 0)
        running = same.replicas if same is not None else 0
        return Scale(min(wanted, max(running, nodes_there // (verdict.per_replica_node_count or 1))))


def _changed(same: Workload, digest: str, replicas: int | None) -> str:
    """Why a workload is updated; empty if it is as declared."""
    if same.spec_hash == digest:
        return ""
    return "the Workspace changed" if replicas in (None, same.replicas) else f"replicas {same.replicas} -> {replicas}"


def _requests_nodes(builder: PlanBuilder) -> bool:
    return any(each.key.kind in ("NodeClaim", "NodePool") for each in (*builder.creations, *builder.updates))


def delete_all(owner: WorkspaceRef, ownership: Ownership, builder: PlanBuilder) -> None:
    """Deletes everything of a Workspace that has no replicas and could have none."""
    objs: list[Owned] = [*ownership.workloads_of(owner), *ownership.services_of(owner)]
    objs += ownership.claim_templates_of(owner)
    objs += ownership.pools_of(owner)
    objs += [claim for claim in ownership.claims_of(owner) if NODEPOOL not in claim.labels]
    for obj in objs:
        builder.delete(obj, "the Workspace has no replicas")
