"""The status of a GPUDemand: phase, figures, requests, and why capacity is missing."""

from collections.abc import Iterable, Iterator, Mapping
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
from plimsoll.plan.known import Known
from plimsoll.plan.owned import format_time
from plimsoll.plan.requests.answers import Answer
from plimsoll.plan.requests.awaited import Awaited, furthest_behind
from plimsoll.plan.requests.capacity_request import CapacityRequest
from plimsoll.plan.requests.claims import AssignedClaim
from plimsoll.plan.requests.pod_notes import pod_notes
from plimsoll.plan.requests.record import FailureRecord, RequestFailure
from plimsoll.text import counted


def figures(demand: Demand, known: Known) -> GPUDemandStatus:
    """The figures of a status. Phase, objects, deadline and reasons are added by `report`."""
    pods = (demand.pods, demand.whole_gpu_pods)
    return GPUDemandStatus(
        pod_count=len(demand.pods) + len(demand.whole_gpu_pods),
        pods=known.result("listed pods", pods, lambda: _listed(demand), subject=demand.name),
        free_pods=sum(map(len, demand.on_nodes.values())),
        requested_pods=sum(map(len, demand.on_requested.values())) + len(demand.awaiting),
        new_pods=len(demand.on_new),
        grace_pods=len(demand.in_grace),
        refused_pods=len(demand.refused),
        gpus=-(-demand.gpu_milli // GPU_MILLI),
        gpu_milli=demand.gpu_milli,
        least_gpus=demand.least_gpus,
    )


def _listed(demand: Demand) -> tuple[DemandPod, ...]:
    pods = sorted({**demand.pods, **demand.whole_gpu_pods}.items())[:MAX_LISTED]
    return tuple(DemandPod(uid=uid, share=str(asking.share)) for uid, asking in pods)


FAILED_LISTED = 50
"""Bounds the size of a status, like MAX_LISTED."""


@dataclass(frozen=True)
class DemandState:
    """The state of one demand after a round."""

    demand: Demand
    kept: tuple[CapacityRequest, ...]
    awaited: tuple[Awaited, ...]
    """What those of `kept` wait for that have outstanding nodes."""
    created: tuple[ObjectKey, ...]
    """Objects that this round creates for it."""
    record: FailureRecord
    paused: datetime | None
    """Until when no capacity is requested, after too many failures."""
    failing: tuple[RequestFailure, ...]
    claims: tuple[AssignedClaim, ...]

    @property
    def requested(self) -> bool:
        """Whether nodes are requested that have not registered yet."""
        return bool(self.created or self.awaited or self.demand.on_requested or self.demand.awaiting)

    @property
    def refused(self) -> Mapping[str, Answer]:
        """Why an autoscaler refuses a requested node, by the UID of each pod that is planned on it."""
        refused = {node: answer for awaited in self.awaited for node, answer in awaited.refused.items()}
        on_requested = self.demand.on_requested.items()
        return {uid: refused[node] for node, uids in on_requested if node in refused for uid in uids}

    @property
    def unmet(self) -> bool:
        """Whether pods are pending for which no capacity is requested."""
        return bool(self.demand.refused or (self.demand.on_new and not self.created))


def report(
    state: DemandState, previous: GPUDemandStatus | None, settings: DemandSettings, now: datetime, *, known: Known
) -> DemandReport:
    """The status of the GPUDemand once the Plan is applied."""
    demand = state.demand
    phase = _phase(state)
    since = previous.since if previous is not None and previous.phase is phase and previous.since else format_time(now)
    objects = (*(request.listed for request in state.kept), *(key.of_demand for key in state.created))
    record = state.record
    status = figures(demand, known).model_copy(
        update={
            "phase": phase,
            "since": since,
            "object_count": len(objects),
            "objects": objects[:MAX_LISTED],
            "deadline": _deadline(state, settings, now),
            "reasons": tuple(dict.fromkeys(_reasons(state, settings)))[:MAX_REASONS],
            "node_claims": _claims(state, previous),
            "failures": record.failures,
            "last_failure": format_time(record.last) if record.last is not None else "",
            "blocked": record.blocked,
        }
    )
    created = bool(state.created) and state.paused is None
    notes = pod_notes(demand, state.refused, created=created, known=known)
    return DemandReport(name=demand.name, status=status, notes=notes)


def completed(status: GPUDemandStatus, now: datetime) -> GPUDemandStatus:
    """The status of a demand without pods: all are bound or deleted. Blocked instance types stay until their time."""
    if status.phase is DemandPhase.COMPLETED:
        return status
    return GPUDemandStatus(phase=DemandPhase.COMPLETED, since=format_time(now), blocked=status.blocked)


def _phase(state: DemandState) -> DemandPhase:
    if state.requested:
        created = [DemandPhase.SCHEDULED] if state.created else []
        return furthest_behind([*created, *(each.phase for each in state.awaited)])
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
        yield demand.queue_refusal.without_names
    if state.paused is not None:
        yield (
            f"failed {counted(state.record.failures, 'time')} in a row: no capacity is requested before "
            f"{format_time(state.paused)}; see status.blocked, or raise spec.demand.retries of the Environment"
        )
    elif settings.provisioner is DemandProvisioner.NONE and demand.on_new:
        yield "no capacity is requested: set spec.demand.provisioner of the Environment"
    yield from (each.message for each in state.failing)
    yield from _refusals(each for awaited in state.awaited for each in awaited.refusals)
    yield from demand.reasons
    admitted = len(demand.whole_gpu_pods) - len(demand.kept_out)
    if admitted:
        yield f"whole GPUs of {counted(admitted, 'pod')}: the autoscaler provides the nodes"
    yield from demand.kept_out_reasons


def _refusals(answers: Iterable[Answer]) -> Iterator[str]:
    """Who refuses how many requests since when, in the words of the autoscaler."""
    alike: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        alike.setdefault((answer.by, answer.text), []).append(answer)
    for (by, text), several in alike.items():
        first = min((answer.since for answer in several if answer.since), default="")
        since = f" since {first}" if first else ""
        yield f"{by} refuses {counted(len(several), 'request')}{since}: {text}"


def _deadline(state: DemandState, settings: DemandSettings, now: datetime) -> str:
    """When the next outstanding node is given up, RFC 3339; empty without one."""
    due = [awaited.deadline for awaited in state.awaited if awaited.deadline is not None]
    if state.created:
        due.append(now + timedelta(seconds=settings.deadline_seconds))
    return format_time(min(due)) if due else ""


def _claims(state: DemandState, previous: GPUDemandStatus | None) -> tuple[DemandClaim, ...]:
    """NodeClaims of the demand. Failed ones stay listed: their requests, and often they themselves, no longer exist."""
    known = previous.node_claims if previous is not None else ()
    failed = [each for each in known if each.stage is ClaimStage.FAILED]
    listed = {each.name: each for each in failed[-FAILED_LISTED:]}
    listed |= {
        claim.name: DemandClaim(name=claim.name, stage=claim.stage, message=claim.message) for claim in state.claims
    }
    return tuple(listed[name] for name in sorted(listed))[:MAX_LISTED]
