"""The capacity stacks of one environment: each has a life of its own, a thread, and at most one update.

The phases of a stack's life, and what leads from one to the next, are drawn in `life`.
"""

from plimsoll.apply.stacks.keeper import StateKeeper
from plimsoll.apply.stacks.life import TRANSITIONS, Act, Event, Life, Phase
from plimsoll.apply.stacks.locks import break_stale
from plimsoll.apply.stacks.shard import Shard
from plimsoll.apply.stacks.stacks import Stacks
from plimsoll.apply.stacks.update import Updates

__all__ = [
    "TRANSITIONS",
    "Act",
    "Event",
    "Life",
    "Phase",
    "Shard",
    "Stacks",
    "StateKeeper",
    "Updates",
    "break_stale",
]
