"""The event stream of the pages, on an event loop whose time passes at once: it announces each change, and a comment
keeps the connection open through a proxy while nothing changes."""

import asyncio
import selectors
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.model import Snapshot
from plimsoll.ui import Feed, create_app
from tests.builders import NC24, a_claim, a_snapshot, a_workspace

ALIVE = ": alive\n\n"
Step = Callable[[Feed], None]
Clock = Callable[[], datetime]
NOW = datetime(2026, 11, 22, 9, 13, tzinfo=UTC)


class SkippingLoop(asyncio.SelectorEventLoop):
    """Skips the time until the next timer."""

    def __init__(self) -> None:
        super().__init__(_SkippingSelector(self))
        self.skipped = 0.0

    def time(self) -> float:
        return self.skipped


class _SkippingSelector(selectors.DefaultSelector):
    def __init__(self, loop: SkippingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self._loop.skipped += timeout
        return super().select(None if timeout is None else 0)


def read(feed: Feed, *steps: Step, clock: Clock = lambda: NOW) -> list[tuple[float, str]]:
    """What /events sends, and after how many seconds. Each step is taken when something was sent. Versions are numbers
    from 1, in their order."""
    sent: list[tuple[float, str]] = []
    left = list(steps)

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()  # the browser stays
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        if not message.get("body"):
            return
        sent.append((round(asyncio.get_running_loop().time(), 1), message["body"].decode()))
        if left:
            left.pop(0)(feed)

    async def request() -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/events",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        answer: Awaitable[None] = create_app(feed, clock=clock)(scope, receive, send)
        await asyncio.wait_for(answer, 600)

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(request())
    versions = list(dict.fromkeys(text for _, text in sent if text != ALIVE))
    return [(seconds, text if text == ALIVE else f"data: {versions.index(text) + 1}\n\n") for seconds, text in sent]


def nothing(_: Feed) -> None:
    """The cluster stays as it is."""


def publish(snapshot: Snapshot) -> Step:
    return lambda feed: feed.publish(snapshot)


def test_a_comment_is_sent_after_each_15_seconds_without_a_change() -> None:
    sent = read(Feed(a_snapshot()), nothing, nothing, nothing, Feed.close)
    assert sent == [(0, "data: 1\n\n"), (15.2, ALIVE), (30.2, ALIVE), (45.2, ALIVE)]


def test_a_change_is_announced_after_a_comment_and_the_time_starts_anew() -> None:
    sent = read(Feed(a_snapshot()), nothing, publish(a_snapshot(nap=True)), nothing, Feed.close)
    assert sent == [(0, "data: 1\n\n"), (15.2, ALIVE), (15.2, "data: 2\n\n"), (30.4, ALIVE)]


def test_a_plan_that_changes_by_itself_is_announced() -> None:
    workspace = a_workspace(selector={}, instance_type=NC24)
    claim = a_claim("c", workspace, created="2026-11-22T09:12:30Z")
    now = [NOW]

    def pass_deadline(_: Feed) -> None:
        for thread in threading.enumerate():
            if thread.name == "preparing":
                thread.join()  # the plan is made
        now[0] += timedelta(days=1)

    feed = Feed(a_snapshot(workspace, claim, nap=True))
    sent = read(feed, nothing, pass_deadline, nothing, Feed.close, clock=lambda: now[0])
    assert sent == [(0, "data: 1\n\n"), (15.2, ALIVE), (15.2, "data: 2\n\n"), (30.4, ALIVE)]
