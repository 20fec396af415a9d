"""The loop: observe, validate, plan, apply, report."""

from plimsoll.loop.burst import BURST
from plimsoll.loop.created_claims import with_claims
from plimsoll.loop.environments import EnvironmentChangedError, require_same, require_served
from plimsoll.loop.expectations import DEADLINE, Expectations
from plimsoll.loop.loop import RESYNC_SECONDS, Loop, RoundResult
from plimsoll.loop.refused_operations import FIRST_PAUSE, LONGEST_PAUSE

__all__ = [
    "BURST",
    "DEADLINE",
    "FIRST_PAUSE",
    "LONGEST_PAUSE",
    "RESYNC_SECONDS",
    "EnvironmentChangedError",
    "Expectations",
    "Loop",
    "RoundResult",
    "require_same",
    "require_served",
    "with_claims",
]
