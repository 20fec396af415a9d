"""The loop: observe, validate, plan, apply, report."""

from plimsoll.loop.burst import BURST
from plimsoll.loop.environments import EnvironmentChangedError
from plimsoll.loop.expectations import DEADLINE, Expectations
from plimsoll.loop.garbage import collect_rarely
from plimsoll.loop.loop import LOOK_AGAIN_SECONDS, Loop, Tick
from plimsoll.loop.outlook import with_claims

__all__ = [
    "BURST",
    "DEADLINE",
    "LOOK_AGAIN_SECONDS",
    "EnvironmentChangedError",
    "Expectations",
    "Loop",
    "Tick",
    "collect_rarely",
    "with_claims",
]
