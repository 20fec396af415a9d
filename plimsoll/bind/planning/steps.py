"""What the share binder does next: each step one write, which may be repeated without harm."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from plimsoll.bind.planning.placement import ShareSpot
from plimsoll.model.cluster import Pod


class Said(StrEnum):
    """Reasons of the condition PodScheduled=False."""

    UNSCHEDULABLE = "Unschedulable"
    """Fits nowhere, so that the demand planner sees it."""
    REFUSED = "SchedulerError"
    """Asks for what the binder does not do: no node would help."""
    RESERVING = "ReservingGPU"
    """Has its place; its GPU is being reserved."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Write on the pod where it is to run: its place is taken from then on."""

    pod: Pod
    spot: ShareSpot


@dataclass(frozen=True, slots=True)
class Unclaim:
    """Take that off again."""

    pod: Pod
    why: str


@dataclass(frozen=True, slots=True)
class Reserve:
    """Make the reservation of a group."""

    node: str
    group: str
    pod: Pod
    """Whose tolerations it gets."""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class MarkUnknown:
    """Write on a reservation that its GPU did not become known in time, so that nobody joins it."""

    reservation: Pod


@dataclass(frozen=True, slots=True)
class Bind:
    """Hand the GPUs over, and bind the pod."""

    pod: Pod
    node: str
    gpus: tuple[str, ...]
    """UUIDs, in the order of the groups' names."""
    portion: str


@dataclass(frozen=True, slots=True)
class Say:
    """Write the condition PodScheduled=False."""

    pod: Pod
    reason: Said
    message: str


@dataclass(frozen=True, slots=True)
class Collect:
    """Delete a reservation of ours, if it is still as it was."""

    reservation: Pod
    why: str
    group_is_empty: bool = True
    """Whether it goes because nobody needs it, which a BindRequest of KAI may contradict."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a pod whose GPU was lost to others."""

    pod: Pod
    why: str


BindStep: TypeAlias = Claim | Unclaim | Reserve | MarkUnknown | Bind | Say | Collect | Evict
