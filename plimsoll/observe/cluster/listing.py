"""Lists the objects of a kind."""

from typing import TypeVar

from plimsoll.kube import Connection
from plimsoll.model import InvalidObject
from plimsoll.model.meta import ObservedObject
from plimsoll.observe.cluster.store import Key, Store

T = TypeVar("T", bound=ObservedObject)


def list_objects(
    connection: Connection, store: Store[T], *, retry_throttled: bool = False
) -> tuple[dict[Key, T | InvalidObject], str]:
    """All objects of the store's kind, and the resource version from which to watch.

    `retry_throttled` is that of `Connection.request`. Raises as `Connection.list_chunks`, with code 404 where the kind
    is not served.
    """
    kind = store.kind
    entries, version = store.empty(), ""
    chunks = connection.list_chunks(
        kind.path, query=kind.selector, accept=kind.accept_list, retry_throttled=retry_throttled
    )
    for chunk in chunks:
        for raw in chunk.get("items") or ():
            key, entry = store.read(raw)
            if entry is not None:
                entries[key] = entry
        version = str((chunk.get("metadata") or {}).get("resourceVersion") or "")
    return entries, version
