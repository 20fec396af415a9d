"""Sets and removes Plimsoll's finalizer on Workspaces, in background threads.

It is set by server-side apply with a field manager of its own; finalizers are a set there, so those of others are not
changed. It is removed by a merge patch with the resource version and the UID, so that no other object of that name is
changed.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog
from tenacity import retry, retry_if_exception, stop_after_attempt

from plimsoll.kube import APPLY_PATCH, MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import API_VERSION, CAPACITY_FINALIZER, FIELD_MANAGER
from plimsoll.model.api import WorkspaceRef
from plimsoll.report.finalized import Finalizing
from plimsoll.report.latest_writer import LatestWriter
from plimsoll.report.statuses import TIMEOUT, path_of

WRITERS: Final = 4
TRIES: Final = 5
SHOWN_SECONDS: Final = 5.0
"""How long a watch may take to show what was written."""
QUERY: Final = {"fieldManager": f"{FIELD_MANAGER}-finalizer", "force": "true"}

log = structlog.get_logger(__name__)


class FinalizerWriter(LatestWriter[Finalizing, bool]):
    """Writes each change once. Failures are logged, and the change is written again when it is requested again.

    `on_written` is called on another thread with the object's UID and its new resource version, if it is known.
    """

    def __init__(
        self, connection: Connection, on_written: Callable[[str, str], None] = lambda uid, version: None
    ) -> None:
        super().__init__(WRITERS, "finalizer")
        self._connection = connection
        self._on_written = on_written
        self._written: dict[str, tuple[bool, float]] = {}
        """By UID: what was written last, and when."""

    def due(self, changes: Iterable[Finalizing]) -> list[Finalizing]:
        """Changes that are not in progress, and that were not written so recently that the watch may not have delivered
        them."""
        now = time.monotonic()
        with self._lock:
            self._written = {uid: each for uid, each in self._written.items() if now - each[1] < SHOWN_SECONDS}
            return [
                change
                for change in changes
                if change.ref.uid not in self._waiting
                and change.ref.uid not in self._busy
                and self._written.get(change.ref.uid, (not change.wanted,))[0] != change.wanted
            ]

    def write(self, changes: Iterable[Finalizing]) -> None:
        """Queues changes that are due; returns at once."""
        self._queue({change.ref.uid: change for change in changes})

    def _write(self, item: Finalizing) -> bool:
        """Returns whether it was written."""
        written, version = False, ""
        try:
            if item.wanted:
                version = self._set(item.ref)
            else:
                self._remove(item.ref)
            written = True
        except RequestError as error:
            if error.code not in (404, 409):  # deleted, or another object of that name
                log.warning("cannot write finalizer", workspace=str(item.ref), error=error.message)
        except ConnectionFailedError as error:
            log.warning("cannot write finalizer", workspace=str(item.ref), error=error.message)
        finally:
            self._on_written(item.ref.uid, version)
        return written

    def _wrote(self, key: str, item: Finalizing, result: bool) -> None:
        if result:
            self._written[key] = (item.wanted, time.monotonic())

    def _set(self, ref: WorkspaceRef) -> str:
        """The new resource version."""
        metadata = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid, "finalizers": [CAPACITY_FINALIZER]}
        manifest = {"apiVersion": API_VERSION, "kind": "Workspace", "metadata": metadata}
        written = self._patch(ref, manifest, APPLY_PATCH, QUERY)
        return str((written.get("metadata") or {}).get("resourceVersion") or "")

    @retry(
        retry=retry_if_exception(lambda error: isinstance(error, RequestError) and error.code == 409),
        stop=stop_after_attempt(TRIES),
        reraise=True,
    )
    def _remove(self, ref: WorkspaceRef) -> None:
        """Removes it whoever set it, because it may have been copied with the object."""
        path = path_of("Workspace", ref.namespace, ref.name)
        metadata = self._connection.request("GET", path, timeout=TIMEOUT).get("metadata") or {}
        if metadata.get("uid") != ref.uid:
            return
        kept = [finalizer for finalizer in metadata.get("finalizers") or () if finalizer != CAPACITY_FINALIZER]
        seen = {"uid": ref.uid, "resourceVersion": metadata.get("resourceVersion")}
        self._patch(ref, {"metadata": {**seen, "finalizers": kept}}, MERGE_PATCH, {})

    def _patch(
        self, ref: WorkspaceRef, body: dict[str, Any], content_type: str, query: dict[str, str]
    ) -> dict[str, Any]:
        path = path_of("Workspace", ref.namespace, ref.name)
        return self._connection.request("PATCH", path, body, query=query, content_type=content_type, timeout=TIMEOUT)
