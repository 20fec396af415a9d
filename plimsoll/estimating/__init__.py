"""How many GPUs and nodes one replica of a model needs, and how the server runs it there."""

from plimsoll.estimating.estimates import Estimates, settings_of
from plimsoll.estimating.estimator import (
    Estimate,
    Infeasible,
    Line,
    MemoryNeed,
    ModelNeed,
    Need,
    estimate,
    unknown_context,
)
from plimsoll.estimating.settings import BYTES_PER_GIB, Settings
from plimsoll.estimating.sizing import (
    ReplicaNeed,
    ReplicaSize,
    Sizing,
    nodes_in_all,
    nodes_per_replica,
    preset_of,
    replica_need,
    start_doubt,
    too_long_context,
)
from plimsoll.estimating.template_requests import beyond_node, not_of_partition, template_gpus

__all__ = [
    "BYTES_PER_GIB",
    "Estimate",
    "Estimates",
    "Infeasible",
    "Line",
    "MemoryNeed",
    "ModelNeed",
    "Need",
    "ReplicaNeed",
    "ReplicaSize",
    "Settings",
    "Sizing",
    "beyond_node",
    "estimate",
    "nodes_in_all",
    "nodes_per_replica",
    "not_of_partition",
    "preset_of",
    "replica_need",
    "settings_of",
    "start_doubt",
    "template_gpus",
    "too_long_context",
    "unknown_context",
]
