"""Adds and removes our finalizer on Workspaces, in background threads.

It is added by server-side apply with a separate field manager, where finalizers are a set, so other finalizers do not
change. It is removed by a merge patch with a resource version. The UID protects another object of the same name.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import structlog
from tenacity import retry, retry_if_exception, stop_after_attempt

from plimsoll.kube import APPLY_PATCH, MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import API_VERSION, CAPACITY_FINALIZER, FIELD_MANAGER
from plimsoll.model.api import WorkspaceRef
from plimsoll.report.finalized import Finalizing
from plimsoll.report.statuses import TIMEOUT, path_of

WRITERS: Final = 4
TRIES: Final = 5
SHOWN_SECONDS: Final = 5.0
"""How long a watch may take to deliver a write."""
QUERY: Final = {"fieldManager": f"{FIELD_MANAGER}-finalizer", "force": "true"}

log = structlog.get_logger(__name__)


class FinalizerWriter:
    """Writes each change once; a failure is logged, and the change is written again when it is passed again.

    `on_written` is called for each on another thread, with the object's UID and its new resource version, if known.
    """

    def __init__(
        self, connection: Connection, on_written: Callable[[str, str], None] = lambda uid, version: None
    ) -> None:
        self._connection = connection
        self._on_written = on_written
        self._threads = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="finalizer")
        self._lock = threading.Condition()
        self._under_way: set[str] = set()
        self._written: dict[str, tuple[bool, float]] = {}
        """By UID: the last written value, and when."""

    def due(self, changes: Iterable[Finalizing]) -> list[Finalizing]:
        """Those that are neither in progress nor written so recently that the watch may not have delivered them."""
        now = time.monotonic()
        with self._lock:
            self._written = {uid: each for uid, each in self._written.items() if now - each[1] < SHOWN_SECONDS}
            return [
                each
                for each in changes
                if each.ref.uid not in self._under_way
                and self._written.get(each.ref.uid, (not each.wanted,))[0] != each.wanted
            ]

    def write(self, changes: Iterable[Finalizing]) -> None:
        """Queues changes; returns at once."""
        taken = list(changes)
        with self._lock:
            self._under_way |= {each.ref.uid for each in taken}
        for change in taken:
            self._threads.submit(self._change, change)

    def flush(self) -> None:
        """Returns when nothing is in progress."""
        with self._lock:
            self._lock.wait_for(lambda: not self._under_way)

    def close(self) -> None:
        """Returns when all queued changes are written; nothing may be written afterwards."""
        self._threads.shutdown(wait=True)

    def _change(self, change: Finalizing) -> None:
        written, version = False, ""
        try:
            if change.wanted:
                version = self._set(change.ref)
            else:
                self._remove(change.ref)
            written = True
        except RequestError as error:
            if error.code not in (404, 409):  # deleted, or another object of the same name
                log.warning("cannot write finalizer", workspace=str(change.ref), error=error.message)
        except ConnectionFailedError as error:
            log.warning("cannot write finalizer", workspace=str(change.ref), error=error.message)
        finally:
            with self._lock:
                self._under_way.discard(change.ref.uid)
                if written:
                    self._written[change.ref.uid] = (change.wanted, time.monotonic())
                self._lock.notify_all()
            self._on_written(change.ref.uid, version)

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
        """Regardless of who added it: it may be part of a copied manifest."""
        path = path_of("Workspace", ref.namespace, ref.name)
        metadata = self._connection.request("GET", path, timeout=TIMEOUT).get("metadata") or {}
        if metadata.get("uid") != ref.uid:
            return
        others = [each for each in metadata.get("finalizers") or () if each != CAPACITY_FINALIZER]
        seen = {"uid": ref.uid, "resourceVersion": metadata.get("resourceVersion")}
        self._patch(ref, {"metadata": {**seen, "finalizers": others}}, MERGE_PATCH, {})

    def _patch(
        self, ref: WorkspaceRef, body: dict[str, Any], content_type: str, query: dict[str, str]
    ) -> dict[str, Any]:
        path = path_of("Workspace", ref.namespace, ref.name)
        return self._connection.request("PATCH", path, body, query=query, content_type=content_type, timeout=TIMEOUT)
