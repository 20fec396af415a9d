"""Heuristics of packing, by name, so that what each gains can be measured."""

from enum import StrEnum


class Heuristic(StrEnum):
    PATTERNS = "patterns"
    """Column generation over GPUs, and shapes by an integer program."""
    EVENLY = "evenly"
    """CPU and memory spread evenly over the chosen nodes, instead of best fit."""
    HEADROOM = "headroom"
    """Shapes chosen again with CPU and memory to spare."""
    NODE_PATTERNS = "node-patterns"
    """Column generation over whole nodes with their CPU or memory."""
    EMPTYING = "emptying"
    """New nodes emptied whose pods find room on others."""
    EXACT = "exact"
    """One integer program for few pods."""
