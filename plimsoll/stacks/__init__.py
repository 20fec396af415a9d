"""The Pulumi programs of the stacks; each stack has a `Pulumi.<stack>.yaml`."""

from plimsoll.stacks.gpu_software import classify
from plimsoll.stacks.mutation_effect import until_effective
from plimsoll.stacks.node_overlays import node_overlays
from plimsoll.stacks.program import run
from plimsoll.stacks.settings import Settings, settings_of
from plimsoll.stacks.shared_devices import shared_devices, with_shared_devices
from plimsoll.stacks.stack_connection import stack_cluster
from plimsoll.stacks.trainer import has_kai_scheduler_field

__all__ = [
    "Settings",
    "classify",
    "has_kai_scheduler_field",
    "node_overlays",
    "run",
    "settings_of",
    "shared_devices",
    "stack_cluster",
    "until_effective",
    "with_shared_devices",
]
