"""A server for the pages."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from plimsoll.model import Snapshot
from plimsoll.observe.files import snapshot_from_files
from plimsoll.ui import Feed, create_app, serve
from tests.pages import CHECKOUT

NOW = datetime(2026, 11, 22, 9, 13, tzinfo=UTC)
"""A moment of the example."""


@pytest.fixture(scope="session")
def example() -> Snapshot:
    return snapshot_from_files([str(CHECKOUT / "examples" / "cluster")])


@pytest.fixture
def feed(example: Snapshot) -> Iterator[Feed]:
    feed = Feed(example)
    yield feed
    feed.close()


@pytest.fixture
def address(feed: Feed) -> Iterator[str]:
    with serve(create_app(feed, clock=lambda: NOW), "127.0.0.1", 0) as address:
        yield address
        feed.close()
