"""PodStore: keeps pods that request GPUs as values, and of plain pods only what they use and what rules see of them."""

from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Any

from plimsoll.labels import HOSTNAME
from plimsoll.model import InvalidObject
from plimsoll.model.cluster import HostLoad, PlainPod, Pod, PodLoad
from plimsoll.model.meta import PodSelector
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
    """The store of pods. A change of plain pods is relevant if a pod waits for devices, and their node has some, or
    rules about pods see them.

    `has_devices` returns whether the node of that name has devices.
    """

    def __init__(self, kind: Kind[Pod], has_devices: Callable[[str], bool]) -> None:
        super().__init__(kind)
        self._has_devices = has_devices
        self._plain = PlainPods()
        self._waiting: dict[Key, tuple[PodSelector, ...]] = {}
        """Pods that are on no node, with what their rules select."""
        self._selectors: frozenset[PodSelector] | None = frozenset()

    def loads(self) -> Mapping[str, HostLoad]:
        """What plain pods use by node, and what rules see of them; the same object while nothing changes."""
        with self._lock:
            return self._plain.loads()

    def empty(self) -> dict[Key, Any]:
        return PodEntries()

    def replace(self, entries: Mapping[Key, Any]) -> bool:
        matters = super().replace(entries)
        plain = entries.plain if isinstance(entries, PodEntries) else PlainPods()
        with self._lock:
            self._waiting = {key: _selected(entry) for key, entry in self._objects.items() if _waits(entry)}
            self._selectors = None
            old, self._plain = self._plain, plain
            changed = {node for node in old.nodes() | plain.nodes() if not old.same(plain, node)}
            loads = [load for node in changed for load in (*old.on(node), *plain.on(node))] if self._waiting else ()
        return self._matters_for(changed, loads) or matters

    def put(self, key: Key, entry: Any) -> bool:
        if isinstance(entry, PlainPod):
            was_kept = super().put(key, None)
            with self._lock:
                self._note(key, None)
                changed = self._plain.put(key, entry)
            return self._matters_for({entry.node}, changed) or was_kept
        matters = super().put(key, entry)
        with self._lock:
            self._note(key, entry)
            node = entry.node_name if isinstance(entry, Pod) else ""
            dropped = self._plain.drop(key, node) if node else ()
        return self._matters_for({node}, dropped) or matters

    def remove(self, key: Key, entry: Any) -> bool:
        gone = self.put(key, None)
        if not isinstance(entry, PlainPod):
            return gone
        with self._lock:
            dropped = self._plain.drop(key, entry.node)
        return self._matters_for({entry.node}, dropped) or gone

    def _value(self, raw: dict[str, Any]) -> Any:
        return PlainPod.read(raw) if is_plain(raw) else super()._value(raw)

    def _note(self, key: Key, entry: Pod | InvalidObject | None) -> None:
        if isinstance(entry, Pod) and _waits(entry):
            self._waiting[key] = _selected(entry)
        elif self._waiting.pop(key, None) is None:
            return
        self._selectors = None

    def _matters_for(self, nodes: set[str], changed: Collection[PodLoad]) -> bool:
        """Whether these changes of the plain pods of these nodes are relevant. If not, the version of the store does
        not change."""
        if not (changed and self._waiting):
            return False
        if not (any(map(self._has_devices, nodes)) or any(map(self._is_seen, changed))):
            return False
        with self._lock:
            self.version += 1
        return True

    def _is_seen(self, load: PodLoad) -> bool:
        """Whether rules see a pod that is on a node without devices: those of waiting pods, or its own."""
        pod = load.neighbour
        if pod is None:
            return False
        if pod.annotations or any(rule.key != HOSTNAME for rule in pod.rules):
            return True
        with self._lock:
            if self._selectors is None:
                self._selectors = frozenset(chain.from_iterable(self._waiting.values()))
            selectors = self._selectors
        return any(each.matches(pod.namespace, pod.labels) for each in selectors)


def _waits(entry: Pod | InvalidObject | None) -> bool:
    return isinstance(entry, Pod) and not entry.node_name


def _selected(pod: Pod) -> tuple[PodSelector, ...]:
    return tuple(rule.pods.of(pod.namespace, pod.labels) for rule in pod.rules)
