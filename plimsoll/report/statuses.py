"""Writes statuses by server-side apply on the status subresource, beside the loop, several at a time.

An apiserver takes a hundred or two of them a second: a burst of a thousand Workspaces must not hold up the next delta.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

import structlog

from plimsoll.kube import APPLY_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import API_VERSION, FIELD_MANAGER
from plimsoll.model.meta import identify
from plimsoll.report.latest_writer import LatestWriter

WRITERS: Final = 8
TIMEOUT: Final = 10.0
QUERY: Final = {"fieldManager": FIELD_MANAGER, "force": "true"}

log = structlog.get_logger(__name__)


class StatusWrite(NamedTuple):
    """The wanted status of one of Plimsoll's objects."""

    kind: str
    namespace: str
    """Empty for a cluster-scoped kind."""
    name: str
    uid: str
    version: str
    """The newest resource version that is known: a write of the status ignores a wrong UID, but not a wrong version."""
    past: frozenset[str]
    """The object's versions that do not show the status, as it is known: a snapshot with one of them lags behind."""
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


class StatusWriter(LatestWriter[StatusWrite, StatusWrite | None]):
    """Writes the latest status of each object; failures are logged, never raised.

    The version that a write returns is used at once, before the watch delivers it: the next write would otherwise
    conflict.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(WRITERS, "status")
        self._connection = connection
        self._held: set[str] = set()
        """UIDs of objects that another write of ours is about to change."""
        self._promised: dict[str, StatusWrite] = {}
        """By UID: what is written, or will be. A write that fails is no longer latest."""

    def write(self, writes: Iterable[StatusWrite], deferred: Collection[str] = ()) -> None:
        """Takes statuses; one that still waits for the same object is replaced. Returns at once.

        Those of the UIDs in `deferred` wait until `release`: before, they would meet a version that is about to change.
        """
        taken = {write.uid: write for write in writes}
        with self._lock:
            self._held.update(deferred)
            self._promised.update(taken)
            self._take(taken)

    def release(self, uid: str, version: str) -> None:
        """Lets a deferred status go, at the version that the object has now; an empty one is not known."""
        with self._lock:
            self._held.discard(uid)
            write = self._promised.get(uid)
            if version and write is not None and uid not in self._busy:
                unwritten = uid in self._waiting
                past = write.past | {write.version} | ({version} if unwritten else set())
                self._promised[uid] = write._replace(version=version, past=past)
                if unwritten:
                    self._waiting[uid] = self._promised[uid]
        self._begin(1)

    def newer(self, uid: str, version: str) -> StatusWrite | None:
        """The last status taken for the object where a snapshot of that version lags behind it; None where it does not,
        or where the status could not be written."""
        with self._lock:
            write = self._promised.get(uid)
        return write if write is not None and version in write.past else None

    def forget_all_but(self, uids: Collection[str]) -> None:
        """Forgets objects that no longer exist."""
        with self._lock:
            self._promised = {uid: write for uid, write in self._promised.items() if uid in uids}

    def _may_begin(self, key: str) -> bool:
        return key not in self._held

    def _write(self, item: StatusWrite) -> StatusWrite | None:
        """With the new resource version; None where it is not written."""
        try:
            return self._apply(item)
        except ConnectionFailedError as error:
            self._give_up(error)
        except RequestError as error:
            if error.code not in (404, 409):  # gone, or changed again: the watch will tell
                log.warning("cannot write status", object=identify(item.manifest), error=error.message)
        return None

    def _wrote(self, key: str, item: StatusWrite, result: StatusWrite | None) -> None:
        latest = self._promised.get(key)
        if latest is item and result is None:
            del self._promised[key]
        elif latest is item and result is not None:
            self._promised[key] = result
        elif key in self._waiting and result is not None:
            # Taken meanwhile: it follows what has just been written.
            waiting = self._waiting[key]
            past = waiting.past | result.past | {result.version}
            self._promised[key] = self._waiting[key] = waiting._replace(version=result.version, past=past)

    def _give_up(self, error: ConnectionFailedError) -> None:
        """Drops the queued statuses: the apiserver is unreachable, so each would fail after its timeout."""
        with self._lock:
            dropped = len(self._waiting) + 1
            for uid in self._waiting:
                self._promised.pop(uid, None)
            self._waiting.clear()
        log.warning("cannot write statuses", objects=dropped, error=error.message)

    def _apply(self, write: StatusWrite) -> StatusWrite | None:
        try:
            return self._patch(write)
        except RequestError as error:
            if error.code != 409:
                raise
        # Changed since it was seen, or another one took the name, whose status is not ours to write.
        current = self._connection.request("GET", write.path, timeout=TIMEOUT).get("metadata") or {}
        if current.get("uid") != write.uid:
            return None
        return self._patch(write._replace(version=str(current.get("resourceVersion") or "")))

    def _patch(self, write: StatusWrite) -> StatusWrite:
        written = self._connection.request(
            "PATCH", f"{write.path}/status", write.manifest, query=QUERY, content_type=APPLY_PATCH, timeout=TIMEOUT
        )
        version = str((written.get("metadata") or {}).get("resourceVersion") or "")
        return write._replace(version=version, past=write.past | {write.version})
