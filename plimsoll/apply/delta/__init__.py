"""One delta: its parts for the stacks, the operations that a part comes to, and what became of them."""

from plimsoll.apply.delta.outcome import Outcome, Timing
from plimsoll.apply.delta.parts import Part, assign, check, only, stacks_for
from plimsoll.apply.delta.review import Review, Reviewer, is_going, outcome_of, stamped

__all__ = [
    "Outcome",
    "Part",
    "Review",
    "Reviewer",
    "Timing",
    "assign",
    "check",
    "is_going",
    "only",
    "outcome_of",
    "stacks_for",
    "stamped",
]
