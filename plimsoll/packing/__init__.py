"""A library that packs pods onto GPUs and nodes. It does not depend on Kubernetes."""

from plimsoll.packing.relation import Relation
from plimsoll.packing.units import GPU_MILLI, UNBOUNDED, Milli, exact_milli, less

__all__ = ["GPU_MILLI", "UNBOUNDED", "Milli", "Relation", "exact_milli", "less"]
