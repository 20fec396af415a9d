"""GPUs and cost over a year, for the Environment's status: a point an hour at most, fewer the older they are."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cost import Prices, cluster_cost
from plimsoll.model import Snapshot
from plimsoll.model.api import MOST_POINTS, CapacityPoint
from plimsoll.plan.owned import format_time, parse_time

_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_WIDTHS: Final = ((_DAY, _HOUR), (30 * _DAY, _DAY), (365 * _DAY, 5 * _DAY))
"""Up to which age there is one point in which time."""


class CapacityHistory:
    """The points, oldest first; a restarted controller continues those of the cluster."""

    def __init__(self) -> None:
        self._points: tuple[CapacityPoint, ...] | None = None

    def with_point(
        self, known: tuple[CapacityPoint, ...], snapshot: Snapshot, now: datetime, *, applied: bool
    ) -> tuple[CapacityPoint, ...]:
        """The points with that of a delta, if it was `applied` and is the first of its hour; `known` are those of the
        cluster."""
        if self._points is None:
            self._points = known
        last = parse_time(self._points[-1].time) if self._points else None
        if applied and (last is None or _place(last, _HOUR) != _place(now, _HOUR)):
            self._points = thinned((*self._points, point_of(snapshot, now)), now)
        return self._points


def point_of(snapshot: Snapshot, now: datetime) -> CapacityPoint:
    # What nodes have and cost does not depend on their pods, of which a cluster has a hundred thousand.
    accounts = tuple(gpu_ledger(snapshot.model_copy(update={"pods": ()})).accounts())
    cost = cluster_cost(accounts, Prices.of(snapshot))
    hourly = round(cost.hourly, 2) if cost.nodes or not cost.unpriced else None
    return CapacityPoint(time=format_time(now), gpus=sum(account.gpus for account in accounts), cost=hourly)


def thinned(points: Iterable[CapacityPoint], now: datetime) -> tuple[CapacityPoint, ...]:
    """The last of each time that has one point, of at most a year, by time."""
    kept: dict[tuple[timedelta, int], tuple[datetime, CapacityPoint]] = {}
    for point in points:
        time = parse_time(point.time)
        width = None if time is None else next((width for age, width in _WIDTHS if now - time <= age), None)
        if time is not None and width is not None:
            place = (width, _place(time, width))
            kept[place] = max(kept.get(place, (time, point)), (time, point), key=lambda each: each[0])
    return tuple(point for _, point in sorted(kept.values(), key=lambda each: each[0]))[-MOST_POINTS:]


def _place(time: datetime, width: timedelta) -> int:
    return int(time.timestamp() // width.total_seconds())


def history_field(points: tuple[CapacityPoint, ...]) -> dict[str, Any]:
    """The field of the status; none without points."""
    return {"history": [point.model_dump(mode="json", exclude_none=True) for point in points]} if points else {}
