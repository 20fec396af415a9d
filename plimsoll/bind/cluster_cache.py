"""Nodes and pods as the watches show them, together with the binder's own writes that the watches have not
delivered yet."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.bind.pods import pods_of
from plimsoll.kube import Connection
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Node, Pod
from plimsoll.observe.cluster import NODES, ClusterWatch, Store

_FORGET_SECONDS = 30.0
"""A write that no watch has delivered after this long counts as undone."""


@dataclass(frozen=True, slots=True)
class _Written:
    pod: Pod
    at: float
    new: bool
    """Whether the binder created the pod. If the binder did not, and the watch no longer shows it, the pod is
    deleted."""


class ClusterCache(ClusterWatch):
    """Nodes and pods of one cluster. Thread-safe."""

    def __init__(
        self, connection: Connection, settings: BinderSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._nodes = Store(NODES)
        self._pods = Store(pods_of(settings))
        super().__init__(connection, (self._nodes, self._pods))
        self._clock = clock
        self._written: dict[tuple[str, str], _Written] = {}
        self._lock = threading.Lock()

    def note(self, pod: Pod, *, new: bool = False) -> None:
        """Records the pod as a write left it, or created it (`new`). It replaces the watch's version until the watch
        delivers a newer one."""
        with self._lock:
            self._written[pod.key] = _Written(pod, self._clock(), new)

    def nodes(self) -> Sequence[Node]:
        return self._nodes.values()

    def pods(self) -> list[Pod]:
        """All pods that are not finished. Raises NotSyncedError until each watch is synced."""
        self.require_synced()
        seen = self._pods.values()
        with self._lock:
            if not self._written:
                return list(seen)
            by_key = {pod.key: pod for pod in seen}
            for key, written in list(self._written.items()):
                if self._is_settled(written, by_key.get(key)):
                    del self._written[key]
                else:
                    by_key[key] = written.pod
            return list(by_key.values())

    def _is_settled(self, written: _Written, seen: Pod | None) -> bool:
        """Whether the watch's version is current again."""
        if seen is None:
            return not written.new or self._clock() - written.at > _FORGET_SECONDS
        return _is_newer(seen, written.pod) or self._clock() - written.at > _FORGET_SECONDS


def _is_newer(seen: Pod, written: Pod) -> bool:
    """Whether the watch's version is newer than the write. Resource versions of one kind increase (KEP-5504)."""
    try:
        return int(seen.resource_version) > int(written.resource_version)
    except ValueError:
        return seen.resource_version != written.resource_version
