"""Planned: the view, the plan and the timings of one round."""

from datetime import datetime
from typing import NamedTuple

from plimsoll.model import Plan
from plimsoll.plan.view import ClusterView


class Planned(NamedTuple):
    view: ClusterView
    plan: Plan | None
    """None while the watches do not show the result of the last Plan."""
    now: datetime
    seconds: float = 0.0
    """Time spent on validating and planning."""
    waited: float = 0.0
    """Seconds spent waiting for the end of a burst."""
