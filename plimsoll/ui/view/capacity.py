"""Lines of GPUs and cost over time, from the points that the Environment's status records, to the present."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from plimsoll.model import Snapshot
from plimsoll.plan.owned import format_time, parse_time
from plimsoll.ui.view.nodes import NodeRow

WIDTH: Final = 1000
HEIGHT: Final = 120
"""Of the picture, in its own units."""


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    is_money: bool
    path: str
    """Points of the line, in steps: a value holds until the next."""
    marks: tuple[tuple[float, float, str], ...]
    """Of each value: x, y and what it is."""
    now: float
    most: float
    first: str
    """RFC 3339: since when."""


def capacity_lines(snapshot: Snapshot, nodes: Sequence[NodeRow], now: datetime) -> tuple[Line, ...]:
    """A line of GPUs, and one of cost where prices are known; none where nothing is recorded yet."""
    points = snapshot.environment.status.history
    recorded = [(time, point) for point in points if (time := parse_time(point.time)) is not None and time <= now]
    if not recorded:
        return ()
    costs = [row.cost.price for row in nodes if row.cost is not None]
    gpus = [(time, float(point.gpus)) for time, point in recorded]
    priced = [(time, point.cost) for time, point in recorded if point.cost is not None]
    lines = [_line("GPUs", [*gpus, (now, float(sum(row.gpus for row in nodes)))])]
    if priced and (costs or not nodes):
        lines.append(_line("Cost an hour", [*priced, (now, sum(costs))], is_money=True))
    return tuple(lines)


def _line(what: str, values: Sequence[tuple[datetime, float]], *, is_money: bool = False) -> Line:
    first, last = values[0][0], values[-1][0]
    seconds, most = max(1.0, (last - first).total_seconds()), max(1.0, *(value for _, value in values))
    places = [
        (round((time - first).total_seconds() / seconds * WIDTH, 1), round(HEIGHT - value / most * HEIGHT, 1))
        for time, value in values
    ]
    marks = tuple((x, y, f"{_minute(time)}: {value:g}") for (x, y), (time, value) in zip(places, values, strict=True))
    return Line(what, is_money, " ".join(_steps(places)), marks, values[-1][1], max(value for _, value in values),
                format_time(first))  # fmt: skip


def _steps(places: Sequence[tuple[float, float]]) -> Iterable[str]:
    last_y = places[0][1]
    for x, y in places:
        yield f"{x:g},{last_y:g}"
        yield f"{x:g},{y:g}"
        last_y = y


def _minute(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
