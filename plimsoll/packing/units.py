"""Units in which GPUs are counted."""

from typing import Final

GPU_MILLI: Final = 1000
"""Thousandths of one GPU."""
