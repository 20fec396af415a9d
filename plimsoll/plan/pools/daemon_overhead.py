"""What DaemonSets take of nodes: of new ones, and of those where their pods are still to come.

As Karpenter counts it (`isDaemonPodCompatible`): by node selector, required affinity and tolerations against the labels
and taints of the NodePool. It leaves out DaemonSets that select labels of GPU Feature Discovery; their pods come all
the same once the labels are there, so they are counted here.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from plimsoll.model.cluster import IDLE, DaemonSet, HostLoad, Node, Takes
from plimsoll.plan.pools.shape import PoolShape

_OS: Final = "kubernetes.io/os"
_TOLERATED: Final = frozenset(
    f"node.kubernetes.io/{condition}"
    for condition in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Taints that the DaemonSet controller lets every one of its pods tolerate."""


class DaemonOverhead:
    """Of the DaemonSets of one snapshot."""

    def __init__(self, daemon_sets: Iterable[DaemonSet] = ()) -> None:
        self._sets = [each for each in daemon_sets if not each.deleting]
        self._plain = frozenset(each.title for each in self._sets if each.plain)

    def of_shape(self, shape: PoolShape) -> HostLoad:
        """What they take of each new node of a shape."""
        if _OS not in shape.labels and _OS not in shape.requirements:
            shape = replace(shape, labels={**shape.labels, _OS: "linux"})
        return _load(each for each in self._sets if shape.serves(each.placement))

    def to_come(self, node: Node, load: HostLoad) -> HostLoad:
        """What they will take of a node beside the pods that are there."""
        if self._plain <= load.daemon_sets:
            return IDLE
        taints = tuple(taint for taint in node.taints if taint.key not in _TOLERATED)
        return _load(
            each
            for each in self._sets
            # Pods that ask for devices are told by name, not by their DaemonSet: those are counted where they run.
            if each.plain
            and each.title not in load.daemon_sets
            and each.placement.allows(node.labels, node.name)
            and not each.placement.kept_away(taints)
        )


def _load(daemon_sets: Iterable[DaemonSet]) -> HostLoad:
    return HostLoad.of(Takes(each.host, each.title) for each in daemon_sets)
