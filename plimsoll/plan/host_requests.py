"""CPU and memory that a pod asks of its node."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from plimsoll.model.pod import Pod
from plimsoll.model.quantity import parse_cpu_milli, parse_memory_mib


class HostRequests(NamedTuple):
    cpu_milli: int = 0
    memory_mib: int = 0


def host_requests(pod: Pod) -> HostRequests:
    """What the scheduler counts: the larger of containers with sidecars and of any one init container (KEP-753).

    Raises ValueError on what is no quantity.
    """
    if not pod.init_containers and len(pod.containers) == 1:
        return _of(pod.containers[0])
    sidecars, peak = HostRequests(), HostRequests()
    for container in pod.init_containers:
        asked = _of(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, asked)
        else:
            peak = _most(peak, _sum(sidecars, asked))
    for container in pod.containers:
        sidecars = _sum(sidecars, _of(container))
    return _most(peak, sidecars)


def _of(container: Mapping[str, Any]) -> HostRequests:
    resources = container.get("resources") or {}
    # What is limited and not requested is requested as limited: the apiserver's default.
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    if not asked:
        return HostRequests()
    return HostRequests(_cpu(asked.get("cpu", 0)), _memory(asked.get("memory", 0)))


_cpu = lru_cache(maxsize=4096)(parse_cpu_milli)
_memory = lru_cache(maxsize=4096)(parse_memory_mib)


def _sum(one: HostRequests, other: HostRequests) -> HostRequests:
    return HostRequests(one.cpu_milli + other.cpu_milli, one.memory_mib + other.memory_mib)


def _most(one: HostRequests, other: HostRequests) -> HostRequests:
    return HostRequests(max(one.cpu_milli, other.cpu_milli), max(one.memory_mib, other.memory_mib))
