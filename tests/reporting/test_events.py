"""One event for each change of a verdict and of capacity, and none without a change."""

from datetime import UTC, datetime

import pytest

from plimsoll.model import Change, Deletion, DemandRef, ObjectKey, Plan, Reason, Verdict
from plimsoll.model.api import WorkspaceRef, WorkspaceStatus
from plimsoll.report import (
    CROWD,
    Event,
    EventReason,
    capacity_events,
    combined,
    interruption_event,
    provisioning_event,
    verdict_event,
)
from tests.builders import an_environment

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
WS = WorkspaceRef(namespace="team", name="ws", uid="u")


def verdict(reason: Reason) -> Verdict:
    return Verdict(workspace=WS, accepted=reason is Reason.ACCEPTED, reason=reason, message="so it is")


def status(ready: str, reason: str) -> WorkspaceStatus:
    conditions = [{"type": "ResourceReady", "status": ready, "reason": reason}]
    return WorkspaceStatus.model_validate({"conditions": conditions})


NEW = WorkspaceStatus()
SERVING = status("True", "Accepted")
WAITING = status("False", "NodeClaimNotLaunched")
REFUSED = status("False", "NoMatchingNodes")


@pytest.mark.parametrize(
    ("previous", "reason", "expected"),
    [
        (NEW, Reason.ACCEPTED, "Accepted"),
        (REFUSED, Reason.ACCEPTED, "Accepted"),
        (SERVING, Reason.ACCEPTED, None),
        (WAITING, Reason.ACCEPTED, None),
        (NEW, Reason.NO_MATCHING_NODES, "Refused"),
        (SERVING, Reason.NO_MATCHING_NODES, "Refused"),
        (WAITING, Reason.NO_MATCHING_NODES, "Refused"),
        (REFUSED, Reason.NO_MATCHING_NODES, None),
        (REFUSED, Reason.NON_UNIFORM_NODES, "Refused"),
    ],
)
def test_only_a_changed_verdict_is_an_event(previous: WorkspaceStatus, reason: Reason, expected: str | None) -> None:
    event = verdict_event(verdict(reason), previous)
    assert (event.reason if event else None) == expected


def test_a_refusal_is_a_warning_that_says_what_to_change() -> None:
    event = verdict_event(verdict(Reason.NON_UNIFORM_NODES), NEW)
    assert event is not None
    assert (event.type, event.note) == ("Warning", "NonUniformNodes: so it is")


def a_creation(name: str) -> Change:
    manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}
    return Change(manifest=manifest, owner=WS, reason="missing")


def test_capacity_is_one_event_for_each_workspace_and_kind() -> None:
    gone = ObjectKey(api_version="karpenter.sh/v1", kind="NodeClaim", namespace="", name="old")
    plan = Plan(
        creations=(a_creation("a"), a_creation("b")),
        deletions=(Deletion(key=gone, uid="x", owner=WS, reason="superfluous"),),
    )
    created, deleted = capacity_events(plan, {})
    assert (created.reason, deleted.reason) == (EventReason.CAPACITY_CREATED, EventReason.CAPACITY_DELETED)
    assert created.note.endswith("2 NodeClaims (missing): a, b")
    assert deleted.note.endswith("1 NodeClaim (superfluous): old")


def test_failures_are_separate_events() -> None:
    plan = Plan(creations=(a_creation("a"), a_creation("b")))
    events = list(capacity_events(plan, {a_creation("b").key: "no such class"}))
    assert [(event.type, event.reason) for event in events] == [
        ("Warning", EventReason.CAPACITY_CREATE_FAILED),
        ("Normal", EventReason.CAPACITY_CREATED),
    ]
    failed, created = events
    assert "NodeClaim b" in failed.note
    assert failed.note.endswith(": no such class")
    assert created.note.endswith(": a")


def test_an_error_with_another_request_id_is_the_same_event() -> None:
    def failed(name: str, error: str) -> str:
        created = a_creation(name)
        (event,) = capacity_events(Plan(creations=(created,)), {created.key: error})
        assert error in event.note
        return event.name

    first = failed("n1", "no capacity at 10:00:07, request 6f1c9a52-04b1-4dd5-9c3e-0242ac120002")
    assert failed("n1", "no capacity at 10:00:17, request 0a1b2c3d-04b1-4dd5-9c3e-0242ac120002") == first
    assert failed("n2", "no capacity at 10:00:07, request 6f1c9a52-04b1-4dd5-9c3e-0242ac120002") != first
    assert failed("n1", "no permission at 10:00:07, request 6f1c9a52-04b1-4dd5-9c3e-0242ac120002") != first


def test_the_same_event_has_the_same_name() -> None:
    event = Event(WS, "Normal", "Accepted", "Validate", "fits")
    assert event.name == Event(WS, "Normal", "Accepted", "Validate", "fits").name
    recreated = WS.model_copy(update={"uid": "v"})
    others = {event.name, event._replace(note="fits well").name, event._replace(regarding=recreated).name}
    assert len(others) == 3
    assert all(name.startswith("ws.") for name in others)


def test_names_and_notes_respect_the_limits_of_the_apiserver() -> None:
    long = WorkspaceRef(namespace="team", name="w" * 229 + "." + "x" * 23, uid="u")
    manifest = Event(long, "Warning", "Refused", "Validate", "ü" * 5000).manifest(NOW, "i" * 500)
    assert len(manifest["metadata"]["name"]) <= 253
    assert ".." not in manifest["metadata"]["name"]
    assert len(manifest["note"].encode()) <= 1024
    assert len(manifest["reportingInstance"]) == 128
    assert manifest["eventTime"] == "2026-01-01T12:00:00.000000Z"


def provisioning(**record: object) -> WorkspaceStatus:
    conditions = [{"type": "NodeClaimsReady", "status": "False", "reason": record.get("reason", ""), "message": "all"}]
    return WorkspaceStatus.model_validate({"provisioning": record, "conditions": conditions})


LATE = provisioning(failures=1, claim="a", reason="NodeClaimLate", message="a is late")


@pytest.mark.parametrize(
    ("previous", "status", "expected"),
    [
        pytest.param(NEW, provisioning(pending=[{"name": "a", "step": "Launched"}]), None, id="on its way"),
        pytest.param(NEW, LATE, "NodeClaimLate", id="late"),
        pytest.param(LATE, LATE, None, id="told already"),
        pytest.param(LATE, provisioning(failures=2, claim="b", reason="NodeClaimLate"), "NodeClaimLate", id="again"),
        pytest.param(
            provisioning(failures=1, claim="a", reason="NodeClaimLost"),
            provisioning(failures=1, claim="a", reason="InsufficientCapacity"),
            "InsufficientCapacity",
            id="the provider's words come later",
        ),
        pytest.param(LATE, provisioning(tries=1), None, id="ready"),
    ],
)
def test_the_result_of_a_claim_is_one_event(
    previous: WorkspaceStatus, status: WorkspaceStatus, expected: str | None
) -> None:
    event = provisioning_event(WS, previous, status)
    assert (event.reason if event else None) == expected
    assert event is None or (event.type, event.note) == ("Warning", "all")


def test_an_interruption_is_one_event() -> None:
    def claims(reason: str) -> WorkspaceStatus:
        condition = {"type": "NodeClaimsReady", "status": "False", "reason": reason, "message": "n1 goes"}
        return WorkspaceStatus.model_validate({"conditions": [condition]})

    reported = interruption_event(WS, claims("Ready"), claims("SpotInterrupted"))
    assert reported is not None and (reported.type, reported.reason, reported.note) == (
        "Warning",
        "SpotInterrupted",
        "n1 goes",
    )
    assert interruption_event(WS, NEW, claims("SpotInterrupted")) is not None
    assert interruption_event(WS, claims("SpotInterrupted"), claims("SpotInterrupted")) is None
    assert interruption_event(WS, claims("Ready"), claims("NodeClaimsPending")) is None


def named(name: str) -> WorkspaceRef:
    return WS.model_copy(update={"name": name})


def fine(number: int, reason: str = "CapacityCreated") -> list[Event]:
    return [Event(named(f"ws{n:03}"), "Normal", reason, "Create", f"n{n}") for n in range(number)]


def test_many_equal_events_are_one_event_of_the_environment() -> None:
    environment = an_environment(nap=True).model_copy(update={"uid": "e", "name": "env"})
    refused = [Event(named(f"no{n}"), "Warning", "Refused", "Validate", "why") for n in range(CROWD)]
    alone = fine(2, "Accepted")
    [*rest, one] = combined([*alone, *refused, *fine(CROWD)], environment)
    assert rest == [*refused, *alone]
    assert (one.regarding, one.reason) == (DemandRef(kind="Environment", name="env", uid="e"), "CapacityCreated")
    assert one.note.startswith(f"for {CROWD} objects: team/ws000, team/ws001, ")


def test_few_events_and_those_without_an_environment_are_separate() -> None:
    environment = an_environment(nap=True).model_copy(update={"uid": "e", "name": "env"})
    assert list(combined(fine(CROWD - 1), environment)) == fine(CROWD - 1)
    assert list(combined(fine(CROWD), environment.model_copy(update={"uid": ""}))) == fine(CROWD)
