"""How many GPUs and nodes one replica of a model needs."""

from plimsoll.plan.estimating.estimates import Estimates, settings_of
from plimsoll.plan.estimating.estimator import (
    BYTES_PER_GIB,
    Estimate,
    Infeasible,
    Line,
    MemoryNeed,
    ModelNeed,
    Need,
    Settings,
    estimate,
)
from plimsoll.plan.estimating.known_models import (
    DISK_HEADROOM_GIB,
    InvalidPresetsError,
    near,
    preset,
    presets,
    read_presets,
)
from plimsoll.plan.estimating.model_config import InvalidModelConfigError, ModelConfig, read_model_config
from plimsoll.plan.estimating.sizing import ReplicaNeed, Sizing, nodes_in_all, nodes_per_replica, replica_need

__all__ = [
    "BYTES_PER_GIB",
    "DISK_HEADROOM_GIB",
    "Estimate",
    "Estimates",
    "Infeasible",
    "InvalidModelConfigError",
    "InvalidPresetsError",
    "Line",
    "MemoryNeed",
    "ModelConfig",
    "ModelNeed",
    "Need",
    "ReplicaNeed",
    "Settings",
    "Sizing",
    "estimate",
    "near",
    "nodes_in_all",
    "nodes_per_replica",
    "preset",
    "presets",
    "read_model_config",
    "read_presets",
    "replica_need",
    "settings_of",
]
