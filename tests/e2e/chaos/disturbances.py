"""The disturbances of a chaos run. Each lasts as long as its context."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import psutil

from plimsoll.kube import RequestError
from plimsoll.observe.cluster import Stores
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.chaos.changes import Changes, workspace
from tests.e2e.chaos.clock import Clock
from tests.e2e.chaos.judge import Epoch
from tests.e2e.chaos.loops import Loop, Loops
from tests.e2e.chaos.proxy import Proxy, Request
from tests.e2e.chaos.states import States, checkpoints, copy_of, put_back
from tests.e2e.chaos.tenant import Tenant
from tests.e2e.chaos.witness import Witness
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.restoring import back_up, process_of, start_from, stop_control_plane

LEASE = ("coordination.k8s.io/v1", "Lease", "plimsoll", "plimsoll-system")
_START_SECONDS = 180.0


@dataclass
class Stage:
    """The parts that can be disturbed."""

    sandbox: Sandbox
    loops: Loops
    proxy: Proxy
    cluster: Kube
    changes: Changes
    witness: Witness
    tenant: Tenant
    clock: Clock
    states: States
    disk: Path | None
    """A small file system for the states; None if none can be mounted."""
    folder: Path
    random: Random
    copy: dict[str, bytes] = field(default_factory=dict)
    """The states as they once were."""
    epochs: list[Epoch] = field(default_factory=list)
    """Restorations of etcd."""
    missed: list[str] = field(default_factory=list)
    """Disturbances that had nothing to disturb."""
    told: list[float] = field(default_factory=list)
    """Seconds from the silence of a watch until the controller said so."""

    def note_states(self) -> None:
        """Copies the states, sometimes: a copy may be some disturbances old."""
        if not self.copy or self.random.random() < 0.3:
            self.copy = copy_of(self.states)

    @property
    def holder(self) -> str:
        """Who holds the Lease."""
        lease = self.cluster.get(*LEASE) or {}
        return str((lease.get("spec") or {}).get("holderIdentity") or "")


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
        stage.random.choice(await_condition(stage.loops.first.engines, 120, "an engine")).kill()
    except (AssertionError, psutil.NoSuchProcess):  # none runs while the loop has no Lease
        stage.missed.append("an engine is killed")
    yield


def paused(*, loop: bool, engines: bool) -> Disturbance:
    """A process is stopped for longer than the Lease lasts, so that a second writer takes over, and then goes on where
    it was. Engines alone are stopped for a moment, while their loop renews the Lease."""

    @contextmanager
    def stopped(stage: Stage) -> Iterator[None]:
        first = stage.loops.first
        if not loop:
            with ExitStack() as stack:

                def some() -> int:
                    """None runs while the loop has no Lease, nor between two updates."""
                    return stack.enter_context(stage.loops.first.paused(loop=False, engines=True))

                try:
                    await_condition(some, _START_SECONDS, "an engine")
                except AssertionError:
                    stage.missed.append("engines are paused")
                yield
            return
        second = stage.loops.beside()
        await_condition(lambda: not second.runs or _is_ready(second), _START_SECONDS, "a second writer that is ready")
        before = first.log.read_text()
        with first.paused(loop=True, engines=engines):
            held = stage.holder
            await_condition(lambda: stage.holder not in ("", held), _START_SECONDS, "the second writer takes over")
            yield
        # It says so before it does anything else.
        await_condition(lambda: _lost(first.log.read_text()[len(before) :]), _START_SECONDS, "the first has lost it")
        stage.loops.succeed(second)

    return stopped


def _is_ready(writer: Loop) -> bool:
    log = writer.log.read_text()
    return "waiting for the Lease" in log or "the controller is active" in log


def _lost(log: str) -> bool:
    return any(said in log for said in ("lost the Lease", "the Lease is lost", "waiting for the Lease"))


@contextmanager
def watch_silenced(stage: Stage) -> Iterator[None]:
    """One kind is neither delivered nor ended, and everything else works. It lasts until the controller says so."""
    names = {store.kind.path: store.kind.name for store in Stores()}
    path = stage.random.choice(sorted(stage.proxy.watched & names.keys()))
    name, first = names[path], stage.loops.first
    known, began = len(first.log.read_text()), time.monotonic()
    stage.proxy.silences = lambda request: request.watches and request.path == path
    try:
        yield
        said = f"{name}: the watch delivered nothing"
        await_condition(
            lambda: stage.loops.first is not first or said in first.log.read_text()[known:], 120, f"{name} is silent"
        )
        if stage.loops.first is first:
            stage.told.append(time.monotonic() - began)
    finally:
        stage.proxy.silences = lambda _: False


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
    apiserver = process_of(stage.sandbox, "kube-apiserver")
    apiserver.suspend()
    try:
        yield
    finally:
        apiserver.resume()


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
def state_damaged(stage: Stage) -> Iterator[None]:
    """A checkpoint is cut off while no controller runs."""
    with stage.loops.away():
        found = checkpoints(stage.states)
        if found:
            name = stage.random.choice(found)
            content = stage.states.read(name)
            stage.states.write(name, content[: stage.random.randrange(len(content))])
        else:
            stage.missed.append("a state is damaged")
    yield


@contextmanager
def states_restored(stage: Stage) -> Iterator[None]:
    """Older states take the place of all, with the locks that they had, while no controller runs."""
    with stage.loops.away():
        put_back(stage.states, stage.copy)
    yield


@contextmanager
def etcd_restored(stage: Stage) -> Iterator[None]:
    """Controllers go on while the whole control plane is stopped, and started with the etcd of some seconds before.
    What was declared meanwhile is declared again."""
    backup = back_up(stage.sandbox, stage.cluster, stage.folder / f"etcd-{len(stage.epochs)}")
    yield
    with stage.changes.paused, stage.witness.away():
        stop_control_plane(stage.sandbox)
        with stage.sandbox.folder.audit_log.open("ab") as log:
            log.write(b"\n")  # it may have ended in the middle of a line
        stage.epochs.append(Epoch(stage.sandbox.folder.audit_log.stat().st_size, backup.revision))
        start_from(stage.sandbox, backup, stage.cluster, workspace("admitted", 1))
        stage.tenant.kube.reconnect()
        stage.proxy.trust()
        stage.changes.declare_again()


@contextmanager
def tenant_attacks(stage: Stage) -> Iterator[None]:
    stage.tenant.attack()
    try:
        yield
    finally:
        stage.tenant.retreat()


@contextmanager
def clock_jumped(stage: Stage) -> Iterator[None]:
    """The controllers' wall clock is wrong for a while; see `clock.py` for what that is not. It is ahead by less than
    NodeClaims have until they are launched: beyond that they count as failed, and are tried again minutes later."""
    stage.clock.ahead = stage.random.choice([-7200.0, -600.0, 120.0, 240.0])
    try:
        yield
    finally:
        stage.clock.ahead = 0.0


@contextmanager
def lease_time_moved(stage: Stage) -> Iterator[None]:
    """Changes the time in the Lease, as a holder with another clock would write it."""
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
    "the loop is paused": paused(loop=True, engines=False),
    "engines are paused": paused(loop=False, engines=True),
    "the loop and its engines are paused": paused(loop=True, engines=True),
    "a watch is silenced": watch_silenced,
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
    "a state is damaged": state_damaged,
    "older states are restored": states_restored,
    "an older etcd is restored": etcd_restored,
    "a tenant attacks": tenant_attacks,
    "the clock jumps": clock_jumped,
    "the time in the Lease is moved": lease_time_moved,
}


ALWAYS = (
    "the loop is paused",
    "engines are paused",
    "the loop and its engines are paused",
    "a watch is silenced",
    "a state is damaged",
    "older states are restored",
    "an older etcd is restored",
    "a tenant attacks",
    "the clock jumps",
)
"""Kinds that a short run has too: nothing else in the tests has them while everything changes."""


def schedule(number: int, random: Random, possible: list[str]) -> list[str]:
    """Every kind of disturbance once before any is repeated, those of `ALWAYS` even if fewer than all are drawn."""
    drawn: list[str] = []
    while len(drawn) < number:
        others = [name for name in possible if name not in ALWAYS]
        turn = [*ALWAYS, *random.sample(others, len(others))][: number - len(drawn)]
        drawn += random.sample(turn, len(turn))
    return drawn


def hold(random: Random) -> None:
    """Seconds, from shorter than a request to longer than the Lease duration."""
    time.sleep(random.choice([0.3, 1.0, 2.5, 5.0, 8.0]))
