"""Planning: the whole delta of one round, from a snapshot and the verdicts on its Workspaces."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from plimsoll.model.labels import SPEC_HASH
from plimsoll.model.node_claim import NodeClaim
from plimsoll.model.plan import Creation, Deletion, ObjectKey, Plan, Update
from plimsoll.model.snapshot import Snapshot
from plimsoll.model.verdict import Reason, Verdict
from plimsoll.model.workload import Workload
from plimsoll.model.workspace import Workspace
from plimsoll.plan.budget import Budget
from plimsoll.plan.catalog import Catalog
from plimsoll.plan.declared import claim_names
from plimsoll.plan.node_claim_manifest import node_claim_manifest
from plimsoll.plan.node_index import NodeIndex, gpu_devices
from plimsoll.plan.offered_types import OfferedType, OfferedTypes
from plimsoll.plan.ownership import Ownership, alive, by_age, owner_of
from plimsoll.plan.scaling import autoscaled, scaled
from plimsoll.plan.shortlist import counted, shortlist
from plimsoll.plan.supply import brought_supply
from plimsoll.plan.whole_replicas import startable, whole_replicas
from plimsoll.plan.workload import LEADER_WORKER_SET, Scale, workload_kind, workload_manifest

REGISTRATION: Final = timedelta(minutes=15)
"""Karpenter's own deadline until a node registers; it has none until the node's GPU appears."""


def plan(snapshot: Snapshot, verdicts: Sequence[Verdict], now: datetime) -> Plan:
    """The delta that takes the snapshot to what its accepted Workspaces want; `verdicts` are those of `validate`.

    `now`, with a time zone, tells claims that have not become Ready in time. What a refused Workspace has is left as it
    is. A plan whose operations have been done is followed by an empty one, unless a limit cut it short.
    """
    return _Round(scaled(snapshot), verdicts, now).plan()


class _Round:
    def __init__(self, snapshot: Snapshot, verdicts: Sequence[Verdict], now: datetime) -> None:
        self._snapshot = snapshot
        self._environment = snapshot.environment
        self._now = now
        self._verdicts = verdicts
        self._index = NodeIndex(snapshot.nodes)
        self._ownership = Ownership(snapshot)
        catalog = Catalog.builtin()
        self._budget = Budget(snapshot.environment.spec, self._ownership.claims, catalog)
        self._used_names = {claim.name for claim in snapshot.node_claims}
        judged = {(verdict.workspace.namespace, verdict.workspace.name): verdict for verdict in verdicts}
        self._accepted = [
            (workspace, verdict)
            for workspace in sorted(snapshot.workspaces, key=by_age)
            if not workspace.deleting and (verdict := judged.get(workspace.key)) is not None and verdict.accepted
        ]
        self._creations: list[Creation] = []
        self._updates: list[Update] = []
        self._deletions: list[Deletion] = []
        self._warnings: list[str] = list(snapshot.warnings)
        self._autoscaled = autoscaled(snapshot)
        if self._environment.spec.auto_provisioning:
            self._types = OfferedTypes(catalog, snapshot.node_pools, self._index)
            targets = {workspace.key: verdict.target_node_count or 0 for workspace, verdict in self._accepted}
            self._brought = brought_supply(snapshot, self._index, targets)
            self._nodes_by_provider_id = {node.provider_id: node for node in snapshot.nodes if node.provider_id}
        else:
            self._starts = whole_replicas(snapshot, verdicts, self._index, self._ownership)

    def plan(self) -> Plan:
        self._remove_orphans()
        for workspace, verdict in self._accepted:
            self._warnings += [f"Workspace {workspace.ref}: {warning}" for warning in verdict.warnings]
            if self._environment.spec.auto_provisioning:
                offered = self._types.find(workspace.spec.resource.instance_type or "")
                assert offered is not None, "validation accepts known instance types only"
                self._claims(workspace, verdict, offered)
                self._workload(workspace, verdict, offered.spellings, self._nodes_there(workspace, offered))
            else:
                self._leftover_claims(workspace)
                self._workload(workspace, verdict, (), len(verdict.node_names))
        self._warn_of_late_claims()
        deletions = self._capped(sorted(self._deletions, key=_deletion_order))
        return Plan(
            verdicts=tuple(self._verdicts),
            creations=tuple(sorted(self._creations, key=lambda each: _order(each.key))),
            updates=tuple(sorted(self._updates, key=lambda each: _order(each.key))),
            deletions=tuple(sorted(deletions, key=lambda each: _order(each.key))),
            warnings=tuple(self._warnings),
        )

    def _remove_orphans(self) -> None:
        reason = "its Workspace is gone, or is being deleted"
        for workload in self._ownership.orphaned_workloads:
            self._delete_workload(workload, reason)
        for claim in alive(self._ownership.orphaned_claims):
            self._delete_claim(claim, reason)

    def _claims(self, workspace: Workspace, verdict: Verdict, offered: OfferedType) -> None:
        """Creates the missing and deletes the superfluous NodeClaims of one Workspace."""
        target = verdict.target_node_count or 0
        brought = len(self._brought.get(workspace.key, ()))
        claims = alive(self._ownership.claims_of(workspace))
        missing = target - brought - len(claims)
        for claim in victims(claims, max(-missing, 0)):
            state = "not Ready" if not claim.ready else "the newest"
            self._delete_claim(claim, f"superfluous: {target} nodes wanted, {len(claims) + brought} there; {state}")
        access = self._environment.spec.access_of(workspace.namespace)
        node_class = self._types.node_class_ref(offered, self._environment.spec, access)
        assert node_class is not None, "validation accepts types with a node class only"
        for made, name in enumerate(islice(claim_names(workspace, self._used_names), max(missing, 0))):
            over = self._budget.short(1, offered.claimable or 0)
            if over:
                self._warnings.append(
                    f"Workspace {workspace.ref}: {Reason.LIMIT_EXCEEDED.value}: {made} of {missing} missing nodes are "
                    f"created: {over}"
                )
                return
            self._budget.take(1, offered.claimable or 0)
            self._used_names.add(name)
            manifest = node_claim_manifest(workspace, self._environment, offered, node_class, name)
            reason = f"{target} nodes wanted, {len(claims) + brought} there"
            self._creations.append(Creation(manifest=manifest, owner=verdict.workspace, reason=reason))

    def _leftover_claims(self, workspace: Workspace) -> None:
        claims = alive(self._ownership.claims_of(workspace))
        if claims:
            self._warnings.append(
                f"Workspace {workspace.ref} has {counted(len(claims), 'NodeClaim')} from when auto-provisioning was "
                f"enabled, and they are left alone: {shortlist(sorted(claim.name for claim in claims))}"
            )

    def _nodes_there(self, workspace: Workspace, offered: OfferedType) -> int:
        """Nodes of the Workspace that are usable and show their GPUs."""
        there = len(self._brought.get(workspace.key, ()))
        for claim in alive(self._ownership.claims_of(workspace)):
            node = self._index.by_name.get(claim.node_name) or self._nodes_by_provider_id.get(claim.provider_id)
            if node is None or node.ready is not True or not node.usable:
                continue
            shown = gpu_devices(node, self._environment.spec.gpu_resource)
            there += bool(shown) or offered.devices is None
        return there

    def _workload(
        self, workspace: Workspace, verdict: Verdict, instance_types: tuple[str, ...], nodes_there: int
    ) -> None:
        """Creates, changes or removes the workload of one Workspace, which has so many nodes."""
        existing = self._ownership.workloads_of(workspace)
        inference = workspace.spec.inference
        if inference is None:
            for workload in existing:
                self._delete_workload(workload, "the Workspace declares no inference")
            return
        version, kind = workload_kind(inference, verdict.per_replica_node_count or 1)
        key = ObjectKey(api_version=version, kind=kind, namespace=workspace.namespace, name=workspace.name)
        same = next((workload for workload in existing if _key(workload) == key), None)
        scale = self._scale(workspace, verdict, key, same, nodes_there)
        manifest = workload_manifest(workspace, inference, verdict, self._environment, instance_types, scale=scale)
        others = [workload for workload in existing if workload is not same]
        for workload in others:
            self._delete_workload(workload, f"a {key.kind} {key.name} takes its place")
        if same is None:
            # Two workloads would want the same nodes: the old one goes first.
            enough = verdict.target_node_count or 0 if self._environment.spec.auto_provisioning else 1
            if nodes_there >= enough and not others and scale.replicas:
                reason = "the nodes of the Workspace are there"
                self._creations.append(Creation(manifest=manifest, owner=verdict.workspace, reason=reason))
        elif not same.deleting and same.spec_hash != manifest["metadata"]["annotations"][SPEC_HASH]:
            wanted = scale.replicas
            changed = wanted is not None and wanted != same.replicas
            reason = f"replicas {same.replicas} -> {wanted}" if changed else "the Workspace changed"
            self._updates.append(Update(manifest=manifest, owner=verdict.workspace, reason=reason))

    def _scale(
        self, workspace: Workspace, verdict: Verdict, key: ObjectKey, same: Workload | None, nodes_there: int
    ) -> Scale:
        """The replicas to declare: an autoscaler's are left to it, and those that span nodes start whole."""
        wanted = workspace.replicas
        if (key.api_version.rpartition("/")[0], key.kind, key.namespace, key.name) in self._autoscaled:
            # As long as the number is still ours, to leave it out would set it to 1.
            return Scale(wanted if same is None or same.sets_replicas else None, autoscaled=True)
        if key.kind != LEADER_WORKER_SET:
            return Scale(startable(workspace, verdict, same.replicas if same is not None else 0))
        if not self._environment.spec.auto_provisioning:
            start = self._starts.get(workspace.key)
            return Scale(start.replicas if start is not None else 0)
        running = same.replicas if same is not None else 0
        return Scale(min(wanted, max(running, nodes_there // (verdict.per_replica_node_count or 1))))

    def _delete_claim(self, claim: NodeClaim, reason: str) -> None:
        key = ObjectKey(api_version="karpenter.sh/v1", kind="NodeClaim", namespace="", name=claim.name)
        self._deletions.append(Deletion(key=key, uid=claim.uid, owner=owner_of(claim), reason=reason))

    def _delete_workload(self, workload: Workload, reason: str) -> None:
        if not workload.deleting:
            self._deletions.append(
                Deletion(key=_key(workload), uid=workload.uid, owner=owner_of(workload), reason=reason)
            )

    def _capped(self, deletions: list[Deletion]) -> list[Deletion]:
        cap = self._environment.spec.limits.deletions_per_tick
        if len(deletions) > cap:
            self._warnings.append(
                f"{len(deletions)} deletions are due and limits.deletions_per_tick of the Environment is {cap}: the "
                "rest waits for the next round"
            )
        return deletions[:cap]

    def _warn_of_late_claims(self) -> None:
        late = sorted(claim.name for claim in self._ownership.claims if self._late(claim))
        if late:
            self._warnings.append(
                f"not Ready {REGISTRATION // timedelta(minutes=1)} minutes after their creation: NodeClaims "
                f"{shortlist(late)}; see their conditions"
            )

    def _late(self, claim: NodeClaim) -> bool:
        if claim.ready or claim.deleting:
            return False
        try:
            return self._now - datetime.fromisoformat(claim.creation_timestamp) > REGISTRATION
        except (ValueError, TypeError):
            return False


def victims(claims: Iterable[NodeClaim], number: int) -> list[NodeClaim]:
    """Which of the claims go first: those that are not Ready, then the newest, then by name."""
    by_name = sorted(claims, key=lambda claim: claim.name)
    newest = sorted(by_name, key=lambda claim: claim.creation_timestamp, reverse=True)
    return sorted(newest, key=lambda claim: claim.ready)[:number]


def _key(workload: Workload) -> ObjectKey:
    return ObjectKey(
        api_version=workload.api_version, kind=workload.kind, namespace=workload.namespace, name=workload.name
    )


def _order(key: ObjectKey) -> tuple[str, str, str, str]:
    return (key.kind, key.namespace, key.name, key.api_version)


def _deletion_order(deletion: Deletion) -> tuple[bool, tuple[str, str, str, str]]:
    """Workloads before the nodes that they run on."""
    return (deletion.key.kind == "NodeClaim", _order(deletion.key))
