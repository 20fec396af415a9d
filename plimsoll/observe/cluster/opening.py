"""Watches for one command: opened, synced, ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll import home
from plimsoll.kube import Connection
from plimsoll.observe.cluster.observer import Observer

SYNC_SECONDS = 60.0


@contextmanager
def open_observer(
    kubeconfig: Path | None, context: str | None, hub_patience: float | None = 0.0
) -> Iterator[tuple[Connection, Observer]]:
    """Watches that have seen the whole state; ended on leaving. `hub_patience` is the Observer's."""
    connection = Connection.open(kubeconfig, context)
    observer = Observer(connection, cloud_types=home.instance_types(), hub_patience=hub_patience)
    observer.start()
    try:
        observer.wait_synced(SYNC_SECONDS)
        yield connection, observer
    finally:
        observer.stop()
        connection.close()
