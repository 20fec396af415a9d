"""The status and the conditions of a Workspace."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from plimsoll.cluster.profiles import discovery_of
from plimsoll.cost import Prices
from plimsoll.model import Verdict
from plimsoll.model.api import ConditionType, Provisioning, Workspace, WorkspaceRef, WorkspaceStatus
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import condition_of, condition_text
from plimsoll.plan.owned import Attempts, Failed, Idle, alive, as_status, format_time, ownership_labels
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report.startups import last_startup
from plimsoll.text import counted, figure, shortlist


class ConditionReason(StrEnum):
    """The closed list of condition reasons; ResourceReady also has the reasons of verdicts."""

    READY = "Ready"
    NOT_NEEDED = "NotNeeded"
    REFUSED = "Refused"
    NODE_CLAIMS_PENDING = "NodeClaimsPending"
    NODE_CLAIM_NOT_LAUNCHED = "NodeClaimNotLaunched"
    NODE_CLAIM_NOT_REGISTERED = "NodeClaimNotRegistered"
    NODE_CLAIM_NOT_INITIALIZED = "NodeClaimNotInitialized"
    NODE_CLAIM_NOT_READY = "NodeClaimNotReady"
    NODE_CLAIM_LATE = Failed.LATE.value
    NODE_CLAIM_LOST = Failed.LOST.value
    INSUFFICIENT_CAPACITY = Failed.INSUFFICIENT_CAPACITY.value
    SPOT_INTERRUPTED = "SpotInterrupted"
    NODES_NOT_READY = "NodesNotReady"
    WORKLOAD_PENDING = "WorkloadPending"
    WORKLOAD_NOT_READY = "WorkloadNotReady"
    DELETING = "Deleting"


class Finding(NamedTuple):
    """One condition without its times."""

    ready: bool
    reason: str
    message: str


STEPS: Final = (
    ("Launched", ConditionReason.NODE_CLAIM_NOT_LAUNCHED),
    ("Registered", ConditionReason.NODE_CLAIM_NOT_REGISTERED),
    ("Initialized", ConditionReason.NODE_CLAIM_NOT_INITIALIZED),
    ("Ready", ConditionReason.NODE_CLAIM_NOT_READY),
)
"""The condition types that Karpenter sets on a NodeClaim, in order, with our reason while one is not True."""


def node_claims_finding(every: Sequence[NodeClaim], needed: int, attempts: Attempts, now: datetime) -> Finding:
    """The condition NodeClaimsReady, from every NodeClaim, their wanted number and the attempts so far. It names those
    that are being deleted, and what keeps them."""
    found = _of_claims(every, needed, attempts, now)
    stays = shortlist([f"NodeClaim {claim.name} is {claim.stays}" for claim in every if claim.deleting])
    return found._replace(message=f"{found.message}; {stays}") if stays else found


def _of_claims(every: Sequence[NodeClaim], needed: int, attempts: Attempts, now: datetime) -> Finding:
    claims = alive(every)
    if not needed:
        return Finding(True, ConditionReason.NOT_NEEDED, "no NodeClaim is needed")
    ready = sum(claim.ready and claim.name not in attempts.late for claim in claims)
    if ready >= needed:
        return Finding(True, ConditionReason.READY, f"{counted(ready, 'NodeClaim')} ready of {needed} needed")
    staying = [claim for claim in claims if claim.name not in attempts.late]
    if attempts.overdue:
        text = "; ".join(attempts.overdue[:3])
        return Finding(
            False,
            ConditionReason.NODE_CLAIM_LATE,
            f"{ready} of {counted(needed, 'NodeClaim')} ready; {text}; {_next_try(attempts, now)}",
        )
    interrupted = sorted(claim.node_name or claim.name for claim in every if claim.interrupted)
    # A late NodeClaim that Plimsoll deletes looks like an interrupted one.
    if interrupted and attempts.record.reason != Failed.LATE:
        return Finding(
            False,
            ConditionReason.SPOT_INTERRUPTED,
            f"{ready} of {counted(needed, 'NodeClaim')} ready; spot nodes are interrupted: {shortlist(interrupted)}; "
            f"{counted(len(staying), 'NodeClaim')} serving or requested instead",
        )
    if len(staying) < needed:
        return _missing(len(staying), ready, needed, attempts, now)
    waiting = sorted((claim for claim in staying if not claim.ready), key=lambda claim: claim.name)
    step, reason, stuck = next(
        (step, reason, stuck)
        for step, reason in STEPS
        if (stuck := [claim for claim in waiting if not claim.passed(step)])
    )
    names = shortlist([claim.name for claim in stuck])
    before = f"; try {attempts.record.failures + 1}: {attempts.record.message}" if attempts.record.failures else ""
    return Finding(
        False,
        reason,
        f"{ready} of {counted(needed, 'NodeClaim')} ready; not {step}: {names}{_why(stuck, step)}{before}",
    )


def _missing(there: int, ready: int, needed: int, attempts: Attempts, now: datetime) -> Finding:
    record = attempts.record
    if not record.failures or attempts.next_try is None:
        return Finding(False, ConditionReason.NODE_CLAIMS_PENDING, f"{there} of {counted(needed, 'NodeClaim')} exist")
    text = f"{ready} of {counted(needed, 'NodeClaim')} ready; {record.message}; {_next_try(attempts, now)}"
    return Finding(False, record.reason, text)


def _next_try(attempts: Attempts, now: datetime) -> str:
    number = attempts.record.failures + 1
    if attempts.next_try is None or now >= attempts.next_try:
        return f"try {number} is due"
    return f"try {number} at {format_time(attempts.next_try)}"


def _why(claims: Sequence[NodeClaim], step: str) -> str:
    """Karpenter's message on the first NodeClaim that has one."""
    for claim in claims:
        if text := condition_text(claim.condition(step)):
            return f" ({claim.name}: {text})"
    return ""


MESSAGE_LENGTH: Final = 2000
"""Maximum characters of a condition's message, which may quote messages of other controllers."""

NODES_CONTRADICT: Final = "NodesContradict"
"""Condition of a Workspace on whose nodes labels and resources contradict each other; absent otherwise. Its reason is a
DiscrepancyReason."""


def status_of(
    workspace: Workspace,
    verdict: Verdict,
    holdings: WorkspaceNodes,
    now: datetime,
    previous: WorkspaceStatus | None = None,
) -> dict[str, Any]:
    """The wanted status of the Workspace. Unchanged conditions keep the times of `previous`.

    Without `previous`, the status of the Workspace object is used.
    """
    previous = previous if previous is not None else workspace.status
    workload = _workload(workspace, verdict, holdings)
    if not verdict.accepted:
        scale = scale_status(workspace.ref, holdings) if workspace.spec.inference is not None else {}
        return refused_status(verdict, workspace.generation, now, previous, workload=workload, scale=scale)
    pending = _room(workspace, holdings) or "the workload is created when its nodes are ready"
    workload = workload or Finding(False, ConditionReason.WORKLOAD_PENDING, pending)
    target = verdict.target_node_count or 0
    if holdings.auto_provisioning:
        every = holdings.ownership.claims_of(workspace)
        existing = holdings.existing(workspace)
        names = [*existing, *(claim.node_name for claim in alive(every) if claim.node_name)]
        counting = holdings.staying_claims(workspace, verdict)
        attempts = holdings.attempts(workspace, verdict, previous.provisioning, now)
        idle = holdings.idle(workspace, verdict, previous.provisioning, now)
        since = format_time(idle.since) if idle is not None else ""
        provisioning = attempts.record.model_copy(update={"idle_since": since})
        node_claims = node_claims_finding(counting, max(0, target - len(existing)), attempts, now)
        if idle is not None:
            node_claims = node_claims._replace(message=f"{node_claims.message}; {idle_text(idle, every, holdings)}")
        workers = holdings.ready_nodes(names)
    else:
        provisioning = Provisioning()
        names = list(verdict.allocated_nodes)
        node_claims = Finding(True, ConditionReason.NOT_NEEDED, "the Workspace uses existing (BYO) nodes")
        workers = list(verdict.allocated_nodes)
    nodes = _nodes(names, holdings.ready_nodes(names), target)
    if not nodes.ready and not holdings.auto_provisioning:
        nodes = nodes._replace(message="; ".join((nodes.message, *verdict.warnings)))
    failing = next((finding for finding in (node_claims, nodes) if not finding.ready), None)
    if verdict.deleting:
        failing = Finding(False, ConditionReason.DELETING, verdict.message)
    return _status(
        {
            ConditionType.RESOURCE_READY: failing
            or Finding(True, verdict.reason.value, "; ".join((verdict.message, *verdict.warnings))),
            ConditionType.NODE_CLAIMS_READY: node_claims,
            ConditionType.NODES_READY: nodes,
            ConditionType.WORKLOAD_READY: workload,
        },
        workspace.generation,
        now,
        previous,
        _contradiction(names, holdings),
        perReplicaNodeCount=verdict.per_replica_node_count,
        targetNodeCount=verdict.target_node_count,
        contextLength=verdict.serving.context_length if verdict.serving is not None else None,
        serving=str(verdict.serving) if verdict.serving is not None else None,
        workerNodes=workers,
        provisioning=as_status(provisioning),
        startup=last_startup(holdings.holding(workspace), previous.startup).as_status(),
        **(scale_status(workspace.ref, holdings) if workspace.spec.inference is not None else {}),
    )


def idle_text(idle: Idle, claims: Iterable[NodeClaim], holdings: WorkspaceNodes) -> str:
    """Until when nodes stay that a Workspace without replicas has, and what they cost."""
    prices = Prices.of(holdings.observed)
    found = [prices.cheapest(each.instance_types) for each in alive(claims)]
    known = [each for each in found if each is not None]
    cost = f"{figure(sum(known))} an hour" if known else "price unknown"
    more = f", {len(found) - len(known)} without a price" if known and len(known) < len(found) else ""
    stay = f"{counted(len(found), 'node')} for replicas to come until {format_time(idle.until)}"
    return f"idleSeconds keeps {stay} ({cost}{more})"


def scale_status(workspace: WorkspaceRef, holdings: WorkspaceNodes) -> dict[str, Any]:
    """The fields that the scale subresource reads: the replicas that exist, and how their pods are found."""
    workloads = [workload for workload in holdings.ownership.workloads_of(workspace) if not workload.deleting]
    selector = ",".join(f"{key}={value}" for key, value in ownership_labels(workspace).items())
    return {"replicas": sum(workload.replicas for workload in workloads), "selector": selector}


def refused_status(
    verdict: Verdict,
    generation: int | None,
    now: datetime,
    previous: WorkspaceStatus,
    *,
    workload: Finding | None = None,
    scale: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The status of a refused Workspace, or of one with invalid fields; a workload that still runs is reported."""
    refused = Finding(
        False,
        ConditionReason.REFUSED,
        f"the Workspace is refused: {verdict.reason.value}, see the condition ResourceReady",
    )
    return _status(
        {
            ConditionType.RESOURCE_READY: Finding(False, verdict.reason.value, verdict.message),
            ConditionType.NODE_CLAIMS_READY: refused,
            ConditionType.NODES_READY: refused,
            ConditionType.WORKLOAD_READY: workload or refused,
        },
        generation,
        now,
        previous,
        # To shrink it, the nodes of a replica must still be known.
        perReplicaNodeCount=previous.per_replica_node_count,
        provisioning=as_status(previous.provisioning),
        startup=previous.startup.as_status(),
        **(scale or {}),
    )


def environment_status(holdings: WorkspaceNodes, queues_in_use: Collection[str] = ()) -> dict[str, Any]:
    """What admission policies read to deny the deletion of an Environment that still has capacity, and of a queue that
    is in use."""
    ownership = holdings.ownership
    return {
        "nodeClaims": len(ownership.claims),
        "nodePools": len(ownership.pools),
        "workloads": len(ownership.workloads),
        **in_use(queues_in_use),
    }


def in_use(queues: Collection[str]) -> dict[str, Any]:
    return {"queuesInUse": sorted(queues)} if queues else {}


def _contradiction(names: Iterable[str], holdings: WorkspaceNodes) -> Finding | None:
    """What the labels and resources of these nodes contradict each other in; None if nothing."""
    nodes_by_finding: dict[tuple[str, str], list[str]] = {}
    for name in sorted(set(names) & holdings.nodes.keys()):
        for finding in discovery_of(holdings.nodes[name]).findings:
            nodes_by_finding.setdefault((finding.reason.value, finding.message), []).append(name)
    if not nodes_by_finding:
        return None
    reason, _ = min(nodes_by_finding)
    return Finding(
        True, reason, "; ".join(f"{shortlist(on)}: {text}" for (_, text), on in sorted(nodes_by_finding.items()))
    )


def differs(previous: WorkspaceStatus, status: Mapping[str, Any]) -> bool:
    """Whether a status differs from that of the cluster; condition types of other controllers do not count."""
    kinds = (*ConditionType, NODES_CONTRADICT)
    ours = [condition for kind in kinds if (condition := condition_of(previous.conditions, kind))]
    return previous.model_copy(update={"conditions": tuple(ours)}) != WorkspaceStatus.model_validate(status)


def _status(
    findings: Mapping[ConditionType, Finding],
    generation: int | None,
    now: datetime,
    previous: WorkspaceStatus,
    contradiction: Finding | None = None,
    **counts: Any,
) -> dict[str, Any]:
    every = [(kind.value, findings[kind]) for kind in ConditionType]
    every += [(NODES_CONTRADICT, contradiction)] if contradiction is not None else []
    conditions = []
    for kind, finding in every:
        state = "True" if finding.ready else "False"
        before = condition_of(previous.conditions, kind)
        since = before.last_transition_time if before is not None and before.status == state else ""
        condition: dict[str, Any] = {
            "type": kind,
            "status": state,
            "reason": str(finding.reason),
            "message": finding.message[:MESSAGE_LENGTH],
            "lastTransitionTime": since or format_time(now),
        }
        if generation is not None:
            condition["observedGeneration"] = generation
        conditions.append(condition)
    status = {"observedGeneration": generation, **counts, "conditions": conditions}
    return {key: value for key, value in status.items() if value is not None}


def _nodes(names: Sequence[str], ready: Sequence[str], target: int) -> Finding:
    if len(ready) >= target:
        return Finding(True, ConditionReason.READY, f"{counted(len(ready), 'node')} ready of {target} needed")
    waiting = sorted(set(names) - set(ready))
    behind = f"; not ready: {shortlist(waiting)}" if waiting else ""
    return Finding(False, ConditionReason.NODES_NOT_READY, f"{len(ready)} of {counted(target, 'node')} ready{behind}")


def _room(workspace: Workspace, holdings: WorkspaceNodes) -> str:
    """Why a replica that spans nodes is not started; empty if all are."""
    start = holdings.start(workspace)
    if start is None or start.replicas >= workspace.replicas:
        return ""
    return (
        f"{counted(workspace.replicas - start.replicas, 'replica')} of {workspace.replicas} not started: one requires "
        f"{start.per_replica} nodes at once, {start.free} of its nodes are free, and other pods may need them"
    )


def _workload(workspace: Workspace, verdict: Verdict, holdings: WorkspaceNodes) -> Finding | None:
    """None if a workload is declared and does not exist yet."""
    if workspace.spec.inference is None:
        return Finding(True, ConditionReason.NOT_NEEDED, "the Workspace declares no workload")
    workloads = [workload for workload in holdings.ownership.workloads_of(workspace) if not workload.deleting]
    if not workloads:
        return None
    groups = (verdict.per_replica_node_count or 1) > 1
    text = shortlist(
        [
            f"{workload.kind} {workload.name}: {workload.ready_replicas} of "
            f"{counted(workload.replicas, 'replica' if groups else 'pod')} ready"
            for workload in workloads
        ]
    )
    waiting = _room(workspace, holdings)
    if not groups and verdict.startable_replicas is not None:
        started = sum(workload.replicas for workload in workloads)
        if started < workspace.replicas:
            late = counted(workspace.replicas - started, "replica")
            waiting = f"{late} of {workspace.replicas} not started: every usable node is assigned to another Workspace"
    if waiting:
        return Finding(False, ConditionReason.WORKLOAD_PENDING, f"{text}; {waiting}")
    if any(workload.ready_replicas < workload.replicas for workload in workloads):
        problems = shortlist(holdings.holding(workspace).problems)
        return Finding(False, ConditionReason.WORKLOAD_NOT_READY, f"{text}; {problems}" if problems else text)
    return Finding(True, ConditionReason.READY, text)
