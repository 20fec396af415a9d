"""Writes statuses by server-side apply on the status subresource, several at a time."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import structlog

from plimsoll.connection import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.model.base import identify
from plimsoll.model.labels import API_VERSION, FIELD_MANAGER

WRITERS: Final = 8
TIMEOUT: Final = 10.0
QUERY: Final = {"fieldManager": FIELD_MANAGER, "force": "true"}

log = structlog.get_logger(__name__)


class StatusWrite(NamedTuple):
    """The status that an object of ours shall have."""

    kind: str
    namespace: str
    """Empty for a cluster-scoped kind."""
    name: str
    uid: str
    version: str
    """The resource version that is known: a write of the status ignores a wrong UID, but not a wrong version."""
    status: dict[str, Any]

    @property
    def path(self) -> str:
        return path_of(self.kind, self.namespace, self.name)

    @property
    def manifest(self) -> dict[str, Any]:
        metadata = {"name": self.name, "namespace": self.namespace, "resourceVersion": self.version}
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": {key: value for key, value in metadata.items() if value},
            "status": self.status,
        }


def path_of(kind: str, namespace: str, name: str) -> str:
    """The address of an object of ours."""
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{API_VERSION}{within}/{kind.lower()}s/{name}"


class StatusWriter:
    """Failures are logged, never raised: a status says what is, and can be said later."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._threads = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="status")
        self._unreachable = threading.Event()

    def write(self, writes: Sequence[StatusWrite]) -> list[str]:
        """The resource version after each write, empty where it could not be made.

        Once the cluster cannot be reached, the rest is not tried.
        """
        self._unreachable.clear()
        return list(self._threads.map(self._write, writes))

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    def _write(self, write: StatusWrite) -> str:
        if self._unreachable.is_set():
            return ""
        try:
            return self._apply(write)
        except ConnectionFailedError as error:
            if not self._unreachable.is_set():
                log.warning("statuses are not written", error=error.message)
            self._unreachable.set()
        except RequestError as error:
            if error.code not in (404, 409):  # gone, or changed again: the watch will tell
                log.warning("status is not written", object=identify(write.manifest), error=error.message)
        return ""

    def _apply(self, write: StatusWrite) -> str:
        try:
            return self._patch(write)
        except RequestError as error:
            if error.code != 409:
                raise
        # Changed since it was seen, or another one took the name, whose status is not ours to write.
        current = self._connection.request("GET", write.path, timeout=TIMEOUT).get("metadata") or {}
        if current.get("uid") != write.uid:
            return ""
        return self._patch(write._replace(version=str(current.get("resourceVersion") or "")))

    def _patch(self, write: StatusWrite) -> str:
        written = self._connection.request(
            "PATCH", f"{write.path}/status", write.manifest, query=QUERY, content_type=APPLY_PATCH, timeout=TIMEOUT
        )
        return str((written.get("metadata") or {}).get("resourceVersion") or "")
