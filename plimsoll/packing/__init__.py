"""Packing pods onto GPUs and nodes: a library that knows no Kubernetes."""

from plimsoll.packing.units import GPU_MILLI

__all__ = ["GPU_MILLI"]
