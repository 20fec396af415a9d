"""A server for the pages, and a browser."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from plimsoll.model import Snapshot
from plimsoll.observe.files import snapshot_from_files
from plimsoll.ui import Feed, create_app, serve
from tests.pages import CHECKOUT
from tests.ui.browser import Console, chromium

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = chromium()
    if found is None:
        pytest.skip("there is no Chromium: `make browser` installs it")
    with sync_playwright() as playwright:
        # As root Chromium has no sandbox of its own.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(10_000)
    yield page
    context.close()


@pytest.fixture
def console(page: Page) -> Console:
    return Console(page)
