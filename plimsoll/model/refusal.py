"""Refusal: why validation refuses a Workspace, before it becomes a verdict."""

from typing import NamedTuple

from plimsoll.model.verdict import Reason


class Refusal(NamedTuple):
    reason: Reason
    message: str
    """What was found, with names and values, and what to change."""
