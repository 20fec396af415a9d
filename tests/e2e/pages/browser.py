"""A headless Chromium, and checks of its pages."""

import shutil
from typing import Any, Final

import psutil
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
SERIOUS: Final = ("serious", "critical")


def chromium() -> str | None:
    """The system's Chromium; nothing is downloaded."""
    return next((found for name in CHROMIUM if (found := shutil.which(name))), None)


def accessibility_findings(page: Page) -> list[str]:
    """Serious findings of axe, with the elements."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes'][:3]]}"
        for each in found
        if each["impact"] in SERIOUS
    ]


class Console:
    """Errors of a page: console messages, exceptions and failed requests."""

    def __init__(self, page: Page) -> None:
        self.errors: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("requestfailed", self._failed)
        self.hosts: set[str] = set()
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def _failed(self, request: Any) -> None:
        # What a page that is left still loads is given up, as its stream of events.
        if request.failure != "net::ERR_ABORTED" and not request.url.endswith("/events"):
            self.errors.append(f"{request.url}: {request.failure}")


def tab_bytes() -> int:
    """Memory of the largest renderer process below this process, without shared pages. Each tab has one process."""
    renderers = [
        child for child in psutil.Process().children(recursive=True) if "--type=renderer" in " ".join(child.cmdline())
    ]
    return max(child.memory_full_info().uss for child in renderers)
