"""Two Workspaces never need objects of the same name."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.labels import as_label_value
from plimsoll.model import InvalidObject, Reason
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_snapshot, a_workspace
from tests.calls import calls
from tests.planning.cluster import after, launched

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LLAMA = "llama-3.3-70b-instruct"
"""A model of which a replica needs several such nodes, so that it is a group of a LeaderWorkerSet."""


def wanting(name: str, created: str = "2026-01-01T00:00:00Z", **fields: Any) -> Workspace:
    return a_workspace(name, created=created, instance_type=NC24, selector={}, **fields)


def refused(*workspaces: Workspace) -> dict[str, str]:
    """The messages on refused Workspaces, by name."""
    verdicts = validate(a_snapshot(*workspaces, nap=True))
    assert all(each.accepted or each.reason is Reason.INVALID_SPEC for each in verdicts)
    return {each.workspace.name: each.message for each in verdicts if not each.accepted}


LATER = "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        # The Service of a preset, and the one of a group.
        ({"preset": LLAMA}, {"preset": "phi-4"}, "set inference.service.name to another name"),
        # The StatefulSets of a group's workers, and of another Workspace.
        ({"per_replica": 2}, {"per_replica": 2}, "needs a StatefulSet named 'chat-0'"),
    ],
)
def test_the_newer_workspace_is_refused_with_what_to_change(first: Any, second: Any, text: str) -> None:
    chat, numbered = wanting("chat", **first), wanting("chat-0", LATER, **second)
    [(name, message)] = refused(chat, numbered).items()
    assert name == "chat-0" and text in message and "Workspace default/chat has" in message
    older = wanting("chat-0", **second)
    [(name, message)] = refused(wanting("chat", LATER, **first), older).items()
    assert name == "chat" and "replica 0 needs" in message and "create the Workspace with another name" in message


@pytest.mark.parametrize(
    "fields",
    [
        ({"preset": LLAMA}, {}),
        ({"preset": "phi-4"}, {"preset": "phi-4"}),
        ({"per_replica": 2}, {"preset": "phi-4"}),
        ({"per_replica": 2, "name": "chart"}, {"per_replica": 2}),
    ],
)
def test_similar_names_are_no_conflict(fields: Any) -> None:
    first, second = ({"name": "chat"} | fields[0], {"name": "chat-0"} | fields[1])
    assert not refused(wanting(**first), wanting(**second))


def test_a_service_may_not_have_the_name_of_groups_of_a_template() -> None:
    spec = {
        "resource": {"instanceType": NC24},
        "inference": {
            "preset": {"name": "phi-4"},
            "service": {"name": "chat"},
        },
    }
    metadata = {"name": "other", "namespace": "default", "creationTimestamp": LATER}
    other = Workspace.read({"metadata": metadata, "spec": spec})
    [(name, message)] = refused(wanting("chat", per_replica=2), other).items()
    assert name == "other" and message.startswith("inference.service.name is 'chat'")


def test_a_name_belongs_to_the_running_workspace() -> None:
    """A Workspace whose added replicas would need a name of another one is refused, with the number of replicas that it
    may have."""
    small = wanting("chat", uid="1", per_replica=2, replicas=2)
    numbered = wanting("chat-2", LATER, uid="2", per_replica=2)
    snapshot = a_snapshot(small, numbered, nap=True)
    for _ in range(2):
        snapshot = launched(after(snapshot, plan(snapshot, validate(snapshot), NOW)))
    assert {each.name for each in snapshot.workloads} == {"chat", "chat-2"}
    grown = wanting("chat", uid="1", per_replica=2, replicas=3)
    [verdict] = [
        each for each in validate(snapshot.model_copy(update={"workspaces": (grown, numbered)})) if not each.accepted
    ]
    assert verdict.workspace.name == "chat" and "set inference.replicas to at most 2" in verdict.message


def test_names_of_many_replicas_are_compared_without_a_list() -> None:
    """2,000 Workspaces of a tenant with 500 groups each took each round nine seconds."""

    def cost(replicas: int) -> int:
        snapshot = a_snapshot(*(wanting(f"chat-{n}", per_replica=2, replicas=replicas) for n in range(5)), nap=True)
        return calls(lambda: validate(snapshot))

    assert cost(500) - cost(5) < 100


@pytest.mark.parametrize(("name", "other"), [("chat-00", None), ("chat-499", "chat"), ("chat-500", None)])
def test_each_of_many_replicas_has_its_name(name: str, other: str | None) -> None:
    many: dict[str, Any] = {"per_replica": 2, "replicas": 500}
    one: dict[str, Any] = {"per_replica": 2}
    assert refused(wanting("chat", **many), wanting(name, LATER, **one)).keys() == ({name} if other else set())
    assert refused(wanting("chat", LATER, **many), wanting(name, **one)).keys() == ({other} if other else set())


LONG = "b" * 100


@pytest.mark.parametrize("inference", [True, False])
def test_a_name_that_labels_cannot_have_takes_no_nodes_of_another_workspace(inference: bool) -> None:
    """The form of the long name as a label is the other's name: each round deleted its node, and created it again."""
    long = wanting(LONG, uid="long", inference=inference)
    other = wanting(as_label_value(LONG), LATER, uid="other")
    node = a_claim("node", other, ready=True, node="n1")
    for workspaces in ((long, other), (other, long)):
        snapshot = a_snapshot(*workspaces, node, nap=True)
        verdicts = validate(snapshot)
        assert {each.workspace.name: each.accepted for each in verdicts} == {LONG: False, other.name: True}
        found = plan(snapshot, verdicts, NOW)
        assert not [each.manifest for each in found.creations if each.manifest["kind"] == "NodeClaim"]
        assert not found.deletions
    invalid = InvalidObject(ref=other.ref, message="it is invalid")
    snapshot = a_snapshot(long, nap=True).model_copy(update={"invalid_workspaces": (invalid,)})
    assert not any(each.accepted for each in validate(snapshot))
