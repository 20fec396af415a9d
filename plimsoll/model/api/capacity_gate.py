"""The capacity gate: a scheduling gate that holds share pods until their GPUs are available.

To Karpenter, pods with shares by annotation look like pods without GPUs: it may launch CPU nodes for them, or count on
full nodes. It ignores pods with a scheduling gate.
"""

from typing import Annotated, Final

from pydantic import Field, model_validator

from plimsoll.labels import GROUP
from plimsoll.model.meta import Declared

CAPACITY_GATE: Final = f"{GROUP}/capacity"
"""Name of the gate in a pod's `spec.schedulingGates`."""
GATE_REMOVED_REASON: Final = f"{GROUP}/capacity-gate-lifted"
"""Annotation of a pod whose gate was removed, with the reason. Its place is kept until a scheduler has handled it."""

_Name = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]


class CapacityGateSpec(Declared):
    """Which share pods get the gate: those in some namespaces, and those of some queues in every namespace."""

    namespaces: tuple[_Name, ...] = ()
    """Namespaces whose pods with GPU shares get the gate."""
    queues: tuple[_Name, ...] = ()
    """Queues whose pods with GPU shares get the gate, in every namespace."""
    whole_gpus: bool = False
    """Whether pods that request whole GPUs get the gate, too, until their queue admits them."""

    @model_validator(mode="after")
    def _somebody(self) -> "CapacityGateSpec":
        if not self.namespaces and not self.queues:
            raise ValueError("name at least one namespace or one queue")
        return self
