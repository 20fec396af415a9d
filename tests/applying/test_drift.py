"""`plimsoll drift`: operations that the controller has not applied yet, and objects that were replaced."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.model import Plan, Snapshot
from tests.applying.states import CLUSTER, STACK, FakeCluster, a_claim, a_deployment, a_state, change, deletion, live
from tests.builders import a_snapshot, an_environment

SNAPSHOT = a_snapshot(environment=an_environment().model_copy(update={"uid": "uid-test"}))
PLANS = {
    "ToCreate": Plan(creations=(change(a_claim("x")),)),
    "ToUpdate": Plan(updates=(change(a_deployment("x")),)),
    "ToDelete": Plan(deletions=(deletion(a_claim("x"), "uid-x"),)),
}


def drift(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, plan: Plan, *objects: Any) -> tuple[int, Any]:
    """Exit code and differences, where the state has these objects."""

    @contextmanager
    def open_observer(*_: object) -> Iterator[tuple[None, Any]]:
        yield None, SimpleNamespace(snapshot=snapshot)

    def snapshot() -> Snapshot:
        return SNAPSHOT

    monkeypatch.setattr("plimsoll.observe.cluster.open_observer", open_observer)
    monkeypatch.setattr("plimsoll.apply.Applier", lambda *_: SimpleNamespace(states=lambda: [a_state(*objects)]))
    monkeypatch.setattr("plimsoll.apply.cluster_identity", lambda _: CLUSTER)
    monkeypatch.setattr("plimsoll.kube.Objects", lambda _: cluster)
    monkeypatch.setattr("plimsoll.plan.plan", lambda *_: plan)
    result = CliRunner().invoke(app, ["drift", "--secrets-provider", "awskms://k", "--output", "json"])
    assert result.exit_code in (0, 2), result.exception
    return result.exit_code, [(each["drift"], each["object"], each["stack"]) for each in orjson.loads(result.stdout)]


@pytest.mark.parametrize("kind", PLANS)
def test_an_operation_that_is_not_applied_yet_is_a_difference(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = "Deployment default/x" if kind == "ToUpdate" else "NodeClaim x"
    assert drift(monkeypatch, FakeCluster(), PLANS[kind]) == (2, [(kind, named, "")])


def test_another_object_of_the_same_name_is_a_replaced_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = live(a_claim("x"))
    assert drift(monkeypatch, FakeCluster(ours), Plan(), ours) == (0, [])
    code, found = drift(monkeypatch, FakeCluster(live(a_claim("x"), uid="uid-other")), Plan(), ours)
    assert (code, found) == (2, [("Replaced", "NodeClaim x", STACK)])
