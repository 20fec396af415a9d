"""Instance types: the built-in table, those that an Environment offers, and their labels."""

from plimsoll.cluster.catalog.catalog import Candidate, Catalog, UnknownInstanceTypeError
from plimsoll.cluster.catalog.offered import OfferedType, OfferedTypes, claim_gpus, most_gpus, unlisted_azure
from plimsoll.cluster.catalog.pool_types import label_requirements
from plimsoll.cluster.catalog.provider_labels import CLOUDS, KWOK, type_labels
from plimsoll.cluster.catalog.reported_memory import reported_memory_mib

__all__ = [
    "CLOUDS",
    "KWOK",
    "Candidate",
    "Catalog",
    "OfferedType",
    "OfferedTypes",
    "UnknownInstanceTypeError",
    "claim_gpus",
    "label_requirements",
    "most_gpus",
    "reported_memory_mib",
    "type_labels",
    "unlisted_azure",
]
