"""Writes statuses by server-side apply on the status subresource, in several background threads.

An apiserver accepts one or two hundred a second: a burst of a thousand Workspaces must not delay the next Plan.
"""

import threading
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import structlog

from plimsoll.kube import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import API_VERSION, FIELD_MANAGER
from plimsoll.model.meta import identify

WRITERS: Final = 8
TIMEOUT: Final = 10.0
QUERY: Final = {"fieldManager": FIELD_MANAGER, "force": "true"}

log = structlog.get_logger(__name__)


class StatusWrite(NamedTuple):
    """The wanted status of an object of Plimsoll's kinds."""

    kind: str
    namespace: str
    """Empty for a cluster-scoped kind."""
    name: str
    uid: str
    seen: str
    """The resource version in the snapshot that the status is computed from."""
    version: str
    """The newest known resource version: a status write ignores a wrong UID, but not a wrong version."""
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
    """The path of an object of Plimsoll's kinds."""
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{API_VERSION}{within}/{kind.lower()}s/{name}"


class StatusWriter:
    """Writes the latest status of each object; failures are logged, never raised."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Its threads are joined at the end of the process: everything queued by then is still written.
        self._threads = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="status")
        self._lock = threading.Condition()
        self._waiting: dict[str, StatusWrite] = {}
        self._busy: set[str] = set()
        self._deferred: set[str] = set()
        """UIDs of objects that the finalizer's writer is about to change."""
        self._latest: dict[str, StatusWrite] = {}
        """By UID: the last queued or written status; without those that failed."""

    def write(self, writes: Iterable[StatusWrite], deferred: Collection[str] = ()) -> None:
        """Queues statuses; a queued status of the same object is replaced. Returns at once.

        Those of the UIDs in `deferred` wait until `release`, because the resource version is about to change.
        """
        taken = {write.uid: write for write in writes}
        with self._lock:
            self._deferred.update(deferred)
            self._waiting.update(taken)
            self._latest.update(taken)
        for _ in range(min(len(taken), WRITERS)):
            self._threads.submit(self._drain)

    def release(self, uid: str, version: str) -> None:
        """Writes a deferred status, with the object's new resource version; an empty one is not known."""
        with self._lock:
            self._deferred.discard(uid)
            write = self._latest.get(uid)
            if version and write is not None and uid not in self._busy:
                self._latest[uid] = write._replace(version=version)
                if uid in self._waiting:
                    self._waiting[uid] = self._latest[uid]
        self._threads.submit(self._drain)

    def latest(self, uid: str) -> StatusWrite | None:
        """The last queued status of the object, unless writing it failed."""
        with self._lock:
            return self._latest.get(uid)

    def forget_all_but(self, uids: Collection[str]) -> None:
        """Removes the statuses of deleted objects."""
        with self._lock:
            self._latest = {uid: write for uid, write in self._latest.items() if uid in uids}

    def flush(self) -> None:
        """Returns when nothing is queued or in progress."""
        with self._lock:
            self._lock.wait_for(lambda: not self._waiting and not self._busy)

    def close(self) -> None:
        """Returns when all queued statuses are written; nothing may be written afterwards."""
        self._threads.shutdown(wait=True)

    def _drain(self) -> None:
        while (write := self._next()) is not None:
            version = ""
            try:
                version = self._apply(write)
            except ConnectionFailedError as error:
                self._give_up(error)
            except RequestError as error:
                if error.code not in (404, 409):  # deleted, or changed again: the watch delivers it
                    log.warning("status is not written", object=identify(write.manifest), error=error.message)
            finally:
                self._done(write, version)

    def _next(self) -> StatusWrite | None:
        """One that no other thread is at: two statuses of an object go one after the other."""
        with self._lock:
            free = (uid for uid in self._waiting if uid not in self._busy and uid not in self._deferred)
            uid = next(free, None)
            if uid is None:
                return None
            self._busy.add(uid)
            return self._waiting.pop(uid)

    def _done(self, write: StatusWrite, version: str) -> None:
        with self._lock:
            self._busy.discard(write.uid)
            self._lock.notify_all()
            if self._latest.get(write.uid) is not write:
                return
            if version:
                self._latest[write.uid] = write._replace(version=version)
            else:
                del self._latest[write.uid]

    def _give_up(self, error: ConnectionFailedError) -> None:
        """The apiserver cannot be reached: the other writes would also fail, each after its timeout."""
        with self._lock:
            dropped = len(self._waiting) + 1
            for uid in self._waiting:
                self._latest.pop(uid, None)
            self._waiting.clear()
        log.warning("cannot write statuses", objects=dropped, error=error.message)

    def _apply(self, write: StatusWrite) -> str:
        try:
            return self._patch(write)
        except RequestError as error:
            if error.code != 409:
                raise
        # Changed since the snapshot, or replaced by another object of the same name, whose status is not this one.
        current = self._connection.request("GET", write.path, timeout=TIMEOUT).get("metadata") or {}
        if current.get("uid") != write.uid:
            return ""
        return self._patch(write._replace(version=str(current.get("resourceVersion") or "")))

    def _patch(self, write: StatusWrite) -> str:
        written = self._connection.request(
            "PATCH", f"{write.path}/status", write.manifest, query=QUERY, content_type=APPLY_PATCH, timeout=TIMEOUT
        )
        return str((written.get("metadata") or {}).get("resourceVersion") or "")
