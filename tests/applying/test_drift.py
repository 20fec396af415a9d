"""`plimsoll drift`: operations that the controller has not applied yet, and objects that were replaced."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from plimsoll.apply import ApplySettings
from plimsoll.cli import app
from plimsoll.model import Plan, Snapshot
from tests.applying.states import CLUSTER, STACK, FakeCluster, a_claim, a_deployment, a_state, change, deletion, live
from tests.builders import a_snapshot, an_environment

SNAPSHOT = a_snapshot(
    environment=an_environment(nap=True, policies={"rules": {"image-tag-pinned": {}}}).model_copy(
        update={"uid": "uid-test"}
    )
)
TRIGGERS = SNAPSHOT.environment.spec.demand.namespace
PLANS = {
    "ToCreate": Plan(creations=(change(a_claim("x")),)),
    "ToUpdate": Plan(updates=(change(a_deployment("x")),)),
    "ToDelete": Plan(deletions=(deletion(a_claim("x"), "uid-x"),)),
}


def in_namespace(namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def a_request(kind: str) -> dict[str, Any]:
    """A capacity request with all labels that a workload has."""
    return {**a_deployment("x"), "apiVersion": "v1", "kind": kind}


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


@pytest.mark.parametrize(
    ("obj", "unknown"),
    [
        (a_claim("x"), True),
        (a_deployment("x"), True),
        (in_namespace("tenant", a_deployment("x")), False),
        (in_namespace(TRIGGERS, a_request("Pod")), True),
        (in_namespace("tenant", a_request("Pod")), False),
        (in_namespace("default", a_request("PodTemplate")), False),
    ],
    ids=lambda value: f"{value['kind']} {value['metadata'].get('namespace')}" if isinstance(value, dict) else None,
)
def test_labels_count_only_where_the_controller_creates_objects(
    obj: dict[str, Any], unknown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in planning, and in the adoption of objects that are in no state."""
    code, found = drift(monkeypatch, FakeCluster(live(obj)), Plan())
    assert (code, [each[0] for each in found]) == ((2, ["Unknown"]) if unknown else (0, []))


def test_objects_of_another_environment_are_not_ours() -> None:
    settings = ApplySettings(environment="prod", work_folder=Path())
    assert settings.owns(live(a_claim("x"), stack="capacity-prod-3"))
    assert not settings.owns(live(a_claim("x"), stack="capacity-prod-gpu-3"))
    assert not settings.owns(a_claim("x"))


def test_what_a_policy_withholds_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    containers = [{"name": "main", "image": "server"}]
    unpinned = a_deployment("x") | {"spec": {"template": {"spec": {"containers": containers}}}}
    plan = Plan(creations=(change(unpinned), change(a_claim("x"))))
    assert drift(monkeypatch, FakeCluster(), plan) == (2, [("ToCreate", "NodeClaim x", "")])


@pytest.mark.parametrize(("declared", "changed"), [("", False), ("yes", True)])
def test_zero_values_that_the_apiserver_leaves_out_are_no_difference(
    declared: str, changed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_env(**value: str) -> dict[str, Any]:
        pod = {"containers": [{"name": "main", "env": [{"name": "DEBUG", **value}]}]}
        return live(a_deployment("x") | {"spec": {"template": {"spec": pod}}})

    ours = with_env(value=declared)
    ours["spec"]["template"]["spec"]["hostNetwork"] = False
    code, found = drift(monkeypatch, FakeCluster(with_env()), Plan(), ours)
    assert (code, [each[0] for each in found]) == ((2, ["Changed"]) if changed else (0, []))


def test_another_object_of_the_same_name_is_a_replaced_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = live(a_claim("x"))
    assert drift(monkeypatch, FakeCluster(ours), Plan(), ours) == (0, [])
    code, found = drift(monkeypatch, FakeCluster(live(a_claim("x"), uid="uid-other")), Plan(), ours)
    assert (code, found) == (2, [("Replaced", "NodeClaim x", STACK)])
