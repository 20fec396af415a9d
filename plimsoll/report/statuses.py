"""Writes statuses by server-side apply on the status subresource, beside the loop, several at a time.

An apiserver takes a hundred or two of them a second: a burst of a thousand Workspaces must not hold up the next delta.
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
    """The status that an object of ours shall have."""

    kind: str
    namespace: str
    """Empty for a cluster-scoped kind."""
    name: str
    uid: str
    seen: str
    """The resource version in the snapshot that the status was computed from."""
    version: str
    """The newest known: a write of the status ignores a wrong UID, but not a wrong version."""
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
    """Takes statuses and writes the latest of each object; failures are logged, never raised."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Its threads are joined at the end of the process: what was taken by then is still written.
        self._threads = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="status")
        self._lock = threading.Condition()
        self._waiting: dict[str, StatusWrite] = {}
        self._busy: set[str] = set()
        self._held: set[str] = set()
        """UIDs of objects that another write of ours is about to change."""
        self._promised: dict[str, StatusWrite] = {}
        """By UID: what is written, or will be. A write that fails is no longer promised."""

    def write(self, writes: Iterable[StatusWrite], held: Collection[str] = ()) -> None:
        """Takes statuses; one that still waits for the same object is replaced. Returns at once.

        Those of the UIDs in `held` wait until `release`: before, they would meet a version that is about to change.
        """
        taken = {write.uid: write for write in writes}
        with self._lock:
            self._held.update(held)
            self._waiting.update(taken)
            self._promised.update(taken)
        for _ in range(min(len(taken), WRITERS)):
            self._threads.submit(self._drain)

    def release(self, uid: str, version: str) -> None:
        """Lets a held status go, at the version that the object has now; an empty one is not known."""
        with self._lock:
            self._held.discard(uid)
            write = self._promised.get(uid)
            if version and write is not None and uid not in self._busy:
                self._promised[uid] = write._replace(version=version)
                if uid in self._waiting:
                    self._waiting[uid] = self._promised[uid]
        self._threads.submit(self._drain)

    def promised(self, uid: str) -> StatusWrite | None:
        """The last status taken for the object, unless it could not be written."""
        with self._lock:
            return self._promised.get(uid)

    def forget_all_but(self, uids: Collection[str]) -> None:
        """Drops what is known of objects that are gone."""
        with self._lock:
            self._promised = {uid: write for uid, write in self._promised.items() if uid in uids}

    def flush(self) -> None:
        """Returns when nothing waits or is under way."""
        with self._lock:
            self._lock.wait_for(lambda: not self._waiting and not self._busy)

    def close(self) -> None:
        """Returns when what was taken is written; nothing may be written afterwards."""
        self._threads.shutdown(wait=True)

    def _drain(self) -> None:
        while (write := self._next()) is not None:
            version = ""
            try:
                version = self._apply(write)
            except ConnectionFailedError as error:
                self._give_up(error)
            except RequestError as error:
                if error.code not in (404, 409):  # gone, or changed again: the watch will tell
                    log.warning("status is not written", object=identify(write.manifest), error=error.message)
            finally:
                self._done(write, version)

    def _next(self) -> StatusWrite | None:
        """One that no other thread is at: two statuses of an object go one after the other."""
        with self._lock:
            free = (uid for uid in self._waiting if uid not in self._busy and uid not in self._held)
            uid = next(free, None)
            if uid is None:
                return None
            self._busy.add(uid)
            return self._waiting.pop(uid)

    def _done(self, write: StatusWrite, version: str) -> None:
        with self._lock:
            self._busy.discard(write.uid)
            self._lock.notify_all()
            if self._promised.get(write.uid) is not write:
                return
            if version:
                self._promised[write.uid] = write._replace(version=version)
            else:
                del self._promised[write.uid]

    def _give_up(self, error: ConnectionFailedError) -> None:
        """Nobody there: the rest would fail as well, each after its time."""
        with self._lock:
            dropped = len(self._waiting) + 1
            for uid in self._waiting:
                self._promised.pop(uid, None)
            self._waiting.clear()
        log.warning("statuses are not written", objects=dropped, error=error.message)

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
