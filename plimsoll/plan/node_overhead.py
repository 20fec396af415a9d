"""What a node keeps of its CPU and memory for itself, where no node of its type tells."""

from typing import Final

_CPU_STEPS: Final = ((1000, 6.0), (1000, 1.0), (2000, 0.5))
"""(millicores, percent kept of them): the first core, the second, the next two."""
_CPU_REST: Final = 0.25
"""Percent of all further cores."""
_VM_SHARE: Final = 0.075
"""Of the memory, lost to the machine's firmware and kernel: Karpenter's default (`vmMemoryOverheadPercent`)."""
_KUBELET_MIB: Final = 255
_POD_MIB: Final = 11
_PODS: Final = 110
_EVICTION_MIB: Final = 100


def allocatable_cpu_milli(cpu_milli: int) -> int:
    """Millicores that pods may ask for, by the steps that kubelets of the large clouds reserve."""
    left, kept = cpu_milli, 0.0
    for step, percent in _CPU_STEPS:
        kept += min(left, step) * percent / 100
        left = max(0, left - step)
    return max(0, int(cpu_milli - kept - left * _CPU_REST / 100))


def allocatable_memory_mib(memory_mib: int) -> int:
    """MiB that pods may ask for: less what the machine, the kubelet with 110 pods, and its eviction threshold take."""
    return max(0, int(memory_mib * (1 - _VM_SHARE)) - _KUBELET_MIB - _POD_MIB * _PODS - _EVICTION_MIB)
