"""Watches for the duration of one command."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from plimsoll import home
from plimsoll.kube import Connection
from plimsoll.observe.cluster.health import SILENCE_SECONDS
from plimsoll.observe.cluster.observer import Observer

SYNC_SECONDS = 60.0


@contextmanager
def open_observer(
    kubeconfig: Path | None,
    context: str | None,
    hub_timeout: float | None = 0.0,
    awaited: Callable[[Callable[[], None]], None] = lambda sync: sync(),
    silence: float = SILENCE_SECONDS,
) -> Iterator[tuple[Connection, Observer]]:
    """Watches that have seen the whole state; ended on leaving. `hub_timeout` and `silence` are the
    Observer's.

    `awaited` is given the wait for that state, which raises the errors of `Observer.wait_synced` and may be repeated.
    """
    with closing(Connection.open(kubeconfig, context)) as connection:
        observer = Observer(connection, cloud_types=home.instance_types(), hub_timeout=hub_timeout, silence=silence)
        observer.start()
        try:
            awaited(lambda: observer.wait_synced(SYNC_SECONDS))
            yield connection, observer
        finally:
            observer.stop()
