"""The Lease allows one writer at a time."""

import copy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from plimsoll.apply import (
    EXPIRED_HOLDERS,
    POD_UID,
    Lease,
    LeaseHeldError,
    LeaseLostError,
    LeaseSettings,
    NamespaceMissingError,
    WriterStoppingError,
    boot_clock,
)
from plimsoll.kube import ConnectionFailedError, RequestError
from tests.awaiting import await_condition

SETTINGS = LeaseSettings(duration=3.0, renew_deadline=2.0, retry_period=0.01)


class FakeApiserver:
    """An apiserver with one Lease and optimistic locking."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.down = False
        self.writes = 0
        self.lock = threading.Lock()

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        with self.lock:
            if self.down:
                raise ConnectionFailedError("the cluster cannot be reached")
            if method == "POST":
                if self.lease is not None:
                    raise RequestError(409, "AlreadyExists", "exists")
                self.lease = {}
            if self.lease is None:
                raise RequestError(404, "NotFound", "not found")
            if method == "GET":
                return copy.deepcopy(self.lease)
            version = self.lease.get("metadata", {}).get("resourceVersion")
            if method == "PUT" and body["metadata"].get("resourceVersion") != version:
                raise RequestError(409, "Conflict", "modified")
            self.writes += 1
            self.lease = copy.deepcopy(body)
            self.lease["metadata"]["resourceVersion"] = str(self.writes)
            return copy.deepcopy(self.lease)

    @property
    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])

    def held_by(self, holder: str) -> None:
        spec = {"holderIdentity": holder, "renewTime": "then", "leaseDurationSeconds": 3}
        self.lease = {"metadata": {"name": "plimsoll", "resourceVersion": "0"}, "spec": spec}


class Clock:
    """A clock in seconds that advances by one step each time it is read."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def a_lease(
    server: FakeApiserver,
    identity: str = "here_1_a",
    clock: Callable[[], float] | None = None,
    on_lost: Callable[[LeaseLostError], None] = lambda _: None,
    settings: LeaseSettings = SETTINGS,
) -> Lease:
    connection: Any = server
    return Lease(connection, settings, on_lost, identity=identity, clock=clock or Clock())


@contextmanager
def acquired(lease: Lease, wait: float | None = 0.0) -> Iterator[Lease]:
    lease.acquire(wait)
    try:
        yield lease
    finally:
        lease.release()


@pytest.fixture
def server() -> FakeApiserver:
    return FakeApiserver()


def test_the_first_writer_creates_and_releases_the_lease(server: FakeApiserver) -> None:
    with acquired(a_lease(server)) as lease:
        assert lease.held
        assert server.holder == "here_1_a"
    assert not lease.held
    assert server.holder == ""


def test_a_released_lease_is_taken_at_once(server: FakeApiserver) -> None:
    server.held_by("")
    with acquired(a_lease(server)) as lease:
        assert lease.expired_holders == ()


def test_a_lease_lasts_as_long_as_its_holder_counts_on(server: FakeApiserver) -> None:
    with acquired(a_lease(server, settings=LeaseSettings(duration=10.4, renew_deadline=10.3, retry_period=5.0))):
        assert server.lease is not None
        assert server.lease["spec"]["leaseDurationSeconds"] == 11


def test_an_expired_lease_is_taken_over_and_its_holder_is_recorded(server: FakeApiserver) -> None:
    server.held_by("there_1_b")
    clock = Clock(step=0.5)
    with acquired(a_lease(server, clock=clock)) as lease:
        assert clock.now > SETTINGS.duration
        assert server.holder == "here_1_a"
        assert list(lease.expired_holders) == ["there_1_b"]
        lease.forget_expired_holders()
        assert list(lease.expired_holders) == []
        assert server.lease is not None
        assert EXPIRED_HOLDERS not in server.lease["metadata"]["annotations"]


def test_an_expired_lease_is_taken_as_soon_as_it_expires(
    server: FakeApiserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.held_by("there_1_b")
    clock = Clock()
    monkeypatch.setattr(time, "sleep", lambda seconds: setattr(clock, "now", clock.now + seconds))
    with acquired(a_lease(server, clock=clock, settings=SETTINGS.model_copy(update={"retry_period": 0.4}))):
        assert clock.now == SETTINGS.duration, "not at the end of a retry period, which would be 3.2 s"


def test_expired_holders_that_were_not_forgotten_stay_recorded(server: FakeApiserver) -> None:
    server.held_by("there_1_b")
    assert server.lease is not None
    server.lease["metadata"]["annotations"] = {EXPIRED_HOLDERS: "far_1_c"}
    with acquired(a_lease(server, clock=Clock(step=0.5))) as lease:
        assert lease.expired_holders == ("far_1_c", "there_1_b")


def test_a_writer_that_may_have_left_locks_is_recorded_when_it_releases_the_lease(server: FakeApiserver) -> None:
    for unlocked, recorded in ((True, ()), (False, ("here_1_a",))):
        lease = a_lease(server)
        lease.acquire()
        lease.release(unlocked=unlocked)
        with acquired(a_lease(server)) as another:
            assert another.expired_holders == recorded


def test_a_held_lease_is_an_error_that_names_the_holder(server: FakeApiserver) -> None:
    server.held_by("there_1_b")

    def renew() -> None:
        assert server.lease is not None
        server.lease["spec"]["renewTime"] += "+"

    with pytest.raises(LeaseHeldError, match="there_1_b"):
        a_lease(server).acquire(0.0, go_on=renew)
    assert server.holder == "there_1_b"


def test_waiting_for_the_lease_can_be_interrupted(server: FakeApiserver) -> None:
    server.held_by("there_1_b")

    def stop() -> None:
        raise LeaseLostError("stopped")

    with pytest.raises(LeaseLostError, match="stopped"):
        a_lease(server).acquire(None, go_on=stop)


def test_after_give_up_the_lease_is_not_acquired_or_used(server: FakeApiserver) -> None:
    with acquired(a_lease(server)) as lease:
        assert lease.usable
        lease.require()
        lease.give_up()
        assert lease.held and not lease.usable
        with pytest.raises(WriterStoppingError):
            lease.require()
    for holder in ("there_1_b", ""):
        server.held_by(holder)
        with pytest.raises(WriterStoppingError):
            lease.acquire(None)
        assert server.holder == holder


def test_require_raises_an_error_without_the_lease(server: FakeApiserver) -> None:
    lease = a_lease(server)
    assert not lease.usable
    with pytest.raises(LeaseLostError):
        lease.require()


def test_a_missing_namespace_is_an_error_with_a_hint(server: FakeApiserver) -> None:
    def no_namespace(method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        raise RequestError(404, "NotFound", "namespace not found")

    server.request = no_namespace  # type: ignore[method-assign]
    with pytest.raises(NamespaceMissingError, match="foundation"):
        a_lease(server).acquire()


def test_a_lease_taken_by_another_writer_is_lost(server: FakeApiserver) -> None:
    lost = threading.Event()
    with acquired(a_lease(server, on_lost=lambda _: lost.set())) as lease:
        server.held_by("thief_1_x")
        assert lost.wait(120)
        assert not lease.held
    assert server.holder == "thief_1_x"


def test_a_deleted_lease_is_lost(server: FakeApiserver) -> None:
    reasons: list[str] = []
    lost = threading.Event()

    def note(error: LeaseLostError) -> None:
        reasons.append(error.message)
        lost.set()

    with acquired(a_lease(server, on_lost=note)):
        server.lease = None
        assert lost.wait(120)
    assert "deleted" in reasons[0]


def test_an_unreachable_apiserver_loses_the_lease_after_the_renew_deadline(server: FakeApiserver) -> None:
    clock = Clock()
    lost = threading.Event()
    with acquired(a_lease(server, clock=clock, on_lost=lambda _: lost.set())) as lease:
        server.down = True
        clock.now = SETTINGS.renew_deadline - 0.1
        assert lease.held
        clock.now = SETTINGS.renew_deadline + 0.1
        assert not lease.held
        assert lost.wait(120)


@pytest.mark.parametrize("hanging", ["PUT", "GET"])
def test_what_runs_is_interrupted_at_the_renew_deadline_although_the_apiserver_hangs(
    hanging: str, server: FakeApiserver
) -> None:
    """A GET follows a renewal that conflicts."""
    clock = Clock()
    lost: list[float] = []
    known = threading.Event()

    def note(_: LeaseLostError) -> None:
        lost.append(clock.now)
        known.set()

    def hang(method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        if method != hanging:
            raise RequestError(409, "Conflict", "modified")
        clock.now += options.get("timeout", 30.0)
        raise ConnectionFailedError("no answer")

    lease = a_lease(server, clock=clock, on_lost=note)
    with acquired(lease):
        clock.now = SETTINGS.renew_deadline * 0.75
        server.request = hang  # type: ignore[method-assign]
        assert known.wait(120)
        lease.release()
    assert lost == [SETTINGS.renew_deadline]


def test_a_suspended_process_no_longer_holds_the_lease(server: FakeApiserver) -> None:
    clock = Clock()
    with acquired(a_lease(server, clock=clock)) as lease:
        server.down = True
        clock.now = 3600.0
        assert not lease.held


def test_a_resumed_process_loses_the_lease_before_it_asks_the_apiserver(server: FakeApiserver) -> None:
    clock, lost = Clock(), threading.Event()
    with acquired(a_lease(server, clock=clock, on_lost=lambda _: lost.set())):
        before = server.writes
        clock.now = 3600.0
        assert lost.wait(120)
        assert server.writes == before


def test_the_clock_counts_the_suspension_of_the_host() -> None:
    read = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert read <= boot_clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.mark.parametrize(
    ("answer", "identity"),
    [
        ({"status": {"userInfo": {"extra": {POD_UID: ["u-1"]}}}}, "here_1_a.u-1"),
        ({"status": {"userInfo": {"username": "admin"}}}, "here_1_a"),
        (RequestError(404, "NotFound", "no such kind"), "here_1_a"),
        (RequestError(403, "Forbidden", "not allowed"), "here_1_a"),
    ],
)
def test_the_identity_has_the_uid_of_the_pod_by_which_the_apiserver_knows_it(
    server: FakeApiserver, answer: Any, identity: str
) -> None:
    def review(method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        assert (method, path.rpartition("/")[2]) == ("POST", "selfsubjectreviews")
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    server.request = review  # type: ignore[method-assign]
    lease = a_lease(server)
    lease.identify()
    lease.identify()
    assert lease.identity == identity


def test_a_new_label_on_the_lease_does_not_lose_it(server: FakeApiserver) -> None:
    with acquired(a_lease(server)) as lease:
        with server.lock:  # not in the middle of a renewal, which would replace it
            assert server.lease is not None
            server.lease["metadata"] |= {"labels": {"a": "b"}, "resourceVersion": "other"}
            before = server.writes
        await_condition(lambda: server.writes > before)
        assert lease.held
        assert server.lease["metadata"]["labels"] == {"a": "b"}


def test_an_unexpected_error_of_a_renewal_is_no_silent_loss(server: FakeApiserver) -> None:
    """Such as that of a library; the thread that renews goes on, and says when the Lease is lost."""
    lost = threading.Event()
    clock = Clock()
    answer = server.request

    def failing(method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        raise RuntimeError("unexpected")

    with acquired(a_lease(server, clock=clock, on_lost=lambda _: lost.set())) as lease:
        server.request = failing  # type: ignore[method-assign]
        clock.now += SETTINGS.renew_deadline
        assert lost.wait(120)
        assert not lease.held
        server.request = answer  # type: ignore[method-assign]
