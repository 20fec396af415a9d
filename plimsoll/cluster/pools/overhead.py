"""CPU and memory of a new node that the system and DaemonSets use."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from plimsoll.cluster.profiles import NodeProfile
from plimsoll.model.cluster import IDLE, DaemonSet, HostLoad, InstanceType, Node, PodLoad
from plimsoll.packing import UNBOUNDED

_CPU_STEPS: Final = ((1000, 6.0), (1000, 1.0), (2000, 0.5), (UNBOUNDED, 0.25))
"""(millicores, percent reserved of them): the first core, the second, the next two, all further ones."""
_MEMORY_STEPS: Final = ((4096, 25.0), (4096, 20.0), (8192, 10.0), (114688, 6.0), (UNBOUNDED, 2.0))
"""(MiB, percent reserved of them) by the kubelets of Azure and of Google."""
_MACHINE: Final = 7.5
"""Percent of the nominal memory that Karpenter's providers subtract for the virtual machine."""
_EVICTION_MIB: Final = 100
"""The kubelet evicts pods when less than this is free."""
_AWS_BASE_MIB: Final = 255
_AWS_POD_MIB: Final = 11
"""Memory that Amazon's kubelets reserve: a base, and an amount for each pod that the node may have."""
_AWS_SMALL_VCPUS: Final = 30
_AWS_PODS: Final = (110, 250)
"""Maximum pods of a node whose network interfaces are not known: a small one, a larger one."""


class Allocatable(NamedTuple):
    """What pods of a new node may request."""

    cpu_milli: int
    memory_mib: int


def allocatable(listed: InstanceType | None) -> Allocatable:
    """Allocatable resources by a type's catalog entry; unknown ones count as unbounded."""
    vcpus = listed.vcpus if listed is not None else None
    memory_mib = listed.memory_mib if listed is not None else None
    aws_pods = None
    if listed is not None and listed.cloud == "aws":
        aws_pods = listed.max_pods or _AWS_PODS[vcpus is None or vcpus > _AWS_SMALL_VCPUS]
    return Allocatable(
        allocatable_cpu_milli(vcpus * 1000) if vcpus else UNBOUNDED,
        _memory_mib(memory_mib, aws_pods) if memory_mib else UNBOUNDED,
    )


def listed_amounts(listed: InstanceType | None) -> dict[str, str]:
    """Allocatable amounts by a type's catalog entry, as far as they are known."""
    left = allocatable(listed)
    known = {"cpu": (left.cpu_milli, "m"), "memory": (left.memory_mib, "Mi")}
    return {name: f"{amount}{unit}" for name, (amount, unit) in known.items() if amount < UNBOUNDED}


def capacity_memory_mib(nominal: int) -> int:
    """Memory of a node with that nominal memory that Karpenter counts against limits."""
    return int(nominal * (1 - _MACHINE / 100))


def allocatable_cpu_milli(cpu_milli: int) -> int:
    """Allocatable millicores, after the reservations of the large clouds' kubelets."""
    return max(0, int(cpu_milli - _kept(cpu_milli, _CPU_STEPS)))


def _memory_mib(nominal: int, aws_pods: int | None) -> int:
    """`aws_pods`: maximum pods of a node on AWS, None elsewhere."""
    kept = _kept(nominal, _MEMORY_STEPS) if aws_pods is None else _AWS_BASE_MIB + _AWS_POD_MIB * aws_pods
    return max(0, int(capacity_memory_mib(nominal) - kept - _EVICTION_MIB))


def _kept(amount: int, steps: Iterable[tuple[int, float]]) -> float:
    kept = 0.0
    for step, percent in steps:
        kept += min(amount, step) * percent / 100
        amount = max(0, amount - step)
    return kept


_TOLERATED: Final = frozenset(
    f"node.kubernetes.io/{condition}"
    for condition in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Taints that the pods of every DaemonSet tolerate."""


class DaemonOverhead:
    """Overhead of the DaemonSets of one snapshot."""

    def __init__(self, daemon_sets: Iterable[DaemonSet] = ()) -> None:
        self._sets = [daemon_set for daemon_set in daemon_sets if not daemon_set.deleting]
        self._plain = frozenset(daemon_set.title for daemon_set in self._sets if daemon_set.plain)

    def of_profile(self, profile: NodeProfile) -> HostLoad:
        """What they use of each new node of a profile."""
        return _load(daemon_set for daemon_set in self._sets if profile.serves(daemon_set.placement))

    def missing_from(self, node: Node, load: HostLoad) -> HostLoad:
        """What they will use of a node besides the pods that exist there."""
        if self._plain <= load.daemon_sets:
            return IDLE
        taints = tuple(taint for taint in node.taints if taint.key not in _TOLERATED)
        return _load(
            daemon_set
            for daemon_set in self._sets
            # Pods that request devices are observed one by one and counted where they run.
            if daemon_set.plain
            and daemon_set.title not in load.daemon_sets
            and daemon_set.placement.allows(node.labels, node.name)
            and not daemon_set.placement.untolerated_taints(taints)
        )


def _load(daemon_sets: Iterable[DaemonSet]) -> HostLoad:
    return HostLoad.of(PodLoad(daemon_set.host, daemon_set.title) for daemon_set in daemon_sets)
