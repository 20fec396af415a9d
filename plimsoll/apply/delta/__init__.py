"""Applying one Plan: its parts for the stacks, the operations of each part, and their outcome."""

from plimsoll.apply.delta.outcome import Outcome, Timing
from plimsoll.apply.delta.parts import Part, assign, only, require_applicable, stacks_for
from plimsoll.apply.delta.review import Review, Reviewer, outcome_of, with_shard_label, with_uid

__all__ = [
    "Outcome",
    "Part",
    "Review",
    "Reviewer",
    "Timing",
    "assign",
    "only",
    "outcome_of",
    "require_applicable",
    "stacks_for",
    "with_shard_label",
    "with_uid",
]
