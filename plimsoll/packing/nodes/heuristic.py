"""Names of the packing heuristics. Leaving one out measures what it gains."""

from enum import StrEnum


class Heuristic(StrEnum):
    PATTERNS = "patterns"
    """Column generation over GPUs, and shapes by an integer program."""
    EVENLY = "evenly"
    """Spreads CPU and memory evenly over the chosen nodes, instead of best fit."""
    HEADROOM = "headroom"
    """Chooses the shapes again with spare CPU and memory."""
    NODE_PATTERNS = "node-patterns"
    """Column generation over whole nodes with their CPU or memory."""
    EMPTYING = "emptying"
    """Removes new nodes whose pods fit other nodes."""
    EXACT = "exact"
    """One integer program for few pods."""
