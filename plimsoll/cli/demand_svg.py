"""GPUs as bars in an SVG image, and in a page around it."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from plimsoll.model.share import WHOLE_MILLI
from plimsoll.plan.gpu_picture import NodeBars, Part, Segment, summary
from plimsoll.plan.shortlist import counted

_NAME: Final = 380
"""Pixels for the names of nodes."""
_BAR: Final = 320
"""Pixels of one whole GPU."""
_GAP: Final = 24
_ROW: Final = 18
_COLOURS: Final = {Part.USED: ("#8a8f98", "#a6abb3"), Part.PLANNED: ("#2f9e6e", "#3b82c4")}
"""Of neighbours in turn."""


def as_svg(nodes: Sequence[NodeBars]) -> str:
    """One row a GPU: the node's name, the bar before, the bar after. Text on a part says what it is."""
    rows: list[str] = []
    top = 2 * _ROW
    for node in nodes:
        for number, bar in enumerate(node.bars):
            name = f"{node.name}  GPU {number}" if number == 0 else f"GPU {number}"
            rows.append(f'<text x="{_NAME - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>')
            if not node.new:
                rows += _bar(_NAME, top, bar.before)
            rows += _bar(_NAME + _BAR + _GAP, top, bar.after)
            top += _ROW
        top += 6
    width, height = _NAME + 2 * _BAR + 2 * _GAP, top + _ROW
    heads = ((_NAME, "before"), (_NAME + _BAR + _GAP, "after"))
    titles = "".join(f'<text x="{x}" y="{_ROW}" font-weight="bold">{title}</text>' for x, title in heads)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{titles}{"".join(rows)}</svg>\n'
    )


def as_html(nodes: Sequence[NodeBars]) -> str:
    total = summary(nodes)
    said = (
        f"{counted(total['gpusBefore'], 'GPU')} in use before, {total['gpusAfter']} after; "
        f"{counted(total['newNodes'], 'new node')} with {counted(total['newGpus'], 'GPU')}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>GPUs before and after</title></head>\n'
        '<body style="font-family: sans-serif; margin: 24px"><h1>GPUs before and after</h1>\n'
        f"<p>{escape(said)}. Grey: in use; green and blue: shares of pods that wait.</p>\n"
        f"{as_svg(nodes)}</body></html>\n"
    )


def _bar(x: int, y: int, segments: Iterable[Segment]) -> Iterable[str]:
    yield f'<rect x="{x}" y="{y}" width="{_BAR}" height="{_ROW - 4}" fill="#eef0f2"/>'
    done = 0
    for number, segment in enumerate(segments):
        start, done = done, min(WHOLE_MILLI, done + segment.milli)
        left, width = start * _BAR / WHOLE_MILLI, (done - start) * _BAR / WHOLE_MILLI
        title = f"{segment.label}: {segment.milli / WHOLE_MILLI:g}"
        yield (
            f'<rect x="{x + left:.1f}" y="{y}" width="{max(0.0, width - 0.8):.1f}" height="{_ROW - 4}" '
            f'fill="{_COLOURS[segment.what][number % 2]}"><title>{escape(title)}</title></rect>'
        )
