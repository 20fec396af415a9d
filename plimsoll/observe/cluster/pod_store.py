"""PodStore: keeps pods that request GPUs as values, and of plain pods only the sum of their requests by node."""

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.model import InvalidObject
from plimsoll.model.cluster import HostLoad, PlainPod, Pod
from plimsoll.observe.cluster.kinds import Kind
from plimsoll.observe.cluster.store import Key, Store
from plimsoll.observe.pods import PlainPods, is_plain


class PodEntries(dict[Key, Any]):
    """Collects the pods of a list. A plain pod is reduced as soon as it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = PlainPods()

    def __setitem__(self, key: Key, entry: Any) -> None:
        if isinstance(entry, PlainPod):
            self.plain.put(key, entry)
        else:
            super().__setitem__(key, entry)


class PodStore(Store[Pod]):
    """The store of pods. A change of plain pods is relevant if their node has devices and a pod waits for some.

    `has_devices` returns whether the node of that name has devices.
    """

    def __init__(self, kind: Kind[Pod], has_devices: Callable[[str], bool]) -> None:
        super().__init__(kind)
        self._has_devices = has_devices
        self._plain = PlainPods()
        self._waiting: set[Key] = set()
        """Pods that are on no node."""

    def loads(self) -> Mapping[str, HostLoad]:
        """Requests of plain pods by node; the same object while nothing changes."""
        with self._lock:
            return self._plain.loads()

    def empty(self) -> dict[Key, Any]:
        return PodEntries()

    def replace(self, entries: Mapping[Key, Any]) -> bool:
        matters = super().replace(entries)
        plain = entries.plain if isinstance(entries, PodEntries) else PlainPods()
        with self._lock:
            self._waiting = {key for key, entry in self._objects.items() if _waits(entry)}
            old, self._plain = self._plain, plain
            changed = {node for node in old.nodes() | plain.nodes() if not old.same(plain, node)}
        return self._matters_for(changed) or matters

    def put(self, key: Key, entry: Any) -> bool:
        if isinstance(entry, PlainPod):
            was_kept = super().put(key, None)
            with self._lock:
                self._waiting.discard(key)
                changed = self._plain.put(key, entry)
            return (self._matters_for({entry.node}) if changed else False) or was_kept
        matters = super().put(key, entry)
        with self._lock:
            (self._waiting.add if _waits(entry) else self._waiting.discard)(key)
            node = entry.node_name if isinstance(entry, Pod) else ""
            was_plain = bool(node) and self._plain.drop(key, node)
        return (self._matters_for({node}) if was_plain else False) or matters

    def remove(self, key: Key, entry: Any) -> bool:
        gone = self.put(key, None)
        if not isinstance(entry, PlainPod):
            return gone
        with self._lock:
            was_there = self._plain.drop(key, entry.node)
        return (self._matters_for({entry.node}) if was_there else False) or gone

    def _value(self, raw: dict[str, Any]) -> Any:
        return PlainPod.read(raw) if is_plain(raw) else super()._value(raw)

    def _matters_for(self, changed: set[str]) -> bool:
        """Whether changes of the plain pods of these nodes are relevant. If not, the version of the store does not
        change."""
        if not self._waiting or not any(map(self._has_devices, changed)):
            return False
        with self._lock:
            self.version += 1
        return True


def _waits(entry: Pod | InvalidObject | None) -> bool:
    return isinstance(entry, Pod) and not entry.node_name
