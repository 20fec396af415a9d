"""From a Plan to updates of the capacity stacks."""

from plimsoll.apply.applier import Applier
from plimsoll.apply.errors import ApplyError, Failure, FailureKind, LeaseHeldError, LeaseLostError
from plimsoll.apply.outcome import Outcome, Timing
from plimsoll.apply.owned_resource import OwnedResource
from plimsoll.apply.settings import ApplySettings, LeaseSettings

__all__ = [
    "Applier",
    "ApplyError",
    "ApplySettings",
    "Failure",
    "FailureKind",
    "LeaseHeldError",
    "LeaseLostError",
    "LeaseSettings",
    "Outcome",
    "OwnedResource",
    "Timing",
]
