"""HostLoad: what pods without GPUs use of one node, and what rules about pods see of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from plimsoll.model.cluster.plain_pod import Neighbour, PodLoad


@dataclass(frozen=True, slots=True)
class HostLoad:
    cpu_milli: int = 0
    memory_mib: int = 0
    storage_mib: int = 0
    pods: int = 0
    daemon_sets: frozenset[str] = frozenset()
    """`namespace/name` of the DaemonSets that have a pod there."""
    neighbours: tuple[Neighbour, ...] = field(default=(), hash=False)
    repelling: tuple[Neighbour, ...] = field(default=(), hash=False)
    """Those of the neighbours that keep other pods away."""

    @classmethod
    def of(cls, pods: Iterable[PodLoad]) -> "HostLoad":
        """The total load of these pods."""
        cpu_milli = memory_mib = storage_mib = count = 0
        daemon_sets, neighbours = set(), []
        for pod in pods:
            cpu_milli += pod.host.cpu_milli
            memory_mib += pod.host.memory_mib
            storage_mib += pod.host.storage_mib
            count += 1
            if pod.daemon_set:
                daemon_sets.add(pod.daemon_set)
            if pod.neighbour is not None:
                neighbours.append(pod.neighbour)
        repelling = tuple(each for each in neighbours if each.rules)
        names = _shared(frozenset(daemon_sets))
        return cls(cpu_milli, memory_mib, storage_mib, count, names, tuple(neighbours), repelling)


IDLE = HostLoad()


@lru_cache(maxsize=4096)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """Cached, because many nodes run the same DaemonSets."""
    return names
