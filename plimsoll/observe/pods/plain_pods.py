"""The plain pods of a cluster, by node: about 70 bytes each, as there are a hundred thousand of them."""

from collections.abc import Mapping
from typing import Final

from plimsoll.model.cluster import HostLoad, PlainPod, Takes

_SMALL: Final = 2**60 - 1
"""Integers up to this take 32 bytes."""


class PlainPods:
    """Pods are told apart by a hash of namespace and name among those of their node: of two that collide there, which
    happens once in 10^15 nodes, one is not counted. Not safe to share between threads."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[int, Takes]] = {}
        self._loads: dict[str, HostLoad] = {}
        """Of nodes whose pods did not change since."""
        self._whole: Mapping[str, HostLoad] | None = {}

    def put(self, key: tuple[str, str], pod: PlainPod) -> bool:
        """Whether the node's load is another one now."""
        pods = self._pods.setdefault(pod.node, {})
        number = hash(key) & _SMALL
        if pods.get(number) == pod.takes:
            return False
        pods[number] = pod.takes
        self._changed(pod.node)
        return True

    def drop(self, key: tuple[str, str], node: str) -> bool:
        """Whether the pod was there."""
        pods = self._pods.get(node)
        if pods is None or pods.pop(hash(key) & _SMALL, None) is None:
            return False
        if not pods:
            del self._pods[node]
        self._changed(node)
        return True

    def loads(self) -> Mapping[str, HostLoad]:
        """By node, of those that have such pods; the same value while nothing changes."""
        if self._whole is None:
            for node in self._pods.keys() - self._loads.keys():
                self._loads[node] = HostLoad.of(self._pods[node].values())
            self._whole = dict(self._loads)
        return self._whole

    def nodes(self) -> set[str]:
        """Those that have such pods."""
        return set(self._pods)

    def same(self, other: "PlainPods", node: str) -> bool:
        """Whether the node's pods are those of the other."""
        return self._pods.get(node) == other._pods.get(node)

    def _changed(self, node: str) -> None:
        self._loads.pop(node, None)
        self._whole = None
