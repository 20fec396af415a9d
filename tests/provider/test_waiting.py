"""Waits go on while the apiserver does not answer, pause between failed requests, and keep the object's last state."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.kube import ConnectionFailedError, Interruption, NotReadyError, RequestError, Waiting

UNREACHABLE = ConnectionFailedError("unreachable")
UNAVAILABLE = RequestError(503, "", "unavailable")
FORBIDDEN = RequestError(403, "Forbidden", "forbidden")


def a_pod(*, ready: bool = False) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": "True"}]} if ready else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "status": status}


class Answers:
    """Objects whose watches and reads have the given results, one after the other; the last one is repeated."""

    def __init__(self, watches: Sequence[PlimsollError], reads: Sequence[PlimsollError | dict[str, Any]]) -> None:
        self.watches, self.reads = watches, reads
        self.watched = self.read = 0

    @contextmanager
    def watch(self, *_: Any) -> Iterator[Any]:
        self.watched += 1
        raise self.watches[min(self.watched, len(self.watches)) - 1]
        yield

    def get(self, *_: Any) -> dict[str, Any] | None:
        self.read += 1
        found = self.reads[min(self.read, len(self.reads)) - 1]
        if isinstance(found, PlimsollError):
            raise found
        return found


class NoPause(Interruption):
    """Counts the pauses instead of sleeping."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def waiting(answers: Any, seconds: float = 600.0) -> tuple[Waiting, NoPause]:
    pauses = NoPause()
    return Waiting(answers, pauses, seconds), pauses


def test_a_wait_outlasts_an_apiserver_that_does_not_answer() -> None:
    wait, pauses = waiting(Answers([UNREACHABLE], [UNREACHABLE, UNAVAILABLE, a_pod(), a_pod(ready=True)]))
    assert wait.until_ready(a_pod()) == a_pod(ready=True)
    assert pauses.pauses == sorted(pauses.pauses) and len(set(pauses.pauses)) == 4, "longer after each failure"


def test_where_watches_are_refused_the_object_is_read_at_intervals() -> None:
    answers = Answers([FORBIDDEN], [a_pod()] * 50 + [a_pod(ready=True)])
    wait, pauses = waiting(answers)
    wait.until_ready(a_pod())
    assert len(pauses.pauses) == answers.read == 51
    assert pauses.pauses[-1] > 5


def test_an_object_is_read_at_intervals_where_watches_end_at_once() -> None:
    class Ending(Answers):
        @contextmanager
        def watch(self, *_: Any) -> Iterator[Any]:
            yield ()

    answers = Ending([], [a_pod()] * 5 + [a_pod(ready=True)])
    wait, pauses = waiting(answers)
    wait.until_ready(a_pod())
    assert len(pauses.pauses) == answers.read == 6


@pytest.mark.parametrize("code", [401, 403])
def test_an_object_that_may_not_be_read_ends_the_wait_with_its_last_state(code: int) -> None:
    wait, _ = waiting(Answers([UNREACHABLE], [RequestError(code, "", "refused")]))
    with pytest.raises(NotReadyError, match="Pod d/p cannot be read: refused") as caught:
        wait.until_ready(a_pod())
    assert caught.value.live == a_pod()


@pytest.mark.parametrize(
    "live",
    [
        a_pod(),
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "p", "namespace": "d", "generation": 1}},
        a_pod() | {"kind": "Service", "spec": {"type": "LoadBalancer"}},
    ],
    ids=lambda live: live["kind"],
)
def test_an_object_that_is_deleted_during_the_wait_is_not_ready(live: dict[str, Any]) -> None:
    wait, _ = waiting(Answers([UNREACHABLE], [{}]))
    with pytest.raises(NotReadyError, match="d/p was deleted during the wait") as caught:
        wait.until_ready(live)
    assert caught.value.live == live


def test_an_outage_until_the_timeout_keeps_the_last_state() -> None:
    wait, _ = waiting(Answers([UNREACHABLE], [UNREACHABLE]), seconds=0.01)
    with pytest.raises(NotReadyError, match="is not ready in time") as caught:
        wait.until_ready(a_pod())
    assert caught.value.live == a_pod()
