"""The disturbances of a chaos run. Each lasts as long as its context."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import psutil

from plimsoll.kube import RequestError
from tests.awaiting import await_condition
from tests.e2e.chaos.loops import Loops
from tests.e2e.chaos.proxy import Proxy, Request
from tests.e2e.cluster.kube import Kube

LEASE = ("coordination.k8s.io/v1", "Lease", "plimsoll", "plimsoll-system")
_START_SECONDS = 60.0


@dataclass
class Stage:
    """The parts that can be disturbed."""

    loops: Loops
    proxy: Proxy
    cluster: Kube
    apiserver: psutil.Process
    disk: Path | None
    """A small file system for the states; None if none can be mounted."""
    random: Random
    missed: list[str] = field(default_factory=list)
    """Disturbances that had nothing to disturb."""


Disturbance = Callable[[Stage], AbstractContextManager[None]]


@contextmanager
def loop_killed(stage: Stage) -> Iterator[None]:
    stage.loops.kill(group=False)
    yield


@contextmanager
def group_killed(stage: Stage) -> Iterator[None]:
    """Kills the controller and its engines together, as when a container is killed."""
    stage.loops.kill(group=True)
    yield


@contextmanager
def engine_killed(stage: Stage) -> Iterator[None]:
    try:
        stage.random.choice(await_condition(stage.loops.first.engines, 10, "an engine")).kill()
    except (AssertionError, psutil.NoSuchProcess):  # none runs while the loop has no Lease
        stage.missed.append("an engine is killed")
    yield


@contextmanager
def second_writer(stage: Stage) -> Iterator[None]:
    """A second writer that waits and is stopped, or that takes over after the first is killed."""
    second = stage.loops.beside()
    await_condition(
        lambda: (
            not second.runs
            or "waiting for the Lease" in second.log.read_text()
            or "the controller is active" in second.log.read_text()
        ),
        _START_SECONDS,
        "a second writer that waits for the Lease",
    )
    yield
    if stage.random.random() < 0.5:
        stage.loops.replace(second)
    elif stage.random.random() < 0.5:
        second.kill()
    elif second.runs:
        assert second.stop() == 0, "a second writer ends well"


@contextmanager
def apiserver_frozen(stage: Stage) -> Iterator[None]:
    stage.apiserver.suspend()
    try:
        yield
    finally:
        stage.apiserver.resume()


@contextmanager
def network_cut(stage: Stage) -> Iterator[None]:
    stage.proxy.closed = True
    stage.proxy.cut()
    try:
        yield
    finally:
        stage.proxy.closed = False


@contextmanager
def network_silent(stage: Stage) -> Iterator[None]:
    """Packets are lost without an error, and delivered late."""
    stage.proxy.silent = True
    try:
        yield
    finally:
        stage.proxy.silent = False


@contextmanager
def network_slow(stage: Stage) -> Iterator[None]:
    stage.proxy.delay = stage.random.uniform(0.05, 0.4)
    try:
        yield
    finally:
        stage.proxy.delay = 0.0


@contextmanager
def connections_reset(stage: Stage) -> Iterator[None]:
    """Responses are lost, although the requests were executed."""
    stage.proxy.cut()
    yield
    stage.proxy.cut()


@contextmanager
def disk_full(stage: Stage) -> Iterator[None]:
    assert stage.disk is not None
    filler = stage.disk / "filler"
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"\0" * 65536)
            file.flush()
    try:
        yield
    finally:
        filler.unlink()


def answering(code: int, share: float, which: Callable[[Request], bool]) -> Disturbance:
    """A fraction of these requests is refused."""

    @contextmanager
    def refused(stage: Stage) -> Iterator[None]:
        chance, before = Random(stage.random.random()), stage.proxy.refused
        stage.proxy.refuse = lambda request: code if which(request) and chance.random() < share else 0
        if code == 410:
            stage.proxy.cut()  # so that the watches ask again, for versions that are gone
        try:
            yield
        finally:
            stage.proxy.refuse = lambda _: 0
        if stage.proxy.refused == before:  # a short one, between two requests
            stage.missed.append(f"requests are answered with {code}")

    return refused


@contextmanager
def clock_moved(stage: Stage) -> Iterator[None]:
    """Changes the time in the Lease, as a holder with another clock would write it. The clocks of processes cannot be
    changed here."""
    by = timedelta(hours=stage.random.choice([-2, -1, 1, 2]))
    moved = (datetime.now(UTC) + by).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    api_version, kind, name, namespace = LEASE
    try:
        stage.cluster.patch(api_version, kind, name, {"spec": {"renewTime": moved}}, namespace)
    except RequestError:  # before the first loop has made it
        stage.missed.append("the time in the Lease is moved")
    yield


DISTURBANCES: dict[str, Disturbance] = {
    "the loop is killed": loop_killed,
    "the loop and its engines are killed": group_killed,
    "an engine is killed": engine_killed,
    "a second writer is started": second_writer,
    "the apiserver is frozen": apiserver_frozen,
    "the network is cut": network_cut,
    "the network is silent": network_silent,
    "the network is slow": network_slow,
    "connections are reset": connections_reset,
    "the disk is full": disk_full,
    "writes are answered with 409": answering(409, 0.5, lambda request: request.writes),
    "requests are answered with 429": answering(429, 0.5, lambda request: not request.watches),
    "requests are answered with 500": answering(500, 0.3, lambda _: True),
    "watches are answered with 410": answering(410, 1.0, lambda request: request.watches),
    "the time in the Lease is moved": clock_moved,
}


def schedule(number: int, random: Random, possible: list[str]) -> list[str]:
    """Every kind of disturbance once before any is repeated."""
    drawn: list[str] = []
    while len(drawn) < number:
        drawn += random.sample(possible, len(possible))
    return drawn[:number]


def hold(random: Random) -> None:
    """Seconds, from shorter than a request to longer than the Lease duration."""
    time.sleep(random.choice([0.3, 1.0, 2.5, 5.0, 8.0]))
