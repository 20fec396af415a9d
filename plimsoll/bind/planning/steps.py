"""The steps of the share binder. Each is one write, and repeating it does no harm."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from plimsoll.bind.planning.placement import ShareAssignment
from plimsoll.model.cluster import Pod


class UnscheduledReason(StrEnum):
    """Reasons of the condition PodScheduled=False."""

    UNSCHEDULABLE = "Unschedulable"
    """No node fits the pod. The demand planner then requests capacity."""
    REFUSED = "SchedulerError"
    """The pod requests something that the binder does not support, so no node would help."""
    RESERVING = "ReservingGPU"
    """The pod has a place, and its GPU is being reserved."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Annotates the pod with its place, which then counts as used."""

    pod: Pod
    assignment: ShareAssignment


@dataclass(frozen=True, slots=True)
class Unclaim:
    """Removes the claim from the pod."""

    pod: Pod
    why: str


@dataclass(frozen=True, slots=True)
class Reserve:
    """Creates the reservation pod of a group."""

    node: str
    group: str
    pod: Pod
    """The pod whose tolerations the reservation gets."""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class MarkUnknown:
    """Marks a reservation whose GPU did not become known in time, so that no pod joins it."""

    reservation: Pod


@dataclass(frozen=True, slots=True)
class Bind:
    """Writes the pod's ConfigMaps, and binds the pod."""

    pod: Pod
    node: str
    gpus: tuple[str, ...]
    """UUIDs of the GPUs, in the order of the groups' names."""
    portion: str


@dataclass(frozen=True, slots=True)
class SetUnscheduled:
    """Sets the condition PodScheduled=False."""

    pod: Pod
    reason: UnscheduledReason
    message: str


@dataclass(frozen=True, slots=True)
class DeleteReservation:
    """Deletes a reservation of the binder, unless it has changed."""

    reservation: Pod
    why: str
    group_is_empty: bool = True
    """Whether the reason is that its group is empty. A BindRequest of KAI may still need the group."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Evicts a pod whose GPU is now used by others."""

    pod: Pod
    why: str


BindStep: TypeAlias = Claim | Unclaim | Reserve | MarkUnknown | Bind | SetUnscheduled | DeleteReservation | Evict
