"""Refusal: why validation refuses a Workspace, before it becomes a verdict."""

from typing import Final, NamedTuple

from plimsoll.model.verdict import Reason

NO_NODES_FOR: Final = "no node is requested, because the cluster would refuse"
"""Begin of the message of a refusal by the apiserver, which the status of the Workspace keeps."""


class Refusal(NamedTuple):
    reason: Reason
    message: str
    """What was found, with names and values, and what to change."""
