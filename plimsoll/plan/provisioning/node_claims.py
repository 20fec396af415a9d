"""The provisioner `nodeclaim`: one Karpenter NodeClaim per node, created and deleted by name."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from itertools import islice

from plimsoll.labels import INSTANCE_TYPE, SPEC_HASH
from plimsoll.model import Reason
from plimsoll.model.api import Workspace
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import ClaimProgress, PlanBuilder, alive, claim_names, parse_time
from plimsoll.plan.provisioning.manifest import node_claim_manifest, set_replicas
from plimsoll.plan.provisioning.provisioner import NodeTarget, ProvisionerContext
from plimsoll.plan.workspaces import split_by_alternative
from plimsoll.text import counted


class NodeClaimProvisioner:
    """Creates and deletes one NodeClaim for each node."""

    def __init__(
        self, context: ProvisionerContext, progress: ClaimProgress, names: Iterable[str], now: datetime
    ) -> None:
        """`names` are those of every NodeClaim of the cluster."""
        self._context = context
        self._progress = progress
        self._used = set(names)
        self._now = now

    def provide(self, target: NodeTarget, builder: PlanBuilder) -> None:
        """Replaces late NodeClaims, deletes surplus ones, and creates missing ones once the next attempt is due.

        Nodes of a static NodePool, from before the provisioner changed, count; surplus ones are removed.
        """
        attempts, staying = self._context.replace_late(target, builder)
        if self._context.give_up_others(target, staying, builder):
            return
        pooled = sum(
            pool.replicas or 0 for pool in self._context.ownership.pools_of(target.workspace) if not pool.deleting
        )
        existing = len(staying) + pooled
        left = len(self._context.left_by(target, staying))
        stalled = self._context.ownership.rollout_stalled(target.workspace)
        if not left or stalled:
            self._remove(target, staying, pooled, builder)
        # Nodes that stay without replicas are not replaced.
        missing = target.nodes - existing if target.verdict.target_node_count else 0
        if left and target.verdict.target_node_count and not stalled:
            missing = target.verdict.target_node_count - (existing - left)
        if missing <= 0 or (attempts.next_try is not None and self._now < attempts.next_try):
            return
        room = self._context.room(target, missing, builder)
        reason = f"{counted(target.nodes, 'node')} needed, {existing} exist"
        if attempts.record.failures:
            reason += f"; attempt {attempts.record.failures + 1}"
        for name in islice(claim_names(target.workspace, self._used, attempts.record.tries), room):
            self._used.add(name)
            builder.create(self._manifest(target, name), target.verdict.workspace, reason)

    def move_back(self, target: NodeTarget, builder: PlanBuilder) -> None:
        """Requests all nodes of the alternative to which replicas move back from another one, or none: if one of them
        fails, or a limit allows fewer, those that are there go, until the next time."""
        context, workspace, to = self._context, target.workspace, target.verdict.alternative
        running, requested = split_by_alternative(context.ownership.claims_of(workspace), to, context.types)
        before, there = workspace.status.provisioning.move_back, alive(requested)
        attempts = context.tracker.of_move(before, requested)
        due = self._due(workspace, running)
        builder.own = False
        builder.deadlines += [each for each in (due, attempts.next_deadline) if each is not None and each > self._now]
        missing = target.nodes - len(there)
        waits = not target.nodes or due is None or self._now < due or attempts.record.tries > before.tries
        over = "" if waits or missing <= 0 else context.over(target, missing)
        if over:
            builder.warn(workspace.ref, f"{Reason.LIMIT_EXCEEDED.value}: its replicas do not move to {to}: {over}")
        if waits or over:
            for claim in there:
                builder.delete(claim, attempts.late.get(claim.name) or f"replicas do not move to {to} now")
            return
        names = claim_names(workspace, self._used, before.tries, of="move back")
        for name in islice(names, context.room(target, missing, builder)):
            self._used.add(name)
            reason = f"{counted(target.nodes, 'node')} needed for all replicas to move to {to}, {len(there)} exist"
            builder.create(self._manifest(target, name), target.verdict.workspace, reason)

    def _due(self, workspace: Workspace, running: Iterable[NodeClaim]) -> datetime | None:
        """When nodes to which its replicas move back are requested: so long after the newest of the nodes on which they
        run was, and after such a request failed last. None where the cluster does not say when."""
        seconds = workspace.spec.resource.move_back_seconds
        texts = [workspace.status.provisioning.move_back.last_failure]
        texts += [each.creation_timestamp for each in alive(running)]
        times = [time for text in texts if (time := parse_time(text)) is not None]
        return max(times) + timedelta(seconds=seconds) if times and seconds is not None else None

    def _manifest(self, target: NodeTarget, name: str) -> dict[str, object]:
        return node_claim_manifest(target, self._context.environment, name)

    def _remove(self, target: NodeTarget, claims: list[NodeClaim], pooled: int, builder: PlanBuilder) -> None:
        superfluous, deleted = len(claims) + pooled - target.nodes, list[NodeClaim]()
        if superfluous > 0 and claims:
            wanted = self._manifest(target, "any")["metadata"]
            assert isinstance(wanted, dict)
            outdated = outdated_claims(claims, wanted["annotations"][SPEC_HASH], target.offered.name)
            busy = self._context.places.nodes_of(target.workspace.ref, target.workspace.replicas)
            removable = claims
            if target.workspace.surge:
                # Pods say themselves that they left a node: a Deployment may say so before their Ready, or even their
                # node, is seen.
                stalled = self._context.ownership.rollout_stalled(target.workspace)
                kept = self._context.places.serving(target.workspace.ref) if stalled else busy
                unknown = not stalled and self._context.places.waiting(target.workspace.ref)
                removable = [] if unknown else [claim for claim in claims if claim.node_name not in kept]
                outdated = frozenset()
            order = DeletionOrder(self._progress, outdated, busy)
            why = f"surplus: {counted(target.nodes, 'node')} needed, {len(claims) + pooled} exist"
            for claim in (deleted := order.first(removable, superfluous)):
                builder.delete(claim, f"{why}; {order.state(claim)}")
        left = max(0, min(pooled, target.nodes - (len(claims) - len(deleted))))
        for pool in self._context.ownership.pools_of(target.workspace):
            if not pool.deleting and (not left or pool.replicas != left):
                set_replicas(target, self._context.environment, pool, left, builder)


class DeletionOrder:
    """Order of deletion: failed or not Ready, then outdated, then newest, then by name.

    A Ready NodeClaim is deleted only if more are Ready than needed. Among those that are not outdated, nodes without a
    remaining pod of the Workspace go first, so that pods that an autoscaler or a StatefulSet keeps are not moved.
    """

    def __init__(
        self,
        progress: ClaimProgress,
        outdated: Collection[str],
        busy: Collection[str] = (),
        serving: Collection[str] = (),
    ) -> None:
        """`outdated` are NodeClaim names, `busy` the names of nodes with remaining pods, `serving` of those with Ready
        ones, which go last."""
        self._progress = progress
        self._outdated = outdated
        self._busy = busy
        self._serving = serving

    def first(self, claims: Iterable[NodeClaim], number: int) -> list[NodeClaim]:
        by_name = sorted(claims, key=lambda claim: claim.name)
        newest = sorted(by_name, key=lambda claim: claim.creation_timestamp, reverse=True)
        return sorted(newest, key=self._rank)[:number]

    def state(self, claim: NodeClaim) -> str:
        """Why it is among the first."""
        return ("failed", "not Ready", "outdated", "without a pod", "the newest", "the newest")[self._rank(claim)]

    def _rank(self, claim: NodeClaim) -> int:
        if not self._progress.ready(claim):
            return 0 if has_failed(claim) else 1
        if claim.name in self._outdated:
            return 2
        return 4 + (claim.node_name in self._serving) if claim.node_name in self._busy else 3


def has_failed(claim: NodeClaim) -> bool:
    """Whether Karpenter reports that a step failed, rather than that it is pending."""
    return any(
        condition.status == "False"
        for condition in claim.conditions
        if condition.type in ("Launched", "Registered", "Initialized")
    )


def outdated_claims(claims: Iterable[NodeClaim], spec_hash: str, instance_type: str) -> frozenset[str]:
    """Names of NodeClaims that differ from what would be created now.

    By the hash of the declared spec, else by the instance type; by Karpenter's condition Drifted; or by an image other
    than that of the newest NodeClaim.
    """
    claims = list(claims)
    with_image = [claim for claim in claims if claim.image_id]
    newest = max(with_image, key=lambda claim: (claim.creation_timestamp, claim.name), default=None)
    return frozenset(
        claim.name
        for claim in claims
        if _declared_otherwise(claim, spec_hash, instance_type)
        or claim.passed("Drifted")
        or (newest is not None and claim.image_id and claim.image_id != newest.image_id)
    )


def _declared_otherwise(claim: NodeClaim, spec_hash: str, instance_type: str) -> bool:
    declared = claim.annotations.get(SPEC_HASH)
    if declared is not None:
        return declared != spec_hash
    named = {name.casefold() for name in (*claim.instance_types, claim.labels.get(INSTANCE_TYPE, "")) if name}
    return bool(named) and instance_type.casefold() not in named
