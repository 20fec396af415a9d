"""Output of commands: text, one JSON document, errors without a traceback."""

import os
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any, Final

import orjson
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from plimsoll.errors import PlimsollError

_CONTROLS: Final = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - {ord("\n")})
"""To be left out, as rich does with some of them."""


class _Console(Console):
    """Prints texts that others wrote, such as the notes of Events, as they are: what stands for an emoji or a style,
    such as `:key:` and `[/b]`, is text, and characters that would control the terminal are left out."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, markup=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=segment.text.translate(_CONTROLS))


OUT: Final[Console] = _Console()
ERR: Final[Console] = _Console(stderr=True)

_NARROWEST: Final = 80
"""Columns of a table in a terminal."""
_WIDEST: Final = 10_000
"""Columns of a table elsewhere, which no table needs."""

SETTLED: Final = 0
FAILED: Final = 1
REFUSED: Final = 2
INTERRUPTED: Final = 130


class Format(StrEnum):
    TEXT = "text"
    WIDE = "wide"
    """Text with more columns, where the command has them."""
    JSON = "json"
    YAML = "yaml"

    @property
    def document(self) -> bool:
        """Whether the output is one document for programs."""
        return self in (Format.JSON, Format.YAML)


Output = Annotated[Format, typer.Option("--output", "-o", help="output format")]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.flush()


def print_document(value: Any, output: Format) -> None:
    """The same document as JSON or YAML."""
    if output is Format.YAML:
        from plimsoll.yaml_text import write_yaml

        sys.stdout.write(write_yaml(orjson.loads(orjson.dumps(value)), allow_unicode=True))
        sys.stdout.flush()
    else:
        print_json(value)


def print_table(table: Table, *, highlight: bool = True) -> None:
    """Words that are longer than their column are folded, not cut; as wide as `print_tables`."""
    for column in table.columns:
        if column.overflow == "ellipsis" and not column.no_wrap:
            column.overflow = "fold"
    print_tables(table, highlight=highlight)


def print_tables(tables: RenderableType, *, highlight: bool = True) -> None:
    """In the width of the terminal, but in 80 columns at least: narrower columns would lose what they hold. In a file
    or a pipe nothing is folded, for `grep`."""
    limited = OUT.is_terminal or "COLUMNS" in os.environ
    width = max(OUT.width, _NARROWEST) if limited else _WIDEST
    _Console(width=width).print(tables, highlight=highlight)


def print_warnings(warnings: Iterable[str]) -> None:
    """One line each, on standard output, as parts of a result."""
    for warning in warnings:
        OUT.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)


def print_error(error: PlimsollError) -> None:
    """Prints the message and the hint to standard error."""
    ERR.print("error:", style="bold red", end=" ")
    ERR.print(error.message, highlight=False, soft_wrap=True)
    if error.hint:
        ERR.print(f"  {error.hint}", style="yellow", highlight=False, soft_wrap=True)
