"""GPUs as bars on the terminal."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from plimsoll.cli.output import OUT
from plimsoll.model.share import WHOLE_MILLI
from plimsoll.plan.gpu_picture import GpuBar, NodeBars, Part, Segment, summary
from plimsoll.plan.shortlist import counted

_WIDTH: Final = 16
"""Characters of one whole GPU."""
_SHOWN: Final = 40
"""Nodes that a screen takes; the file holds all."""
_STYLES: Final = {Part.USED: ("grey50", "grey35"), Part.PLANNED: ("green", "cyan")}
"""Of neighbours in turn."""


def print_picture(nodes: Sequence[NodeBars]) -> None:
    table = Table("NODE", "GPU", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].overflow = "fold"
    for column in ("BEFORE", "AFTER"):
        table.add_column(column, no_wrap=True, min_width=_WIDTH)
    table.add_column("ADDED")
    for node in nodes[:_SHOWN]:
        for number, bar in enumerate(node.bars):
            first = number == 0
            name = Text(node.name if first else "", style="green" if node.new else "")
            before = Text("") if node.new else drawn(bar.before)
            table.add_row(name, f"{number}", before, drawn(bar.after), _figures(bar))
    OUT.print(table)
    if len(nodes) > _SHOWN:
        OUT.print(f"and {len(nodes) - _SHOWN} more nodes: --plot-to draws all of them")
    total = summary(nodes)
    OUT.print(
        Text(
            f"{counted(total['gpusBefore'], 'GPU')} in use before, {total['gpusAfter']} after; "
            f"{counted(total['newNodes'], 'new node')} with {counted(total['newGpus'], 'GPU')}"
        )
    )


def drawn(segments: Sequence[Segment]) -> Text:
    """A bar as wide as a whole GPU."""
    text = Text()
    done, filled = 0, 0
    for number, segment in enumerate(segments):
        done += segment.milli
        end = min(_WIDTH, max(filled + 1, round(done * _WIDTH / WHOLE_MILLI)))
        text.append("█" * (end - filled), style=_STYLES[segment.what][number % 2])
        filled = end
    text.append("░" * (_WIDTH - filled), style="grey30")
    return text


def _figures(bar: GpuBar) -> str:
    """Parts of what is new, for people."""
    added = [segment.milli for segment in bar.after if segment.what is Part.PLANNED]
    return " + ".join(f"{milli / WHOLE_MILLI:g}" for milli in sorted(added, reverse=True))
