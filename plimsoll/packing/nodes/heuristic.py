"""Heuristics of packing, by name, so that what each gains can be measured."""

from enum import StrEnum


class Heuristic(StrEnum):
    PATTERNS = "patterns"
    """Column generation over GPUs, and shapes by an integer program."""
    EVENLY = "evenly"
    """CPU and memory spread evenly over the chosen nodes, instead of best fit."""
    HEADROOM = "headroom"
    """Shapes chosen again with CPU and memory to spare."""
    MORE_GPUS = "more-gpus"
    """Shapes chosen again with more GPUs than the bound."""
    STACKING = "stacking"
    """Nodes that the bound's program chose filled one after the other, so that GPU, CPU and memory last alike."""
    EMPTYING = "emptying"
    """New nodes emptied whose pods find room on others."""
    EXACT = "exact"
    """One integer program for few pods."""
