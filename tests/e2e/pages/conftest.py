"""A browser for the pages of the example."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.pages.browser import Console, chromium
from tests.ui.conftest import address, example, feed

__all__ = ["address", "example", "feed"]


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
    page.set_default_timeout(60_000)
    yield page
    context.close()


@pytest.fixture
def console(page: Page) -> Console:
    return Console(page)
