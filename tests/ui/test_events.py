"""The event stream of the pages, on an event loop whose time passes at once: it announces each change, and a comment
keeps the connection open through a proxy while nothing changes."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from plimsoll.model import Snapshot
from plimsoll.ui import Feed, create_app
from tests.builders import a_snapshot

ALIVE = ": alive\n\n"
Step = Callable[[Feed], None]


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


def read(feed: Feed, *steps: Step) -> list[tuple[float, str]]:
    """What /events sends, and after how many seconds. Each step is taken when something was sent."""
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
        answer: Awaitable[None] = create_app(feed)(scope, receive, send)
        await asyncio.wait_for(answer, 600)

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(request())
    return sent


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
