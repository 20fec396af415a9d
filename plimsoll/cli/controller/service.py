"""Serves the controller's metrics and its health over HTTP, each on a port of its own: probes do not wait for metrics,
and a NetworkPolicy needs to admit nobody to them."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Final

import orjson
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plimsoll import http_server
from plimsoll.cli.controller.status import ControllerState, ControllerStatus
from plimsoll.errors import PlimsollError
from plimsoll.loop import RoundResult
from plimsoll.observe.cluster import Observer
from plimsoll.report import Metrics

_MOST: Final = 32
"""Maximum number of connections to each port; the kubelet and a few Prometheus servers open them."""


class Service:
    """The health and the metrics of the controller; metrics have labels for the Environment and the cluster."""

    def __init__(self) -> None:
        self.status = ControllerStatus()
        self.metrics = Metrics()

    def watches(self, observer: Observer) -> None:
        """From now on the health and the metrics say how old each watch is."""
        self.status.watches(observer.silent)
        self.metrics.watches(observer.ages)

    def completed(self, result: RoundResult) -> bool:
        """Counts a round; always continues."""
        now = datetime.now(UTC)
        accounts = result.state.accounts.values() if result.state is not None else ()
        self.metrics.seen(result.snapshot, now, accounts)
        if result.plan is not None:
            self.metrics.planned(result.plan, result.seconds, now)
            outcome = result.outcome
            self.metrics.applied(
                result.plan,
                created=outcome.created,
                updated=outcome.updated,
                deleted=outcome.deleted,
                failed=outcome.failed,
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

    def healthy(self) -> tuple[int, dict[str, object]]:
        """Status code and content of the answer to a liveness probe."""
        return 200 if self.status.alive else 503, self.status.as_json()

    def ready(self) -> tuple[int, dict[str, object]]:
        """Of the answer to a readiness probe."""
        return 200 if self.status.ready else 503, self.status.as_json()


@contextmanager
def serving(host: str, metrics_port: int | None, health_port: int | None) -> Iterator[Service]:
    """Serves /metrics, and /healthz and /readyz; nothing without a port. Raises PlimsollError where an address cannot
    be used."""
    service = Service()

    async def scrape(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(service.metrics.registry), media_type=content_type)

    probes = [Route("/healthz", _answering(service.healthy)), Route("/readyz", _answering(service.ready))]
    with ExitStack() as servers:
        for what, option, port, routes in (
            ("metrics", "--metrics-port", metrics_port, [Route("/metrics", scrape)]),
            ("probes", "--health-probe-port", health_port, probes),
        ):
            if port is not None:
                options = f"{option} or --metrics-host"
                app = Starlette(routes=routes, middleware=[Middleware(GZipMiddleware)])
                servers.enter_context(http_server.serve(app, host, port, what=what, options=options, most=_MOST))
        yield service


def _answering(read: Callable[[], tuple[int, dict[str, object]]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        code, content = read()
        return Response(orjson.dumps(content) + b"\n", code, media_type="application/json")

    return answer
