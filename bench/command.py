"""Runs a benchmark as a command."""

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NoReturn

import typer
from rich.table import Table

from plimsoll.cli.shared import FAILED, print_error, write_types_plainly
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr


def grid(figures: Mapping[str, object]) -> Table:
    """One figure a row."""
    table = Table.grid(padding=(0, 2))
    for name, value in figures.items():
        table.add_row(name, str(value))
    return table


def app_of(measure: Callable[..., None]) -> typer.Typer:
    """The function as a command. The log is on standard error. A PlimsollError is printed, and the exit code is then
    1."""

    @wraps(measure)
    def run(*args: Any, **kwargs: Any) -> None:
        log_to_stderr()
        try:
            measure(*args, **kwargs)
        except PlimsollError as error:
            print_error(error)
            raise typer.Exit(FAILED) from None

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(run)
    return app


def run_benchmark(measure: Callable[..., None]) -> NoReturn:
    """Runs it as a program, with help as that of `plimsoll`, and exits."""
    command = typer.main.get_command(app_of(measure))
    write_types_plainly(command)
    sys.exit(command())
