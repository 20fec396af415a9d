"""What a node keeps of its CPU for itself, where no node of its type tells."""

from typing import Final

_CPU_STEPS: Final = ((1000, 6.0), (1000, 1.0), (2000, 0.5))
"""(millicores, percent kept of them): the first core, the second, the next two."""
_CPU_REST: Final = 0.25
"""Percent of all further cores."""


def allocatable_cpu_milli(cpu_milli: int) -> int:
    """Millicores that pods may ask for, by the steps that kubelets of the large clouds reserve."""
    left, kept = cpu_milli, 0.0
    for step, percent in _CPU_STEPS:
        kept += min(left, step) * percent / 100
        left = max(0, left - step)
    return max(0, int(cpu_milli - kept - left * _CPU_REST / 100))
