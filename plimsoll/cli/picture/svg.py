"""GPUs as bars in an SVG image, and in a page around it."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from plimsoll.cli.picture.bars import GpuRow, NodeBars, Part, Segment, gpu_rows, summary
from plimsoll.packing import GPU_MILLI
from plimsoll.text import counted

_NAME: Final = 300
"""Pixels for the names of nodes."""
_LETTERS: Final = 44
"""Characters that fit there."""
_COUNT: Final = 80
_BAR: Final = 280
"""Pixels of one whole GPU."""
_GAP: Final = 20
_ROW: Final = 22
_THICK: Final = 17
_TOP: Final = 88
_LABELLED: Final = 26
"""Minimum pixels of a segment that shows its fraction."""
_COLOURS: Final = {Part.USED: ("#8a8f98", "#9da2aa"), Part.PLANNED: ("#1f7a54", "#2f9e6e")}
"""Two alternating colours for adjacent segments."""
_LEGEND: Final = (("#8a8f98", "in use"), ("#1f7a54", "shares of pending pods"), ("#eef0f2", "free"))


def as_svg(nodes: Sequence[NodeBars]) -> str:
    """One row for GPUs that look the same: their number, their nodes, the bar before, the bar after.

    A segment shows its fraction, and its pods as a tooltip.
    """
    rows = gpu_rows(nodes)
    # If every GPU is new, there is no state before.
    columns = ["before", "after"] if any(not row.new for row in rows) else ["after"]
    left = {column: _NAME + _COUNT + _GAP + number * (_BAR + _GAP) for number, column in enumerate(columns)}
    width, height = left["after"] + _BAR + _GAP, _TOP + len(rows) * _ROW + _GAP
    parts = [
        f'<text x="{_GAP}" y="26" font-size="15" font-weight="bold">{escape(summary(nodes))}</text>',
        *_legend(),
        f'<text x="{_NAME + _COUNT}" y="{_TOP - 8}" text-anchor="end" font-weight="bold">GPUs</text>',
        *(f'<text x="{x}" y="{_TOP - 8}" font-weight="bold">{column}</text>' for column, x in left.items()),
    ]
    for number, row in enumerate(rows):
        parts += _row(row, left, _TOP + number * _ROW)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#24292f">'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def as_html(nodes: Sequence[NodeBars]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>GPUs before and after</title></head>\n'
        f'<body style="margin: 24px">\n{as_svg(nodes)}</body></html>\n'
    )


def _legend() -> Iterator[str]:
    x = _GAP
    for colour, said in _LEGEND:
        yield f'<rect x="{x}" y="40" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="50">{said}</text>'
        x += 40 + 7 * len(said)


def _row(row: GpuRow, left: dict[str, int], top: int) -> Iterator[str]:
    base = top + 13
    name = row.where if len(row.where) <= _LETTERS else f"{row.where[: _LETTERS - 1]}…"
    of = f"{counted(len(row.nodes), 'node')}: {', '.join(row.nodes)}" if not row.new else row.where
    yield f'<text x="{_GAP}" y="{base}">{escape(name)}<title>{escape(of)}</title></text>'
    yield f'<text x="{_NAME + _COUNT}" y="{base}" text-anchor="end">{row.gpus}</text>'
    if not row.new:
        titles = (f"{each.label}: {float(each.milli) / GPU_MILLI:.3g}" for each in row.bar.before)
        yield from _bar(left["before"], top, row.bar.before, titles)
    titles = (row.title(number) for number in range(len(row.bar.after)))
    yield from _bar(left["after"], top, row.bar.after, titles)


def _bar(x: int, y: int, segments: Iterable[Segment], titles: Iterable[str]) -> Iterator[str]:
    yield f'<rect x="{x}" y="{y}" width="{_BAR}" height="{_THICK}" fill="#eef0f2"/>'
    done = 0.0
    for number, (segment, title) in enumerate(zip(segments, titles, strict=True)):
        start, done = done, min(float(GPU_MILLI), done + float(segment.milli))
        left, width = x + start * _BAR / GPU_MILLI, (done - start) * _BAR / GPU_MILLI
        drawn = max(0.0, width - 1)
        yield (
            f'<rect x="{left:.1f}" y="{y}" width="{drawn:.1f}" height="{_THICK}" '
            f'fill="{_COLOURS[segment.what][number % 2]}"><title>{escape(title)}</title></rect>'
        )
        if drawn >= _LABELLED:
            figure = f"{float(segment.milli) / GPU_MILLI:.3g}"
            yield (
                f'<text x="{left + drawn / 2:.1f}" y="{y + 13}" text-anchor="middle" font-size="11" fill="#ffffff" '
                f'pointer-events="none">{figure}</text>'
            )
