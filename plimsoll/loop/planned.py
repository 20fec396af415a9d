"""Planned: what one look at the cluster came to."""

from datetime import datetime
from typing import NamedTuple

from plimsoll.model import Plan
from plimsoll.plan.view import ClusterView


class Planned(NamedTuple):
    view: ClusterView
    plan: Plan | None
    """None while the watches do not show the last delta yet."""
    now: datetime
    seconds: float = 0.0
    """Spent on validating and planning."""
    waited: float = 0.0
    """Seconds for which the end of a burst was awaited."""
