"""Lists objects in chunks, so that neither side holds the text of a large cluster at once."""

from typing import Any, Final, TypeVar

from plimsoll.kube import Connection
from plimsoll.model import InvalidObject
from plimsoll.model.meta import ObservedObject
from plimsoll.observe.cluster.store import Key, Store

T = TypeVar("T", bound=ObservedObject)

PIECE: Final = 500
"""Objects per response, as in client-go's pager."""
TIMEOUT: Final = 60.0


def list_objects(
    connection: Connection, store: Store[T], *, retry_throttled: bool = False
) -> tuple[dict[Key, T | InvalidObject], str]:
    """All objects of the store's kind, and the resource version from which to watch.

    No resource version is requested, which returns the most recent state. `retry_throttled` is that of
    `Connection.request`.

    Raises ConnectionFailedError and RequestError (404: the kind is not served; 410: the list took longer than the
    apiserver keeps old versions).
    """
    kind = store.kind
    entries = store.empty()
    query = {"limit": str(PIECE), **kind.selector}
    while True:
        answer = connection.request(
            "GET", kind.path, query=query, accept=kind.accept_list, timeout=TIMEOUT, retry_throttled=retry_throttled
        )
        for raw in answer.get("items") or ():
            key, entry = store.read(raw)
            if entry is not None:
                entries[key] = entry
        metadata: dict[str, Any] = answer.get("metadata") or {}
        if not metadata.get("continue"):
            return entries, str(metadata.get("resourceVersion") or "")
        query["continue"] = metadata["continue"]
