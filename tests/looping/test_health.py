"""The health of the controller, as probes read it: alive while rounds begin or it waits, and ready from the first sync
until it is asked to stop."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll.apply import Applier, LeaseLostError, WriterStoppingError
from plimsoll.cli.controller import ControllerState, ControllerStatus, Service, Stopping
from plimsoll.cli.writing import Writer
from plimsoll.loop import EnvironmentChangedError, RoundResult
from plimsoll.observe.cluster import Observer
from plimsoll.report import Reporter
from tests.builders import an_environment
from tests.looping.cluster import START, ControlledCluster, wanting

LIMIT = 15 * 60
ENVIRONMENT = an_environment(nap=True).model_copy(update={"name": "prod", "uid": "uid-prod"})


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(clock: Clock) -> Service:
    made = Service()
    made.status = ControllerStatus(clock)
    return made


@pytest.fixture
def stopping() -> Iterator[Stopping]:
    """Requested by SIGTERM, while the test runs."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    made = Stopping()
    made.on_signals()
    yield made
    for number, handler in before.items():
        signal.signal(number, handler)


def get(service: Service, path: str) -> tuple[int, dict[str, Any]]:
    """The code and the body of an answer."""
    return {"/healthz": service.healthy, "/readyz": service.ready}[path]()


def test_a_controller_that_begins_no_round_for_15_minutes_is_stuck(service: Service, clock: Clock) -> None:
    service.status.become(ControllerState.ACTIVE, "prod", "me")
    service.status.beat()
    clock.now += LIMIT - 0.1
    code, body = get(service, "/healthz")
    assert (code, body["secondsSinceRound"]) == (200, LIMIT - 0.1)
    clock.now += 0.1
    code, body = get(service, "/healthz")
    assert (code, body["secondsSinceRound"]) == (503, LIMIT)
    assert get(service, "/readyz")[0] == 200, "its watches are synced"
    service.status.beat()
    code, body = get(service, "/healthz")
    assert (code, body["secondsSinceRound"]) == (200, 0)


def test_a_controller_whose_watches_are_never_synced_is_stuck_in_the_end(service: Service, clock: Clock) -> None:
    clock.now += LIMIT
    assert get(service, "/healthz")[0] == 503


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (ControllerState.SYNCING, 503),
        (ControllerState.STARTING, 200),
        (ControllerState.NO_ENVIRONMENT, 200),
        (ControllerState.STANDBY, 200),
        (ControllerState.ACTIVE, 200),
        (ControllerState.STOPPING, 503),
    ],
)
def test_a_controller_is_ready_once_its_watches_are_synced_until_it_stops(
    service: Service, state: ControllerState, code: int
) -> None:
    assert get(service, "/readyz")[0] == 503, "nothing is synced at the start"
    service.status.become(state, "prod", "another")
    found, body = get(service, "/readyz")
    assert found == code
    assert body == {
        "state": state,
        "environment": "prod",
        "leaseHolder": "another",
        "secondsSinceRound": 0,
        "silentWatches": [],
    }
    assert get(service, "/healthz")[0] == 200, "it is not restarted"


def test_a_controller_with_a_silent_watch_is_not_ready_and_names_the_kind(service: Service) -> None:
    silent: list[str] = []
    service.status.watches(lambda: tuple(silent))
    service.status.become(ControllerState.ACTIVE, "prod", "me")
    assert get(service, "/readyz")[0] == 200
    silent.append("NodeClaim")
    code, body = get(service, "/readyz")
    assert (code, body["silentWatches"]) == (503, ["NodeClaim"])
    assert get(service, "/healthz")[0] == 200, "a restart would not help"
    silent.clear()
    assert get(service, "/readyz")[0] == 200


def test_a_controller_that_has_lost_the_lease_is_no_longer_active(
    stopping: Stopping, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, cluster = Service(), ControlledCluster(wanting(1).model_copy(update={"environment": ENVIRONMENT}))
    seen: list[tuple[int, str]] = []

    def started(*_: object) -> None:
        code, body = get(service, "/readyz")
        seen.append((code, body["state"]))
        if len(seen) > 1:
            stopping.request()
            raise WriterStoppingError

    def lost() -> None:
        raise LeaseLostError("lost")

    monkeypatch.setattr(cluster, "start", started)
    cluster.during_apply = lost
    monkeypatch.setattr(
        "plimsoll.cli.controller.controller.cluster_identity", lambda _: SimpleNamespace(uid="uid-of-kube-system")
    )
    cluster.controller(service, stopping, monkeypatch).run()
    assert seen == [(200, "Starting"), (200, "Starting")]


def test_a_signal_ends_readiness_at_once_although_the_running_update_is_finished_first(
    stopping: Stopping, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, cluster = Service(), ControlledCluster(wanting(1).model_copy(update={"environment": ENVIRONMENT}))
    seen: list[tuple[int, str]] = []

    def look() -> None:
        code, body = get(service, "/readyz")
        seen.append((code, body["state"]))

    def terminated() -> None:
        look()
        signal.raise_signal(signal.SIGTERM)
        look()

    cluster.during_apply = terminated
    monkeypatch.setattr(
        "plimsoll.cli.controller.controller.cluster_identity", lambda _: SimpleNamespace(uid="uid-of-kube-system")
    )
    cluster.controller(service, stopping, monkeypatch).run()
    look()
    assert seen == [(200, "Active"), (503, "Stopping"), (503, "Stopping")]
    assert cluster.interrupted


@pytest.mark.parametrize("when", ["opens", "ends"])
def test_a_signal_while_a_writer_opens_or_ends_lets_it_release_the_lease(
    when: str, stopping: Stopping, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, cluster = Service(), ControlledCluster(wanting(1).model_copy(update={"environment": ENVIRONMENT}))
    controller, released = cluster.controller(service, stopping, monkeypatch), list[str]()

    @contextmanager
    def writer_of(*_: object) -> Iterator[Writer]:
        if when == "opens":
            signal.raise_signal(signal.SIGTERM)
        try:
            yield Writer("prod", cast(Observer, cluster), cast(Applier, cluster), cast(Reporter, cluster))
        finally:
            if when == "ends":
                signal.raise_signal(signal.SIGTERM)
            released.append(when)

    def replaced() -> None:
        raise EnvironmentChangedError("another Environment")

    cluster.during_apply = replaced
    monkeypatch.setattr("plimsoll.cli.controller.controller.writer_of", writer_of)
    monkeypatch.setattr(
        "plimsoll.cli.controller.controller.cluster_identity", lambda _: SimpleNamespace(uid="uid-of-kube-system")
    )
    controller.run()
    assert released == [when]
    assert cluster.interrupted == (when == "opens")
    assert get(service, "/readyz")[1]["state"] == "Stopping"


def test_a_job_is_alive_while_its_rounds_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    service, cluster = Service(), ControlledCluster(wanting(1).model_copy(update={"environment": ENVIRONMENT}))
    seen: list[tuple[int, float]] = []

    def look(_: RoundResult) -> bool:
        code, body = get(service, "/healthz")
        seen.append((code, body["secondsSinceRound"]))
        return cluster.now < START + timedelta(seconds=2 * LIMIT)

    cluster.controller(service, Stopping(), monkeypatch).run_once(3 * LIMIT, look, LIMIT / 2)
    assert len(seen) > 4
    assert set(seen) == {(200, 0)}
