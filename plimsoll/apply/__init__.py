"""From a Plan to updates of the capacity stacks."""

from plimsoll.apply.applier import Applier
from plimsoll.apply.delta import Outcome, Timing
from plimsoll.apply.errors import ApplyError, Failure, FailureKind, LeaseHeldError, LeaseLostError
from plimsoll.apply.lease import Lease
from plimsoll.apply.settings import ApplySettings, LeaseSettings
from plimsoll.apply.state import OwnedResource

__all__ = [
    "Applier",
    "ApplyError",
    "ApplySettings",
    "Failure",
    "FailureKind",
    "Lease",
    "LeaseHeldError",
    "LeaseLostError",
    "LeaseSettings",
    "Outcome",
    "OwnedResource",
    "Timing",
]
