"""Applying one Plan: its parts for the stacks, the operations of each part, and their outcome."""

from plimsoll.apply.delta.outcome import Outcome, Timing
from plimsoll.apply.delta.parts import Part, assign, check, only, stacks_for
from plimsoll.apply.delta.review import Review, Reviewer, is_going, outcome_of, with_shard_label

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
    "with_shard_label",
]
