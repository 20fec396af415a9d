"""Packing pods onto GPUs and nodes: a library that knows no Kubernetes."""

from plimsoll.packing.units import GPU_MILLI, Milli, exact_milli

__all__ = ["GPU_MILLI", "Milli", "exact_milli"]
