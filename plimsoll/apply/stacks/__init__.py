"""The capacity stacks of one environment: each has a life of its own, a thread, and at most one update.

The phases of a stack's life, and what leads from one to the next, are drawn in `life`.
"""

from plimsoll.apply.stacks.stacks import Stacks

__all__ = ["Stacks"]
