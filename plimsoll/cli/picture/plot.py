"""GPUs as bars on the terminal."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from plimsoll.cli.picture.bars import GpuBar, NodeBars, Part, Segment, gpu_rows, summary
from plimsoll.cli.shared import OUT, print_table
from plimsoll.packing import GPU_MILLI
from plimsoll.text import counted

_WIDTH: Final = 16
"""Characters of one whole GPU."""
_SHOWN: Final = 40
"""Rows on a screen; the file has all."""
_STYLES: Final = {Part.USED: ("grey50", "grey35"), Part.PLANNED: ("green", "green3")}
"""Two alternating colours for adjacent segments."""


def print_picture(nodes: Sequence[NodeBars]) -> None:
    """One row for GPUs that look the same."""
    rows = gpu_rows(nodes)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("GPUS", justify="right", no_wrap=True)
    table.add_column("OF", overflow="fold")
    # If every GPU is new, there is no state before.
    before = any(not row.new for row in rows)
    for column in ("BEFORE", "AFTER") if before else ("AFTER",):
        table.add_column(column, no_wrap=True, min_width=_WIDTH)
    table.add_column("ADDED", overflow="fold")
    for row in rows[:_SHOWN]:
        drawings = [drawn(row.bar.after)]
        if before:
            drawings.insert(0, Text("") if row.new else drawn(row.bar.before))
        table.add_row(f"{row.gpus}", Text(row.where, style="green" if row.new else ""), *drawings, _figures(row.bar))
    print_table(table)
    if len(rows) > _SHOWN:
        rest = sum(row.gpus for row in rows[_SHOWN:])
        OUT.print(f"and {len(rows) - _SHOWN} more rows with {counted(rest, 'GPU')}: --plot-to draws all of them")
    OUT.print(Text(summary(nodes)))


def drawn(segments: Sequence[Segment]) -> Text:
    """A bar as wide as a whole GPU."""
    text = Text()
    done, filled = 0.0, 0
    for number, segment in enumerate(segments):
        done += float(segment.milli)
        end = min(_WIDTH, max(filled + 1, round(done * _WIDTH / GPU_MILLI)))
        text.append("█" * (end - filled), style=_STYLES[segment.what][number % 2])
        filled = end
    text.append("░" * (_WIDTH - filled), style="grey30")
    return text


def _figures(bar: GpuBar) -> str:
    """The fractions of the new segments."""
    added = [segment.milli for segment in bar.after if segment.what is Part.PLANNED]
    return " + ".join(f"{float(milli) / GPU_MILLI:.3g}" for milli in added)
