"""Lists of objects, in pieces, so that neither side holds a large cluster as text at once."""

from typing import Any, Final, TypeVar

from plimsoll.kube import Connection
from plimsoll.model.meta import ObservedObject
from plimsoll.observe.cluster.store import Key, Store, Unreadable

T = TypeVar("T", bound=ObservedObject)

PIECE: Final = 500
"""Objects an answer, as client-go's pager asks."""
TIMEOUT: Final = 60.0


def list_objects(
    connection: Connection, store: Store[T], *, patient: bool = False
) -> tuple[dict[Key, T | Unreadable], str]:
    """Every object of the store's kind, and the resource version to watch from.

    `patient` is the request's. No resource version is asked for: that is the most recent state, which no
    `resourceVersionMatch` bettered.
    Raises RequestError (404: not served; 410: the list took longer than the cluster keeps old states) and
    ConnectionFailedError.
    """
    kind = store.kind
    entries = store.empty()
    query = {"limit": str(PIECE), **kind.selector}
    while True:
        answer = connection.request(
            "GET", kind.path, query=query, accept=kind.accept_list, timeout=TIMEOUT, patient=patient
        )
        for raw in answer.get("items") or ():
            key, entry = store.read(raw)
            if entry is not None:
                entries[key] = entry
        metadata: dict[str, Any] = answer.get("metadata") or {}
        if not metadata.get("continue"):
            return entries, str(metadata.get("resourceVersion") or "")
        query["continue"] = metadata["continue"]
