"""Store: the values of the objects of one kind, and the objects that cannot be read."""

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

from plimsoll.errors import InvalidObjectError
from plimsoll.model import InvalidObject
from plimsoll.model.api import WorkspaceRef
from plimsoll.model.meta import ObservedObject, dig, identify
from plimsoll.observe.cluster.kinds import LAST_APPLIED, Kind
from plimsoll.observe.cluster.shared_parts import with_shared_parts

T = TypeVar("T", bound=ObservedObject)
Key: TypeAlias = tuple[str, str]
"""(namespace, name)"""
REMEMBERED: Final = 10_000
"""Number of UIDs of deleted objects that are kept; more than one Plan creates."""


class Store(Generic[T]):
    """The objects of one kind. One thread writes, any thread reads."""

    def __init__(self, kind: Kind[T], removed: int = 0) -> None:
        """`removed` is the number of deleted objects whose last values are kept."""
        self.kind = kind
        self._served = True
        self.version = 0
        """Increases with every change, including those that start no round."""
        self._lock = threading.Lock()
        self._objects: dict[Key, T] = {}
        self._unreadable: dict[Key, InvalidObject] = {}
        self._values: tuple[T, ...] | None = ()
        self._gone: deque[str] = deque(maxlen=REMEMBERED)
        self._gone_uids: frozenset[str] | None = frozenset()
        self._removed: deque[T] = deque(maxlen=removed)

    @property
    def served(self) -> bool:
        """Whether the cluster serves the kind; True until it is known that it does not."""
        return self._served

    @served.setter
    def served(self, served: bool) -> None:
        with self._lock:
            self.version += served != self._served
            self._served = served

    def read(self, raw: dict[str, Any]) -> tuple[Key, T | InvalidObject | None]:
        """The key of an object and the value to store; None if the object is not needed."""
        metadata = raw.get("metadata") or {}
        key = (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        # Items of a list have no apiVersion and kind.
        raw.setdefault("kind", self.kind.name)
        raw.setdefault("apiVersion", self.kind.api_version)
        try:
            if metadata.get("annotations"):
                metadata["annotations"].pop(LAST_APPLIED, None)
            return key, self._value(raw)
        except InvalidObjectError as error:
            message = error.message
        except (AttributeError, TypeError, ValueError) as error:
            message = f"{identify(raw)}: its fields do not have the types of a {self.kind.name} ({error})"
        ref = WorkspaceRef(namespace=key[0], name=key[1], uid=str(metadata.get("uid") or ""))
        finalizers = tuple(map(str, metadata.get("finalizers") or ()))
        per_replica = _number(dig(raw, "status.perReplicaNodeCount"))
        return key, InvalidObject.model_construct(
            ref=ref,
            message=message,
            deletion_timestamp=metadata.get("deletionTimestamp"),
            finalizers=finalizers,
            replicas=_replicas(raw),
            per_replica_node_count=per_replica,
        )

    def empty(self) -> dict[Key, T | InvalidObject]:
        """An empty collection for the objects of a list, to be passed to `replace`."""
        return {}

    def replace(self, entries: Mapping[Key, T | InvalidObject]) -> bool:
        """Replaces the contents with those of a list. Returns whether anything relevant changed."""
        with self._lock:
            gone = (self._objects.keys() | self._unreadable.keys()) - entries.keys()
            for key in gone:
                self._drop(key)
            # Every entry must be stored, even after one changed.
            return bool(sum([self._store(key, entry) for key, entry in entries.items()]) or gone)

    def put(self, key: Key, entry: T | InvalidObject | None) -> bool:
        """Stores one object; None removes it. Returns whether the change is relevant."""
        with self._lock:
            return self._drop(key) if entry is None else self._store(key, entry)

    def remove(self, key: Key, entry: T | InvalidObject | None) -> bool:
        """Removes an object that was last seen as `entry`. Returns whether the change is relevant."""
        return self.put(key, None)

    def get(self, key: Key) -> T | None:
        """The object; None if it does not exist or cannot be read."""
        with self._lock:
            return self._objects.get(key)

    def values(self) -> tuple[T, ...]:
        """All readable objects. An object that was delivered again without a change keeps its value."""
        with self._lock:
            if self._values is None:
                self._values = tuple(self._objects.values())
            return self._values

    def unreadable(self) -> tuple[InvalidObject, ...]:
        with self._lock:
            return tuple(self._unreadable.values())

    def gone(self) -> frozenset[str]:
        """UIDs of the last deleted objects."""
        with self._lock:
            if self._gone_uids is None:
                self._gone_uids = frozenset(self._gone)
            return self._gone_uids

    def removed(self) -> tuple[T, ...]:
        """The last values of the last deleted objects, as many as are kept."""
        with self._lock:
            return tuple(self._removed)

    def _drop(self, key: Key) -> bool:
        old = self._known(key)
        if old is None:
            return False
        self._objects.pop(key, None)
        self._unreadable.pop(key, None)
        self._gone.append(_uid(old))
        self._gone_uids = None
        if not isinstance(old, InvalidObject):
            self._removed.append(old)
        self._changed()
        return True

    def _store(self, key: Key, entry: T | InvalidObject) -> bool:
        old = self._known(key)
        if old is not None and _uid(old) != _uid(entry):
            # A list shows it recreated under its name, and no event has shown its deletion.
            self._drop(key)
            old = None
        if old is not None and self._same(old, entry):
            return False
        if isinstance(entry, InvalidObject):
            self._objects.pop(key, None)
            self._unreadable[key] = entry
        else:
            self._unreadable.pop(key, None)
            self._objects[key] = entry
        self._changed()
        return old is None or self._matters(old, entry)

    def _known(self, key: Key) -> T | InvalidObject | None:
        return self._objects.get(key) or self._unreadable.get(key)

    def _value(self, raw: dict[str, Any]) -> T | None:
        value = self.kind.read(raw)
        return value if value is None else with_shared_parts(value)

    def _changed(self) -> None:
        self.version += 1
        self._values = None

    def _same(self, old: T | InvalidObject, new: T | InvalidObject) -> bool:
        if isinstance(old, InvalidObject) or isinstance(new, InvalidObject):
            return old == new
        return self.kind.same(old, new)

    def _matters(self, old: T | InvalidObject, new: T | InvalidObject) -> bool:
        if isinstance(old, InvalidObject) or isinstance(new, InvalidObject):
            return old != new
        return self.kind.differ(old, new)


def _uid(entry: ObservedObject | InvalidObject) -> str:
    return entry.ref.uid if isinstance(entry, InvalidObject) else entry.uid


def _replicas(raw: Mapping[str, Any]) -> int | None:
    inference = dig(raw, "spec.inference")
    if not isinstance(inference, dict):
        return None
    return _number(inference.get("replicas", 1))


def _number(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None
