"""The pages as a web application: read-only, same-origin only."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plimsoll.errors import PlimsollError
from plimsoll.model.api import WorkspaceRef
from plimsoll.ui.feed import Feed
from plimsoll.ui.pages import Pages
from plimsoll.ui.state import Clock, States

Events = Callable[[WorkspaceRef], list[dict[str, Any]]]
"""The Events about a Workspace, as `plimsoll.observe.cluster.events_about` gives them."""

_ALIVE_SECONDS: Final = 15.0
"""A comment is sent after this many seconds without a change, so that proxies keep the connection open."""
_CALM_SECONDS: Final = 0.2
"""Changes within this many seconds are announced together."""
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def create_app(
    feed: Feed,
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
    events: Events = lambda _: [],
    clock: Clock = lambda: datetime.now(UTC),
) -> Starlette:
    """The application. It answers requests for `hosts` only; `*` is any, for a proxy that checks them itself."""
    states = States(feed, clock)
    pages = Pages(states, events)
    # A large cluster takes seconds the first time; after that, changes alone are computed.
    _ = states.latest().nodes
    threading.Thread(target=states.prepare, name="preparing", daemon=True).start()
    views = {
        "/": pages.cluster,
        "/queues": pages.queues,
        "/workspaces": pages.workspaces,
        "/demand": pages.demand,
        "/plan": pages.plan,
        "/history": pages.history,
        "/new-nodes": pages.new_nodes,
    }
    details = {
        "/nodes/{name}": pages.node,
        "/queues/{name}": pages.queue,
        "/workspaces/{namespace}/{name}": pages.workspace,
    }
    details |= {"/why/{kind}/{name}": pages.why, "/why/{kind}/{namespace}/{name}": pages.why}
    routes = [
        *(Route(path, _view(states, page)) for path, page in views.items()),
        *(Route(path, _detail(page)) for path, page in details.items()),
    ]
    return Starlette(
        routes=[
            *routes,
            Route("/events", _Announcements(feed, states)),
            Route("/healthz", _healthy),
            Mount("/static", StaticFiles(packages=[("plimsoll.ui", "static")])),
        ],
        middleware=[Middleware(_Headers), Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))],
        exception_handlers={
            HTTPException: lambda request, error: _refused(pages, request, error),
            PlimsollError: lambda request, error: _failed(pages, request, error),
        },
    )


async def _healthy(_: Request) -> Response:
    """On the event loop: pages that wait for the apiserver may occupy all threads."""
    return PlainTextResponse("ok")


def _view(states: States, page: Callable[[Request], str]) -> Callable[[Request], Response]:
    """Computed on a thread: a page of a large cluster takes a moment."""

    def answer(request: Request) -> Response:
        address = f"{request.url.path}?{request.url.query}"
        return HTMLResponse(states.latest().page(address, lambda: page(request)))

    return answer


def _detail(page: Callable[[Request], str]) -> Callable[[Request], Response]:
    """Computed for each request: the Events of a Workspace are no part of the Snapshot."""

    def answer(request: Request) -> Response:
        return HTMLResponse(page(request))

    return answer


def _refused(pages: Pages, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = "Not found" if error.status_code == 404 else "Not answered"
    return HTMLResponse(pages.error(request, title, error.detail), error.status_code)


def _failed(pages: Pages, request: Request, error: Exception) -> Response:
    assert isinstance(error, PlimsollError)
    return HTMLResponse(pages.error(request, "This view failed", error.message, error.hint or ""), 500)


class _Announcements:
    """Server-sent events: the version of the pages, now, at each change of the cluster, and when the plan is due to
    change by itself."""

    def __init__(self, feed: Feed, states: States) -> None:
        self._feed = feed
        self._states = states

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # For nginx, and proxies that read the same header: each event is passed on at once.
        headers = {"x-accel-buffering": "no"}
        await StreamingResponse(self._stream(), media_type="text/event-stream", headers=headers)(scope, receive, send)

    async def _stream(self) -> AsyncIterator[str]:
        with self._feed.changes() as changed:
            announced = ""
            while not self._feed.closed:
                version = self._states.latest().version
                if version != announced:
                    announced = version
                    yield f"data: {version}\n\n"
                    await asyncio.sleep(_CALM_SECONDS)
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), _ALIVE_SECONDS)
                except TimeoutError:
                    yield ": alive\n\n"
                changed.clear()


class _Headers:
    """Security headers of every response: load only from this server, no frames, no caching."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
