"""Findings: what a node's own labels and resources contradict each other in."""

from enum import StrEnum
from typing import NamedTuple


class DiscrepancyReason(StrEnum):
    """The closed list of problems with the GPUs of a node."""

    SEVERAL_RESERVATIONS = "SeveralReservations"
    """Several reservation pods hold a GPU for the same group: each holds one, and pods run on one of them."""
    SHARED_GPU = "SharedGPU"
    """The reservations of several groups hold one GPU, whose shares are counted apart."""
    NO_RESERVATION = "NoReservation"
    """Shares run on a GPU without a reservation pod, so that others may be placed on it; they count only if their
    binder told them its UUID."""
    NO_GROUP = "NoGroup"
    """A share runs on a node, but no label names its GPU group: nobody placed it, and it counts for nothing."""
    OVERBOOKED = "Overbooked"
    """The shares of a group exceed its GPU."""
    TOO_MANY_GPUS = "TooManyGPUs"
    """Pods and groups use more GPUs than the node has."""
    UNREADABLE_SHARE = "UnreadableShare"
    """A pod on the node has a request that cannot be read."""
    WRONG_GROUPS = "WrongGroups"
    """A pod is in more or fewer groups than the GPUs that it requests."""
    UNREADABLE_NODE = "UnreadableNode"
    """The node reports a quantity that cannot be read."""
    NOT_SHAREABLE = "NotShareable"
    """Shares are on a node whose devices are not whole GPUs (time-slicing, MPS, MIG)."""
    MORE_ALLOCATABLE = "MoreAllocatable"
    """More devices are allocatable than labels say: the labels count."""
    FEWER_ALLOCATABLE = "FewerAllocatable"
    """Fewer devices are allocatable than labels say: the allocatable ones count."""
    INVALID_LABEL = "InvalidLabel"
    """A label on GPUs is missing or invalid beside others that are there."""
    UNLABELLED_SLICES = "UnlabelledSlices"
    """MIG slices are allocatable that no label describes."""
    REPLICAS_CONTRADICT = "ReplicasContradict"
    """The product's name says that GPUs are shared, and the number of replicas that they are not."""
    ANNOUNCED_TWICE = "AnnouncedTwice"
    """A device plugin and a driver's ResourceSlices announce GPUs of the node: those of the device plugin count."""
    MIG_CHANGING = "MIGChanging"
    """The node's MIG configuration is not applied, or failed."""


class Finding(NamedTuple):
    """One contradiction on a node."""

    reason: DiscrepancyReason
    message: str
