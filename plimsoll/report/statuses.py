"""Writes statuses by server-side apply on the status subresource, in background threads.

An apiserver handles one or two hundred of them per second, and the statuses of a thousand new Workspaces must not delay
the next Plan.
"""

from collections.abc import Collection, Iterable, Mapping
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
    """Resource versions of the object from before the status was written. A snapshot with one of them is older than the
    status."""
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
        self._deferred: set[str] = set()
        """UIDs of objects that another write of the controller is about to change."""
        self._latest: dict[str, StatusWrite] = {}
        """Statuses that are written or will be, by UID. A failed write is removed."""

    def write(self, writes: Iterable[StatusWrite], deferred: Collection[str] = ()) -> None:
        """Queues statuses; a newer status of an object replaces a waiting one. Returns at once.

        Statuses of the UIDs in `deferred` wait until `release`, because another write is about to change the objects'
        versions.
        """
        taken = {write.uid: write for write in writes}
        with self._lock:
            self._deferred.update(deferred)
            self._latest.update(taken)
            self._queue(taken)

    def release(self, uid: str, version: str) -> None:
        """Writes a deferred status, with the current resource version of the object; an empty version is not known."""
        with self._lock:
            self._deferred.discard(uid)
            write = self._latest.get(uid)
            if version and write is not None and uid not in self._busy:
                unwritten = uid in self._waiting
                past = write.past | {write.version} | ({version} if unwritten else set())
                self._latest[uid] = write._replace(version=version, past=past)
                if unwritten:
                    self._waiting[uid] = self._latest[uid]
        self._begin(1)

    def newer(self, versions: Mapping[str, str]) -> dict[str, StatusWrite]:
        """The last queued statuses of objects of which a snapshot with these versions is older, by UID. Left out are
        those that could not be written."""
        with self._lock:
            latest = self._latest
            return {
                uid: write
                for uid, version in versions.items()
                if (write := latest.get(uid)) is not None and version in write.past
            }

    def forget_all_but(self, uids: Collection[str]) -> None:
        """Removes the state of objects that no longer exist."""
        with self._lock:
            self._latest = {uid: write for uid, write in self._latest.items() if uid in uids}

    def _may_begin(self, key: str) -> bool:
        return key not in self._deferred

    def _write(self, item: StatusWrite) -> StatusWrite | None:
        """Returns the write with its new resource version; None if it failed."""
        try:
            return self._apply(item)
        except ConnectionFailedError as error:
            self._give_up(error)
        except RequestError as error:
            if error.code not in (404, 409):  # gone, or changed again: the watch will tell
                log.warning("cannot write status", object=identify(item.manifest), error=error.message)
        return None

    def _wrote(self, key: str, item: StatusWrite, result: StatusWrite | None) -> None:
        latest = self._latest.get(key)
        if latest is item and result is None:
            del self._latest[key]
        elif latest is item and result is not None:
            self._latest[key] = result
        elif key in self._waiting and result is not None:
            # Taken meanwhile: it follows what has just been written.
            waiting = self._waiting[key]
            past = waiting.past | result.past | {result.version}
            self._latest[key] = self._waiting[key] = waiting._replace(version=result.version, past=past)

    def _give_up(self, error: ConnectionFailedError) -> None:
        """Drops the queued statuses: the apiserver is unreachable, so each would fail after its timeout."""
        with self._lock:
            dropped = len(self._waiting) + 1
            for uid in self._waiting:
                self._latest.pop(uid, None)
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
