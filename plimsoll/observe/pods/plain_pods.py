"""PlainPods: the plain pods of a cluster by node, in about 100 bytes each, because there may be a hundred thousand."""

from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.model.cluster import HostLoad, PlainPod, PodLoad

_SMALL: Final = 2**60 - 1
"""Integers up to this take 32 bytes in memory."""


class PlainPods:
    """Plain pods by node. Not thread-safe.

    Pods of one node are identified by a hash of namespace and name. If two pods of a node have the same hash, which
    happens on one of 10^15 nodes, only one is counted.
    """

    def __init__(self) -> None:
        self._pods: dict[str, dict[int, PodLoad]] = {}
        self._loads: dict[str, HostLoad] = {}
        """Of nodes whose pods did not change since."""
        self._whole: Mapping[str, HostLoad] | None = {}

    def put(self, key: tuple[str, str], pod: PlainPod) -> tuple[PodLoad, ...]:
        """Adds or replaces a pod. Returns what was there and what is there now; nothing if that is the same."""
        pods = self._pods.setdefault(pod.node, {})
        number = hash(key) & _SMALL
        before = pods.get(number)
        if before == pod.load:
            return ()
        pods[number] = pod.load
        self._changed(pod.node)
        return (pod.load,) if before is None else (before, pod.load)

    def drop(self, key: tuple[str, str], node: str) -> tuple[PodLoad, ...]:
        """Removes a pod. Returns what was there; nothing if it did not exist."""
        pods = self._pods.get(node)
        load = None if pods is None else pods.pop(hash(key) & _SMALL, None)
        if load is None:
            return ()
        if not pods:
            del self._pods[node]
        self._changed(node)
        return (load,)

    def loads(self) -> Mapping[str, HostLoad]:
        """The load of each node with plain pods; the same object while nothing changes."""
        if self._whole is None:
            for node in self._pods.keys() - self._loads.keys():
                self._loads[node] = HostLoad.of(self._pods[node].values())
            self._whole = dict(self._loads)
        return self._whole

    def nodes(self) -> set[str]:
        """Names of the nodes with plain pods."""
        return set(self._pods)

    def on(self, node: str) -> Iterable[PodLoad]:
        return self._pods.get(node, {}).values()

    def same(self, other: "PlainPods", node: str) -> bool:
        """Whether both have the same pods on the node."""
        return self._pods.get(node) == other._pods.get(node)

    def _changed(self, node: str) -> None:
        self._loads.pop(node, None)
        self._whole = None
