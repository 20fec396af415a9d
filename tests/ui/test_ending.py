"""`plimsoll ui` ends at once, also while a page is open."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.applications import Starlette
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.model import Snapshot
from plimsoll.ui import Feed
from tests.pages import CHECKOUT


def test_open_pages_are_released_before_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    feeds: list[Feed] = []
    released: list[bool] = []

    def feed_of(snapshot: Snapshot, **more: bool) -> Feed:
        feeds.append(Feed(snapshot, **more))
        return feeds[0]

    @contextmanager
    def serve(_app: Starlette, _host: str, _port: int) -> Iterator[str]:
        signal.raise_signal(signal.SIGTERM)
        yield "http://localhost/"
        released.append(feeds[0].closed)

    monkeypatch.setattr("plimsoll.ui.serve", serve)
    monkeypatch.setattr("plimsoll.ui.Feed", feed_of)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        done = CliRunner().invoke(app, ["ui", "--no-open", "-f", str(CHECKOUT / "examples" / "byo")])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert (done.exit_code, released) == (0, [True]), done.output
