"""Rounds of the controller whose events show each reason."""

from collections.abc import Iterator
from typing import Any, Final

from plimsoll.model import Change, Deletion, DemandRef, ObjectKey, Owner, Plan, Reason, Verdict, Withheld
from plimsoll.model.api import (
    DemandPhase,
    DemandReport,
    GPUDemandStatus,
    PodNote,
    PodState,
    WorkspaceRef,
    WorkspaceStatus,
)
from plimsoll.model.meta import Finding, Severity
from plimsoll.plan.owned import Failed
from plimsoll.report import (
    CROWD,
    Event,
    PodEvents,
    capacity_events,
    combined,
    demand_events,
    interruption_event,
    provisioning_event,
    verdict_event,
    withheld_event,
)
from tests.builders import an_environment

WS: Final = WorkspaceRef(namespace="team", name="ws", uid="u")
DEMAND: Final = DemandRef(name="demand-1", uid="d")


def _claim(name: str) -> dict[str, Any]:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}


def _creation(name: str, owner: Owner = WS) -> Change:
    return Change(manifest=_claim(name), owner=owner, reason="a node is missing")


def _plan() -> Plan:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "ws"}}
    return Plan(
        creations=(_creation("a"), _creation("b")),
        updates=(Change(manifest=pool, owner=WS, reason="replicas 1 -> 2"),),
        deletions=(Deletion(key=ObjectKey.of(_claim("c")), uid="x", owner=WS, reason="no longer needed"),),
    )


def _verdict(reason: Reason, message: str) -> Verdict:
    return Verdict(workspace=WS, accepted=reason is Reason.ACCEPTED, reason=reason, message=message)


def _failed(reason: Failed) -> WorkspaceStatus:
    message = "0 of 1 NodeClaim ready; what failed; try 2 at 2026-01-01T00:01:00Z"
    condition = {"type": "NodeClaimsReady", "status": "False", "reason": reason.value, "message": message}
    provisioning = {"failures": 1, "claim": "a", "reason": reason.value}
    return WorkspaceStatus.model_validate({"provisioning": provisioning, "conditions": [condition]})


def _interrupted() -> WorkspaceStatus:
    message = "0 of 1 NodeClaim ready; spot nodes are interrupted: n; 1 NodeClaim serving or requested instead"
    condition = {"type": "NodeClaimsReady", "status": "False", "reason": "SpotInterrupted", "message": message}
    return WorkspaceStatus.model_validate({"conditions": [condition]})


def _withheld() -> Withheld:
    message = "Pod plimsoll-system/trigger-1: spec.nodeName is 'n'"
    finding = Finding("Pod", "", "trigger-1", "spec.nodeName", "trigger-pod-never-bound", Severity.ERROR, message)
    return Withheld(key=ObjectKey.of(_claim("a")), owner=WS, findings=(finding,))


def _demands() -> tuple[DemandReport, ...]:
    return tuple(
        DemandReport(name=f"demand-{phase.lower()}", status=GPUDemandStatus(phase=phase, pod_count=3, gpus=2))
        for phase in DemandPhase
    )


def _events() -> Iterator[tuple[str, Event | None]]:
    yield "a verdict: accepted", verdict_event(_verdict(Reason.ACCEPTED, "1 matching node"), WorkspaceStatus())
    refusal = _verdict(Reason.NO_MATCHING_NODES, "No nodes found")
    yield "a verdict: refused", verdict_event(refusal, WorkspaceStatus())
    for reason in Failed:
        yield f"provisioning: {reason.value}", provisioning_event(WS, WorkspaceStatus(), _failed(reason))
    yield "provisioning: SpotInterrupted", interruption_event(WS, WorkspaceStatus(), _interrupted())
    for each in capacity_events(_plan(), {}):
        yield f"applied: {each.action}", each
    plan = _plan()
    keys = [each.key for each in (*plan.creations, *plan.updates)] + [each.key for each in plan.deletions]
    for each in capacity_events(plan, dict.fromkeys(keys, "no such class")):
        yield f"not applied: {each.action}", each
    reports = _demands()
    for report, each in zip(reports, demand_events(reports, {}), strict=True):
        assert report.status is not None
        yield f"a demand: {report.status.phase.value}", each
    blocked = reports[1].model_copy(update={"name": "demand-with-reasons"})
    assert blocked.status is not None
    status = blocked.status.model_copy(update={"reasons": ("Queue team: the limit is 2 GPUs",)})
    (each,) = demand_events([blocked.model_copy(update={"status": status})], {})
    yield "a demand: its reasons", each
    notes = tuple(
        PodNote.of(f"p{state}", ("team", "pod"), state, text)
        for state, text in (
            (PodState.REQUESTED, "capacity requested: 0.5 of a GPU; see GPUDemand demand-1"),
            (
                PodState.KEPT_OUT,
                "not admitted by queue team: OverLimit: Queue team has 2 of its limit of 2 GPUs in use",
            ),
            (
                PodState.REFUSED,
                "karpenter refuses the requested capacity: FailedScheduling: Failed to schedule pod, all available "
                "instance types exceed limits for nodepool: gpu; see GPUDemand demand-1",
            ),
            (PodState.NOT_REQUESTED, "no capacity requested: limits.nodes of NodePool gpu is 2"),
            (PodState.FITS_NOTHING, "fits no instance type of a NodePool: requests 90000 MiB of a GPU"),
        )
    )
    for each in PodEvents().of([DemandReport(name="demand-1", status=None, notes=notes)]):
        yield f"a pod: {each.reason}", each
    yield "a policy violation", withheld_event(_withheld())
    environment = an_environment(nap=True).model_copy(update={"uid": "e"})
    crowd = Plan(creations=tuple(_creation(f"n{n}", WS.model_copy(update={"name": f"ws{n:02}"})) for n in range(CROWD)))
    (each,) = combined(capacity_events(crowd, {}), environment)
    yield "many events of one round", each


def messages() -> dict[str, dict[str, str]]:
    """By scenario: the object, type, reason and note of the event."""
    return {
        scenario: {
            "regarding": str(event.regarding),
            "type": event.type,
            "reason": str(event.reason),
            "note": event.note,
        }
        for scenario, event in _events()
        if event is not None
    }
