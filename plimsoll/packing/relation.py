"""How a pod must be placed relative to a group of pods."""

from enum import StrEnum


class Relation(StrEnum):
    TOGETHER = "together"
    """In a domain that has a pod of the group; the first of a group that it belongs to may be anywhere."""
    APART = "apart"
    """In no domain that has a pod of the group; nor may such a pod follow it there."""
    SPREAD = "spread"
    """In a domain that has at most `skew` more pods of the group, with this one, than the one that has the fewest."""
