"""Instance types: the built-in table, those that an Environment offers, and their labels."""

from plimsoll.cluster.catalog.catalog import Candidate, Catalog, UnknownInstanceTypeError
from plimsoll.cluster.catalog.comparison import Changed, Comparison, compare_table
from plimsoll.cluster.catalog.gpu_discovery import catalogued, discovery_labels
from plimsoll.cluster.catalog.node_template import NodeTemplate
from plimsoll.cluster.catalog.offered import (
    OfferedType,
    OfferedTypes,
    Wanted,
    claim_gpus,
    most_gpus,
    unlisted_azure,
)
from plimsoll.cluster.catalog.pool_types import allows_type, label_requirements
from plimsoll.cluster.catalog.provider_labels import (
    AWS,
    AZURE,
    CLOUDS,
    KWOK,
    WITHOUT_RESERVATIONS,
    TypeLabels,
    counted_by_karpenter,
    launched_for_gpus,
    type_labels,
)

__all__ = [
    "AWS",
    "AZURE",
    "CLOUDS",
    "KWOK",
    "WITHOUT_RESERVATIONS",
    "Candidate",
    "Catalog",
    "Changed",
    "Comparison",
    "NodeTemplate",
    "OfferedType",
    "OfferedTypes",
    "TypeLabels",
    "UnknownInstanceTypeError",
    "Wanted",
    "allows_type",
    "catalogued",
    "claim_gpus",
    "compare_table",
    "counted_by_karpenter",
    "discovery_labels",
    "label_requirements",
    "launched_for_gpus",
    "most_gpus",
    "type_labels",
    "unlisted_azure",
]
