"""What new manifests mean, as a table and as Markdown."""

from collections.abc import Iterator
from typing import Final

from rich import box
from rich.table import Column, Table
from rich.text import Text

from plimsoll.cli.shared import OUT, print_table, print_warnings
from plimsoll.explaining import Difference

MARKER: Final = "<!-- plimsoll diff -->"


def _rows(found: Difference) -> Iterator[tuple[str, str, str, str]]:
    old, new = found.before, found.after
    currency = f" {found.basis.currency}" if found.basis.currency else ""
    yield "nodes with GPUs", str(old.nodes), str(new.nodes), f"{new.nodes - old.nodes:+d}"
    yield "GPUs", str(old.gpus), str(new.gpus), f"{new.gpus - old.gpus:+d}"
    if old.whole_gpus or new.whole_gpus:
        change = f"{new.whole_gpus - old.whole_gpus:+d}"
        yield "whole GPUs of pods", str(old.whole_gpus), str(new.whole_gpus), change
    change = f"{new.hourly - old.hourly:+,.2f}"
    yield f"cost an hour{currency}", f"{old.hourly:,.2f}", f"{new.hourly:,.2f}", change
    if old.unpriced or new.unpriced:
        yield "nodes without a price", str(old.unpriced), str(new.unpriced), f"{new.unpriced - old.unpriced:+d}"
    yield "without capacity", str(old.waiting), str(new.waiting), f"{new.waiting - old.waiting:+d}"
    for queue in sorted({*old.over_quota, *new.over_quota}):
        before, after = old.over_quota.get(queue, 0.0), new.over_quota.get(queue, 0.0)
        yield f"queue {queue}: GPUs over quota", f"{before:g}", f"{after:g}", f"{after - before:+g}"


def as_markdown(found: Difference, warnings: list[str]) -> str:
    """For a comment on a pull request. The first line is not shown: by it, CI finds its comment, to update it."""
    lines = [MARKER, "", "| GPU capacity | before | after | change |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {before} | {after} | {change} |" for name, before, after, change in _rows(found)]
    new = [why for why in found.after.reasons if why not in found.before.reasons]
    lines += ["", *(f"- {_escaped(why)}" for why in (*new, *(f"warning: {each}" for each in warnings)))]
    return "\n".join([*lines, "", f"{found.basis}.", ""])


def _escaped(text: str) -> str:
    """Text of others, such as names, is no markup."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>|#@" else each for each in " ".join(text.split()))


def print_difference(found: Difference, warnings: list[str]) -> None:
    right = [Column(name, justify="right") for name in ("BEFORE", "AFTER", "CHANGE")]
    table = Table("GPU CAPACITY", *right, box=box.SIMPLE_HEAD)
    for row in _rows(found):
        table.add_row(*map(Text, row))
    print_table(table)
    for why in found.after.reasons:
        OUT.print(Text.assemble(("  ! " if why not in found.before.reasons else "    ", "red"), why), soft_wrap=True)
    print_warnings(warnings)
    OUT.print(Text(str(found.basis), style="dim"), soft_wrap=True)
