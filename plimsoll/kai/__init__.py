"""Rewrites pods that get GPUs by KAI's annotations, or from a device plugin, to claims."""

from plimsoll.kai.rewriting import Rewritten, to_claims
from plimsoll.kai.sharing import Sharing

__all__ = [
    "Rewritten",
    "Sharing",
    "to_claims",
]
