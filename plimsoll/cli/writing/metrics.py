"""Serves the metrics of the controller."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from prometheus_client import start_http_server

from plimsoll.errors import PlimsollError
from plimsoll.loop import Tick
from plimsoll.report import Metrics


@contextmanager
def serving_metrics(host: str, port: int | None) -> Iterator[Callable[[Tick], bool]]:
    """Yields the callback for each round, which always continues; nothing is served without a port.

    Raises PlimsollError where the address cannot be used.
    """
    metrics = Metrics()
    if port is None:
        yield lambda _: True
        return
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except (OSError, OverflowError) as error:
        raise PlimsollError(
            f"cannot serve metrics on {host}:{port}: {error}", "set another --metrics-port or --metrics-host"
        ) from None
    try:
        yield lambda tick: _take(metrics, tick)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _take(metrics: Metrics, tick: Tick) -> bool:
    now = datetime.now(UTC)
    metrics.seen(tick.snapshot, now)
    if tick.plan is not None:
        metrics.planned(tick.plan, tick.seconds, now)
        outcome = tick.outcome
        seconds = (each.start + each.review + each.engine + each.provider for each in outcome.timings)
        metrics.applied(
            tick.plan,
            created=outcome.created,
            updated=outcome.updated,
            deleted=outcome.deleted,
            failed=outcome.failed,
            seconds=seconds,
        )
    return True
