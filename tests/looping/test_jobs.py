"""`plimsoll run --once`: the exit code says whether the job is done, something is refused, or it is not settled."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from plimsoll.apply import Failure, FailureKind, Outcome
from plimsoll.cli import app
from plimsoll.cli.controller import Controller
from plimsoll.cli.writing import Settling
from plimsoll.errors import PlimsollError
from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.loop import RoundResult
from plimsoll.model import GateRemoval, ObjectKey, Plan, Snapshot
from plimsoll.model.api import Environment
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_snapshot, a_template, a_workspace, an_environment
from tests.looping.cluster import START, ControlledCluster
from tests.planning.cluster import after, launched

TIMEOUT = 300


class Provisioned(ControlledCluster):
    """Shows what was applied at the next wait of the loop, and then, if `ready`, the nodes."""

    def __init__(self, seen: Snapshot, ready: bool = True) -> None:
        super().__init__(seen)
        self.during_wait = lambda: self._advance(ready)
        self._hidden: list[Plan] = []

    def apply(self, plan: Plan) -> Outcome:
        self._hidden += [] if plan.empty else [plan]
        return super().apply(plan)

    def _advance(self, ready: bool) -> None:
        if self._hidden:
            self.seen = [after(self.snapshot(), self._hidden.pop())]
        elif ready:
            self.seen = [launched(self.snapshot())]


class Failing(ControlledCluster):
    """No operation succeeds."""

    def apply(self, plan: Plan) -> Outcome:
        super().apply(plan)
        failure = Failure(FailureKind.REFUSED, "exceeded quota")
        return Outcome(failed={each.key: failure for each in plan.creations})


def of_prod(*workspaces: Any, **spec: Any) -> Snapshot:
    environment: Environment = an_environment(nap=True, **spec).model_copy(update={"name": "prod", "uid": "uid-prod"})
    return a_snapshot(*workspaces, environment=environment)


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    file = tmp_path / "passphrase"
    file.write_text("secret")
    return file


def run_once(cluster: ControlledCluster, passphrase: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    @contextmanager
    def open_observer(*_: object) -> Iterator[tuple[None, ControlledCluster]]:
        yield None, cluster

    def controller(_options: object, _connection: object, _observer: object, service: Any, stopping: Any) -> Controller:
        return cluster.controller(service, stopping, monkeypatch)

    monkeypatch.setattr("plimsoll.observe.cluster.open_observer", open_observer)
    monkeypatch.setattr("plimsoll.cli.controller.Controller", controller)
    monkeypatch.setattr("plimsoll.cli.controller.Stopping.on_signals", lambda _: None)
    monkeypatch.setattr("plimsoll.cli.writing.Settling", lambda timeout: Settling(timeout, cluster.seconds))
    options = ["--timeout", str(TIMEOUT), "--passphrase-file", str(passphrase), "--output", "json"]
    return CliRunner().invoke(app, ["run", "--once", *options])


WANTED = a_workspace("wanted", uid="u1", instance_type=NC24, selector={}, template=a_template(image="example/a:1"))
UNPINNED = a_workspace(
    "unpinned", uid="u3", instance_type=NC24, selector={}, template=a_template(image="example/a:latest")
)
REFUSED = a_workspace("refused", uid="u2", instance_type="Standard_Unknown", selector={})


def test_a_job_ends_with_0_when_the_nodes_of_every_workspace_are_ready(
    passphrase: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Provisioned(of_prod(WANTED))
    result = run_once(cluster, passphrase, monkeypatch)
    assert result.exit_code == 0, result.output
    assert cluster.seconds() < TIMEOUT
    assert [each["kind"] for each in orjson.loads(result.stdout)["create"]] == ["NodeClaim", "Deployment"]
    assert [each.ready_replicas for each in cluster.snapshot().workloads] == [0], (
        "its pods may load weights for an hour"
    )


def test_a_job_with_a_refused_workspace_ends_with_2_once_the_others_are_settled(
    passphrase: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Provisioned(of_prod(WANTED, REFUSED))
    result = run_once(cluster, passphrase, monkeypatch)
    assert result.exit_code == 2, result.exception
    assert cluster.seconds() < TIMEOUT
    shown = orjson.loads(result.stdout)
    assert {each["name"]: each["accepted"] for each in shown["verdicts"]} == {"refused": False, "wanted": True}
    assert {each["metadata"]["labels"][WORKSPACE] for each in shown["create"]} == {"wanted"}


def test_a_job_with_a_withheld_object_ends_with_2(passphrase: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Provisioned(of_prod(WANTED, UNPINNED, policies={"rules": {"image-tag-pinned": {}}}))
    result = run_once(cluster, passphrase, monkeypatch)
    assert result.exit_code == 2, result.exception
    shown = orjson.loads(result.stdout)
    assert [(each["kind"], each["name"]) for each in shown["withheld"]] == [("Deployment", "unpinned")]
    created = [(each["kind"], each["metadata"]["labels"][WORKSPACE]) for each in shown["create"]]
    assert sorted(created) == [("Deployment", "wanted"), ("NodeClaim", "wanted")], "no node for what is withheld"


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (Provisioned(of_prod(WANTED), ready=False), "NodeClaims not ready"),
        (Failing(of_prod(WANTED)), "exceeded quota"),
        (ControlledCluster(of_prod(WANTED)), "the watches have not delivered the result"),
    ],
    ids=["without nodes", "failing", "without the result"],
)
def test_a_job_that_is_not_settled_in_time_is_an_error_that_says_why(
    cluster: ControlledCluster, why: str, passphrase: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_once(cluster, passphrase, monkeypatch)
    assert isinstance(result.exception, PlimsollError), result.output
    assert why in result.exception.message
    assert cluster.seconds() >= TIMEOUT


def unsettled(snapshot: Snapshot, **plan: Any) -> str:
    """Why a job does not end after a round with nothing to create, update or delete."""
    settling = Settling(TIMEOUT)
    made = Plan(verdicts=validate(snapshot), **plan)
    settling.on_round(RoundResult(snapshot, made, Outcome()))
    return settling.unsettled


@pytest.mark.parametrize("inference", [True, False])
def test_a_job_waits_until_a_static_node_pool_has_all_its_nodes(inference: bool) -> None:
    """Karpenter creates its NodeClaims some time after its replicas have changed."""
    wanting = [
        a_workspace(
            uid="u1",
            instance_type=NC24,
            selector={},
            count=count,
            replicas=count if inference else None,
            inference=inference,
        )
        for count in (1, 2)
    ]
    snapshot = of_prod(wanting[0], provisioner="static-nodepool")
    snapshot = after(snapshot, plan(snapshot, validate(snapshot), START))
    claim = a_claim("pooled", wanting[0])
    pooled = claim.model_copy(update={"labels": claim.labels | {NODEPOOL: snapshot.node_pools[0].name}})
    snapshot = launched(snapshot.model_copy(update={"node_claims": (pooled,)}))
    snapshot = after(snapshot, plan(snapshot, validate(snapshot), START))
    assert unsettled(snapshot) == ""
    scaled = snapshot.model_copy(update={"workspaces": (wanting[1],)})
    scaled = after(scaled, plan(scaled, validate(scaled), START))
    assert scaled.node_pools[0].replicas == 2
    assert "1 NodeClaim" in unsettled(scaled)


def test_a_job_is_not_settled_while_a_capacity_gate_could_not_be_removed() -> None:
    key = ObjectKey(api_version="v1", kind="Pod", namespace="default", name="gated")
    removal = GateRemoval(key=key, uid="u", message="free")
    assert "1 capacity gate" in unsettled(of_prod(), gate_removals=(removal,))


@pytest.fixture
def signals() -> Iterator[None]:
    """The command sets its own handlers."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("options", "code"), [(["--once"], 1), ([], 0)], ids=["job", "controller"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_job_that_a_signal_ends_before_it_has_the_lease_has_failed(
    number: int, options: list[str], code: int, passphrase: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.observe.cluster.open_observer", lambda *_: signal.raise_signal(number))
    result = CliRunner().invoke(app, ["run", *options, "--passphrase-file", str(passphrase)])
    assert result.exit_code == code
