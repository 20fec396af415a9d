"""The status of a GPUDemand: phase, figures, requests, and why capacity is missing."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from plimsoll.model import ObjectKey
from plimsoll.model.api import (
    MAX_LISTED,
    MAX_REASONS,
    ClaimStage,
    DemandClaim,
    DemandPhase,
    DemandPod,
    DemandProvisioner,
    DemandReport,
    DemandSettings,
    GPUDemandStatus,
)
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.demand import Demand
from plimsoll.plan.owned import format_time, key_of
from plimsoll.plan.requests.capacity_request import CapacityRequest
from plimsoll.plan.requests.claims import AssignedClaim
from plimsoll.plan.requests.pod_notes import pod_notes
from plimsoll.plan.requests.record import FailureRecord, RequestFailure
from plimsoll.text import counted


def figures(demand: Demand) -> GPUDemandStatus:
    """The figures of a status. Phase, objects, deadline and reasons are added by `report`."""
    pods = sorted({**demand.pods, **demand.whole_gpu_pods}.items())
    return GPUDemandStatus(
        pod_count=len(pods),
        pods=tuple(DemandPod(uid=uid, share=str(each.share)) for uid, each in pods[:MAX_LISTED]),
        free_pods=sum(map(len, demand.on_nodes.values())),
        requested_pods=sum(map(len, demand.on_requested.values())) + len(demand.awaiting),
        new_pods=len(demand.on_new),
        grace_pods=len(demand.in_grace),
        refused_pods=len(demand.refused),
        gpus=-(-demand.gpu_milli // GPU_MILLI),
        gpu_milli=demand.gpu_milli,
        least_gpus=demand.least_gpus,
    )


FAILED_LISTED = 50
"""Bounds the size of a status, like MAX_LISTED."""


@dataclass(frozen=True)
class DemandState:
    """The state of one demand after a round."""

    demand: Demand
    kept: tuple[CapacityRequest, ...]
    created: tuple[ObjectKey, ...]
    """Objects that this round creates for it."""
    record: FailureRecord
    paused: datetime | None
    """Until when no capacity is requested, after too many failures."""
    failing: tuple[RequestFailure, ...]
    claims: tuple[AssignedClaim, ...]

    @property
    def awaited(self) -> bool:
        waits = bool(self.demand.on_requested or self.demand.awaiting)
        return bool(self.created) or waits or any(each.outstanding for each in self.kept)

    @property
    def unmet(self) -> bool:
        """Whether pods are pending for which no capacity is requested."""
        return bool(self.demand.refused or (self.demand.on_new and not self.created))


def report(
    state: DemandState, previous: GPUDemandStatus | None, settings: DemandSettings, now: datetime
) -> DemandReport:
    """The status of the GPUDemand once the Plan is applied."""
    demand = state.demand
    phase = _phase(state)
    since = previous.since if previous is not None and previous.phase is phase and previous.since else format_time(now)
    objects = [key.of_demand for key in (*(key_of(each.obj) for each in state.kept), *state.created)]
    record = state.record
    status = figures(demand).model_copy(
        update={
            "phase": phase,
            "since": since,
            "object_count": len(objects),
            "objects": tuple(objects[:MAX_LISTED]),
            "deadline": _deadline(state, settings, now),
            "reasons": tuple(dict.fromkeys(_reasons(state, settings)))[:MAX_REASONS],
            "node_claims": _claims(state, previous),
            "failures": record.failures,
            "last_failure": format_time(record.last) if record.last is not None else "",
            "blocked": record.blocked,
        }
    )
    created = bool(state.created) and state.paused is None
    return DemandReport(name=demand.name, status=status, notes=pod_notes(demand, created=created))


def completed(status: GPUDemandStatus, now: datetime) -> GPUDemandStatus:
    """The status of a demand without pods: all are bound or deleted. Blocked instance types stay until their time."""
    if status.phase is DemandPhase.COMPLETED:
        return status
    return GPUDemandStatus(phase=DemandPhase.COMPLETED, since=format_time(now), blocked=status.blocked)


def _phase(state: DemandState) -> DemandPhase:
    if state.awaited:
        return DemandPhase.SCHEDULED
    if state.paused is not None:
        return DemandPhase.FAILED
    if state.demand.queue_refusal:
        return DemandPhase.QUOTA_BLOCKED
    if state.record.failures and state.unmet:
        return DemandPhase.EXPIRED
    ready = state.demand.on_nodes and not state.demand.on_new
    return DemandPhase.NODE_READY if ready else DemandPhase.PENDING


def _reasons(state: DemandState, settings: DemandSettings) -> Iterable[str]:
    demand = state.demand
    if demand.queue_refusal:
        yield demand.queue_refusal
    if state.paused is not None:
        yield (
            f"failed {counted(state.record.failures, 'time')} in a row: no capacity is requested before "
            f"{format_time(state.paused)}; see status.blocked, or raise spec.demand.retries of the Environment"
        )
    elif settings.provisioner is DemandProvisioner.NONE and demand.on_new:
        yield "no capacity is requested: set spec.demand.provisioner of the Environment"
    yield from (each.message for each in state.failing)
    yield from demand.reasons
    admitted = len(demand.whole_gpu_pods) - len(demand.kept_out)
    if admitted:
        yield f"{counted(admitted, 'pod')} request whole GPUs: the autoscaler provides their nodes"
    yield from demand.kept_out_reasons


def _deadline(state: DemandState, settings: DemandSettings, now: datetime) -> str:
    """The earliest deadline of an outstanding request, RFC 3339; empty without one. After it, NodeClaims whose nodes
    have registered are awaited."""
    known = (each.deadline(settings.deadline_seconds) for each in state.kept if each.outstanding)
    due = [each for each in known if each is not None and each >= now]
    if state.created:
        due.append(now + timedelta(seconds=settings.deadline_seconds))
    return format_time(min(due)) if due else ""


def _claims(state: DemandState, previous: GPUDemandStatus | None) -> tuple[DemandClaim, ...]:
    """NodeClaims of the demand. Failed ones stay listed: their requests, and often they themselves, no longer exist."""
    known = previous.node_claims if previous is not None else ()
    failed = [each for each in known if each.stage is ClaimStage.FAILED]
    found = {each.name: each for each in failed[-FAILED_LISTED:]}
    found |= {
        claim.name: DemandClaim(name=claim.name, stage=claim.stage, message=claim.message) for claim in state.claims
    }
    return tuple(found[name] for name in sorted(found))[:MAX_LISTED]
