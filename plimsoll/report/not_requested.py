"""Demands whose requests for capacity were not created."""

from collections.abc import Mapping
from typing import Any

from plimsoll.model import ObjectKey, Plan, Snapshot
from plimsoll.model.api import MAX_REASONS, DemandObject, DemandPhase, DemandReport, GPUDemandStatus, PodNote, PodState
from plimsoll.plan.owned import key_of, request_objects


def with_failed_requests(plan: Plan, snapshot: Snapshot, failed: Mapping[ObjectKey, object]) -> Plan:
    """The Plan after it was applied except for the objects in `failed`, with their errors, and for those that a policy
    withholds: the status of a demand names only requests that exist, and says why the others do not. A demand without
    any is pending, and no event tells its pods that capacity is requested."""
    if not (failed or plan.withheld):
        return plan
    existing = {key_of(obj) for obj in request_objects(snapshot)}
    reasons = {withheld.key: str(withheld) for withheld in plan.withheld}
    reasons |= {key: f"{key} is not created: {why}" for key, why in failed.items()}
    missing = {key.of_demand: why for key, why in reasons.items() if key not in existing}
    if not missing:
        return plan
    before = {demand.name: demand.status for demand in snapshot.gpu_demands}
    demands = tuple(_reported(report, before.get(report.name), missing) for report in plan.demands)
    return plan.model_copy(update={"demands": demands})


def _reported(
    report: DemandReport, before: GPUDemandStatus | None, missing: Mapping[DemandObject, str]
) -> DemandReport:
    status = report.status
    if status is None:
        return report
    why = tuple(missing[obj] for obj in status.objects if obj in missing)
    if not why:
        return report
    count = status.object_count - len(why)
    changes: dict[str, Any] = {
        "objects": tuple(obj for obj in status.objects if obj not in missing),
        "object_count": count,
        "reasons": tuple(dict.fromkeys((*why, *status.reasons)))[:MAX_REASONS],
    }
    notes = report.notes
    if not count:
        waits = before is not None and before.phase is DemandPhase.PENDING
        changes |= {"phase": DemandPhase.PENDING, "deadline": ""}
        changes |= {"since": before.since} if before is not None and waits else {}
        notes = tuple(_refused(note, why[0]) for note in notes)
    return report.model_copy(update={"status": status.model_copy(update=changes), "notes": notes})


def _refused(note: PodNote, why: str) -> PodNote:
    if note.state is not PodState.REQUESTED:
        return note
    key = (note.namespace, note.name)
    return PodNote.of(note.uid, key, PodState.NOT_REQUESTED, f"no capacity requested: {why}")
