"""The next Plan, for commands that show it."""

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.model import Plan, Snapshot
    from plimsoll.plan.view import ClusterView


def next_plan(observed: "Snapshot | ClusterView", now: datetime) -> "Plan":
    """What the controller would apply now: without the objects that a policy withholds."""
    from plimsoll.plan import plan, validate
    from plimsoll.plan.view import ClusterView
    from plimsoll.policy import withhold

    view = ClusterView.of(observed)
    return withhold(plan(view, validate(view, now), now), view.observed, now)
