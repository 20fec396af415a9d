"""Rows of a picture: GPUs that look alike before and after, as one bar with their number.

Three thousand shares on two thousand GPUs are some dozens of rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from plimsoll.cli.picture.bars import GpuBar, NodeBars, Part, Segment
from plimsoll.model.kai import WHOLE_MILLI
from plimsoll.text import shortlist

_NAMES = 2
"""Nodes that a row names."""


@dataclass(slots=True)
class GpuRow:
    """GPUs of one look. `bar` has the parts of one of them, the largest shares first."""

    bar: GpuBar
    new: bool
    shape: str
    """NodePool and instance type of new nodes; empty where the nodes are there."""
    gpus: int = 0
    nodes: dict[str, None] = field(default_factory=dict)
    """Names, in order."""
    held: list[dict[str, None]] = field(default_factory=list)
    """What the parts after are, of all GPUs of the row."""

    @property
    def where(self) -> str:
        return f"new {self.shape}" if self.new else shortlist(self.nodes, _NAMES)

    @property
    def order(self) -> tuple[int, str, bool, int]:
        """GPUs that take pods first, then new ones, then those that stay as they are; of each many before few."""
        section = 1 if self.new else 0 if self.bar.changed else 2
        return section, self.shape, not self.bar.after, -self.gpus

    def title(self, number: int) -> str:
        """Of a part after, for people: what it is, and how much of each GPU."""
        return f"{shortlist(self.held[number])}: {self.bar.after[number].milli / WHOLE_MILLI:g}"


def gpu_rows(nodes: Iterable[NodeBars]) -> tuple[GpuRow, ...]:
    """Rows of all GPUs; those in one row are all new or all there, and new ones of one shape."""
    rows: dict[object, GpuRow] = {}
    for node in nodes:
        for bar in node.bars:
            sorted_bar = GpuBar(bar.before, _largest_first(bar.after))
            look = (
                tuple(each.milli for each in bar.before),
                tuple((each.what, each.milli) for each in sorted_bar.after),
            )
            row = rows.setdefault(
                (node.shape, node.kind, look), GpuRow(sorted_bar, node.new, node.shape, held=[{} for _ in bar.after])
            )
            row.gpus += 1
            row.nodes[node.name] = None
            for names, segment in zip(row.held, sorted_bar.after, strict=True):
                names[segment.label] = None
    return tuple(sorted(rows.values(), key=lambda row: row.order))


def _largest_first(after: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """What is there stays where it is."""
    return tuple(sorted(after, key=lambda each: (each.what is Part.PLANNED, -each.milli * (each.what is Part.PLANNED))))
