"""The capacity stacks of one environment. Each has a thread and at most one update at a time.

The phases of an update and their transitions are in `update_state`.
"""

from plimsoll.apply.stacks.keeper import StateKeeper
from plimsoll.apply.stacks.locks import break_stale
from plimsoll.apply.stacks.shard import Shard
from plimsoll.apply.stacks.stacks import Stacks
from plimsoll.apply.stacks.update import Updates
from plimsoll.apply.stacks.update_state import TRANSITIONS, Act, Event, Phase, UpdateState

__all__ = [
    "TRANSITIONS",
    "Act",
    "Event",
    "Phase",
    "Shard",
    "Stacks",
    "StateKeeper",
    "UpdateState",
    "Updates",
    "break_stale",
]
