"""Times at which a watch delivers objects."""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection

WAIT_SECONDS = 60.0

Event = dict[str, Any]


def is_new(event: Event) -> bool:
    return bool(event["type"] == "ADDED")


class Arrivals:
    """Names of the objects of one path in the order in which a watch shows an event that meets a condition, with the
    time of a monotonic clock."""

    def __init__(self, kubeconfig: Path, path: str, met: Callable[[Event], bool] = is_new) -> None:
        self._path, self._met = path, met
        self._names: queue.Queue[tuple[str, float]] = queue.Queue()
        self._connection = Connection.open(kubeconfig)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        query = {"watch": "1", "timeoutSeconds": "86400"}
        with (
            suppress(PlimsollError),
            self._connection.stream(self._path, query=query, read_timeout=86400) as lines,
        ):
            pending = b""
            for chunk in lines.stream(None):
                now = time.monotonic()
                *events, pending = (pending + chunk).split(b"\n")
                for event in map(orjson.loads, events):
                    if self._met(event):
                        self._names.put((event["object"]["metadata"]["name"], now))

    def next(self, prefix: str) -> float | None:
        """When the next object with that name prefix was shown; None if it was not within WAIT_SECONDS."""
        deadline = time.monotonic() + WAIT_SECONDS
        with suppress(queue.Empty):
            while True:
                name, at = self._names.get(timeout=max(0.0, deadline - time.monotonic()))
                if name.startswith(prefix):
                    return at
        return None
