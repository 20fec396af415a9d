"""Nodes and pods: the state of the watches with the binder's own later writes."""

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
"""After that a write that no watch has shown is taken as undone."""


@dataclass(frozen=True, slots=True)
class _Written:
    pod: Pod
    at: float
    new: bool
    """Whether the watch did not know the pod before; where it did and no longer does, the pod is gone."""


class Cluster(ClusterWatch):
    """Safe to share between threads."""

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
        """A write left the pod like this, or made it (`new`): it stands until the watch shows something newer."""
        with self._lock:
            self._written[pod.key] = _Written(pod, self._clock(), new)

    def nodes(self) -> Sequence[Node]:
        return self._nodes.values()

    def pods(self) -> list[Pod]:
        """Raises NotSyncedError while a watch has not seen its kind."""
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
        """Whether what the watch shows is to be believed again."""
        if seen is None:
            return not written.new or self._clock() - written.at > _FORGET_SECONDS
        return _is_newer(seen, written.pod) or self._clock() - written.at > _FORGET_SECONDS


def _is_newer(seen: Pod, written: Pod) -> bool:
    """Whether the watch has gone beyond the write. Versions of one kind grow (KEP-5504)."""
    try:
        return int(seen.resource_version) > int(written.resource_version)
    except ValueError:
        return seen.resource_version != written.resource_version
