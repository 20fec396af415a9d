"""A library that packs pods onto GPUs and nodes. It does not depend on Kubernetes."""

from plimsoll.packing.units import GPU_MILLI, Milli, exact_milli

__all__ = ["GPU_MILLI", "Milli", "exact_milli"]
