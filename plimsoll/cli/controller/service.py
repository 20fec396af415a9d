"""Serves the controller's metrics and health over HTTP."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import orjson
from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from plimsoll.apply import FailureKind
from plimsoll.cli.controller.status import ControllerState, ControllerStatus
from plimsoll.errors import PlimsollError
from plimsoll.loop import RoundResult
from plimsoll.report import Metrics

StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class Service:
    """The health and the metrics of the controller; metrics have labels for the Environment and the cluster."""

    def __init__(self) -> None:
        self.status = ControllerStatus()
        self.metrics = Metrics()
        self._pages = make_wsgi_app(self.metrics.registry)

    def completed(self, result: RoundResult) -> bool:
        """Counts a round; always continues."""
        now = datetime.now(UTC)
        self.metrics.seen(result.snapshot, now)
        if result.plan is not None:
            self.metrics.planned(result.plan, result.seconds, now)
            outcome = result.outcome
            # A stack may be busy for as long as a node is drained, which is no reason for an alert.
            failed = [key for key, each in outcome.failed.items() if each.kind is not FailureKind.STACK_BUSY]
            self.metrics.applied(
                result.plan,
                created=outcome.created,
                updated=outcome.updated,
                deleted=outcome.deleted,
                failed=failed,
                gates_removed=result.gates_removed,
                seconds=(each.seconds for each in outcome.timings),
            )
        return True

    def failed(self, error: PlimsollError) -> None:
        """Counts a round that failed as a whole and is tried again."""
        self.metrics.round_failed(type(error).__name__)

    def waits(self, error: PlimsollError) -> None:
        """Counts an attempt of a start that failed; the controller waits for the next one, and is not stuck."""
        self.failed(error)
        self.status.beat()

    def has_lease(self, environment: str) -> None:
        self.metrics.of(environment=environment)
        self.metrics.holds_lease(True)

    def lost_lease(self) -> None:
        """Or its end: the controller waits until it has it again."""
        self.metrics.holds_lease(False)
        self.status.become(ControllerState.STANDBY)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """As a WSGI application: /metrics, /healthz, /readyz."""
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            pages: Iterable[bytes] = self._pages(environ, start_response)
            return pages
        if path not in ("/healthz", "/readyz"):
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics, /healthz, /readyz\n"]
        well = self.status.alive if path == "/healthz" else self.status.ready
        start_response("200 OK" if well else "503 Service Unavailable", [("Content-Type", "application/json")])
        return [orjson.dumps(self.status.as_json()) + b"\n"]


@contextmanager
def serving(host: str, port: int | None) -> Iterator[Service]:
    """Nothing is served without a port. Raises PlimsollError where the address cannot be used."""
    service = Service()
    if port is None:
        yield service
        return
    try:
        server = make_server(host, port, service, ThreadingWSGIServer, _Quiet)
    except (OSError, OverflowError) as error:
        raise PlimsollError(
            f"cannot serve metrics on {host}:{port}: {error}", "set another --metrics-port or --metrics-host"
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Probes are not logged."""
