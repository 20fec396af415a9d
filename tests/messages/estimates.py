"""Why a model does not fit nodes."""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.cluster.profiles import mig_slice
from plimsoll.estimating import Infeasible, ModelNeed, Settings, estimate
from plimsoll.model.cluster import MIB_PER_GIB, Device
from plimsoll.presets import ModelShape

CASES: Final[Mapping[str, tuple[ModelNeed, Device]]] = {
    "no room beside the KV cache": (ModelNeed(1, 1_000_000), Device("", 8 * MIB_PER_GIB, 1)),
    "two nodes, for a model that runs on one": (
        ModelNeed(27.31, 204800, spans_nodes=False),
        Device("", 24 * MIB_PER_GIB, 1),
    ),
    "heads that no two GPUs divide": (
        ModelNeed(27.31, 204800, spans_nodes=False, shape=ModelShape(32, 71, 1, 64)),
        Device("", 24 * MIB_PER_GIB, 2),
    ),
    "a MIG slice that is too small": (ModelNeed(8, 8192), mig_slice("1g.10gb")),
}


def messages() -> dict[str, Any]:
    found = {name: estimate(need, gpus, Settings(context_length=8192)) for name, (need, gpus) in CASES.items()}
    return {name: each.reason for name, each in found.items() if isinstance(each, Infeasible)}
