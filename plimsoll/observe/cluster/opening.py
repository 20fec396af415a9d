"""Watches for one command: opened, synced, ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll import home
from plimsoll.kube import Connection
from plimsoll.observe.cluster.observer import Observer

SYNC_SECONDS = 60.0


@contextmanager
def open_observer(kubeconfig: Path | None, context: str | None) -> Iterator[tuple[Connection, Observer]]:
    """Watches that have seen the whole state; ended on leaving."""
    connection = Connection.open(kubeconfig, context)
    observer = Observer(connection, cloud_types=home.instance_types())
    observer.start()
    try:
        observer.wait_synced(SYNC_SECONDS)
        yield connection, observer
    finally:
        observer.stop()
        connection.close()
