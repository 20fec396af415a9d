"""The screen of `plimsoll top`."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from plimsoll.cluster.queues import IncrementalUsage
from plimsoll.cost import Prices
from plimsoll.model import Snapshot
from plimsoll.model.api import ConditionType, GPUDemand
from plimsoll.packing import GPU_MILLI
from plimsoll.text import counted
from plimsoll.ui.view import (
    ClusterPage,
    DeltaRow,
    Filter,
    NodeGroup,
    NodeRows,
    QueueRow,
    RequestedRow,
    Segment,
    Use,
    cluster_page,
    delta_rows,
    queue_rows,
)

WIDTH = 22
"""Characters of a bar."""
WITH_BARS = 80
"""Columns of a screen from which there are bars; in fewer, they would leave figures no room."""
ROWS = 12
"""Rows of a table on a live screen."""
WARNINGS = 3
DELTAS = 5
CHANGES = 3
"""Of one delta."""
_MARKS = {
    Use.QUEUE: ("█", "cyan"),
    Use.OTHER: ("█", "white"),
    Use.RESERVED: ("▒", "yellow"),
    Use.FREE: ("░", "dim"),
    Use.NOT_READY: ("╱", "red"),
    Use.REQUESTED: ("·", "blue"),
}
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")

Row = TypeVar("Row")


class Screen:
    """Renders Snapshots one after the other; what did not change is not computed again. Where it is not `whole`, each
    table has its first rows, and says how many more there are."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._rows = NodeRows()
        self._usage = IncrementalUsage()

    def shown(self, snapshot: Snapshot) -> RenderableType:
        prices = Prices.of(snapshot)
        page = cluster_page(self._rows.update(snapshot, prices), snapshot, prices, Filter())
        parts: list[RenderableType] = [_headline(snapshot, page)]
        if snapshot.warnings:
            parts.append(self._warnings(snapshot.warnings))
        if page.groups:
            parts += [_legend(page), _Groups(self, page)]
        if page.requested:
            parts.append(self._requested(page.requested))
        if snapshot.queues:
            parts.append(self._queues(queue_rows(self._usage.of(snapshot), (), Filter())))
        if snapshot.gpu_demands:
            parts.append(self._demands(snapshot))
        parts.append(_workspaces(snapshot))
        deltas = delta_rows(snapshot, Filter())
        if deltas:
            parts.append(self._deltas(deltas))
        return Group(*(line for part in parts for line in (part, Text())))

    def _warnings(self, found: Sequence[str]) -> Text:
        """Such as that the state is not current."""
        shown, more = self._first(found, WARNINGS)
        lines = [Text.assemble(("warning: ", "yellow"), each) for each in shown]
        return Text("\n").join([*lines, *map(Text, more)])

    def groups(self, page: ClusterPage, *, bars: bool) -> Table:
        table = _table("Ready", "Type", "NodePool", "GPUs", "", "An hour", "Idle")

        def add(group: NodeGroup) -> None:
            nodes = f"{group.nodes - group.not_ready}/{group.nodes}"
            price = "" if group.price is None else f"{group.price:,.2f}"
            idle = "" if group.price is None else f"{group.idle:,.2f}"
            gpus, bar = Text(str(group.gpus)), _bar(group.bar, page.queues) if bars else Text()
            for each in group.devices:
                gpus.append(f"\n{each.allocatable} {each.resource.rpartition('/')[2]}")
                bar.append(f"\n{each.used} in use")
            table.add_row(nodes, group.instance_type, group.pool, gpus, bar, price, idle)

        return self._filled(table, page.groups, add)

    def _requested(self, rows: Sequence[RequestedRow]) -> Table:
        table = _table("Requested", "Type", "GPUs", "For", "State")

        def add(row: RequestedRow) -> None:
            state = ": ".join(part for part in (row.phase, row.message) if part)
            types = ", ".join(row.instance_types[:2])
            table.add_row(f"{row.kind} {row.name}", types, str(row.gpus), row.owner, state)

        return self._filled(table, rows, add)

    def _queues(self, rows: Sequence[QueueRow]) -> Table:
        table = _table("Queue", "Quota", "Fair share", "Allocated", "Pending")

        def add(row: QueueRow) -> None:
            quota = "unlimited" if row.quota is None else f"{row.quota:g}"
            pending = Text(f"{row.pending:g}", style="yellow" if row.pending else "")
            table.add_row("  " * row.depth + row.name, quota, f"{row.fair_share:g}", f"{row.allocated:g}", pending)

        return self._filled(table, rows, add)

    def _demands(self, snapshot: Snapshot) -> Table:
        table = _table("Demand", "Phase", "Pods", "New GPUs", "At least", "Why")

        def add(demand: GPUDemand) -> None:
            status = demand.status
            figures = (str(status.pod_count), str(status.gpus), str(status.least_gpus))
            table.add_row(demand.name, status.phase.value, *figures, "; ".join(status.reasons))

        return self._filled(table, sorted(snapshot.gpu_demands, key=lambda each: each.name), add)

    def _deltas(self, rows: Sequence[DeltaRow]) -> Table:
        table = _table("Delta", "What", "Why", "Seconds")

        def add(row: DeltaRow) -> None:
            shown, more = self._first(row.changes, CHANGES, row.more)
            for number, change in enumerate(shown):
                why = f"not done: {change.failure}" if change.failure else change.reason
                first = (row.time, f"{row.seconds:g}") if number == 0 else ("", "")
                table.add_row(first[0], f"{change.sign} {change.what}", why, first[1])
            for line in more:
                table.add_row("", line)

        return self._filled(table, rows, add, DELTAS)

    def _filled(self, table: Table, rows: Sequence[Row], add: Callable[[Row], None], most: int = ROWS) -> Table:
        shown, more = self._first(rows, most)
        for row in shown:
            add(row)
        for line in more:
            table.add_row(line)
        return table

    def _first(self, found: Sequence[Row], most: int, beyond: int = 0) -> tuple[Sequence[Row], list[str]]:
        """What is shown, and a line on the others, where there are any; `beyond` are not in `found`."""
        shown = found if self._whole else found[:most]
        left = len(found) - len(shown) + beyond
        return shown, [f"and {left} more"] if left else []


class _Groups:
    """The groups of nodes, with bars where the screen has room for them."""

    def __init__(self, screen: Screen, page: ClusterPage) -> None:
        self._screen, self._page = screen, page

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._screen.groups(self._page, bars=options.max_width >= WITH_BARS)


def _headline(snapshot: Snapshot, page: ClusterPage) -> Text:
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    unpriced = f"; {counted(page.unpriced, 'node')} without a price" if page.unpriced else ""
    cost = (
        ""
        if page.hourly is None
        else f"  {page.hourly:,.2f} an hour, {page.idle:,.2f} of it idle{unpriced}\n{page.basis}"
    )
    text = Text.assemble((f"Environment {snapshot.environment.name}", "bold"), f"  {now}")
    text.append(f"\n{counted(page.nodes, 'node')}, {counted(page.gpus, 'GPU')}, {page.used:g} in use{cost}")
    return text


def _legend(page: ClusterPage) -> Text:
    text = Text()
    for segment in page.bar:
        mark, style = _mark(segment, page.queues)
        label = segment.queue if segment.use is Use.QUEUE else segment.use.value.replace("-", " ")
        text.append(mark * 2, style).append(f" {label} {segment.milli / GPU_MILLI:g}   ")
    return text


def _workspaces(snapshot: Snapshot) -> Text:
    ready = sum(
        any(each.type == ConditionType.WORKLOAD_READY and each.status == "True" for each in workspace.status.conditions)
        for workspace in snapshot.workspaces
    )
    return Text(f"{counted(len(snapshot.workspaces), 'Workspace')}, {ready} with a ready workload", style="bold")


def _bar(segments: Iterable[Segment], queues: tuple[str, ...]) -> Text:
    """Each segment as long as its part, rounded so that the bar keeps its length."""
    segments = tuple(segments)
    total = sum(segment.milli for segment in segments) or 1
    text, done, drawn = Text(), 0, 0
    for segment in segments:
        done += segment.milli
        length = round(WIDTH * done / total) - drawn
        mark, style = _mark(segment, queues)
        text.append(mark * length, style)
        drawn += length
    return text


def _mark(segment: Segment, queues: tuple[str, ...]) -> tuple[str, str]:
    mark, style = _MARKS[segment.use]
    if segment.use is Use.QUEUE and segment.queue in queues:
        style = _COLOURS[queues.index(segment.queue) % len(_COLOURS)]
    return mark, style


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        # Names are folded where the screen is too narrow, so that no figure is cut.
        table.add_column(column, overflow="fold", no_wrap=column in ("", "Ready", "GPUs", "An hour", "Idle", "Delta"))
    return table
