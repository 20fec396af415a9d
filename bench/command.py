"""Runs a benchmark as a command."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec

import typer
from rich.table import Table

from plimsoll.cli.shared import FAILED, print_error
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr

P = ParamSpec("P")


def grid(figures: Mapping[str, object]) -> Table:
    """One figure a row."""
    table = Table.grid(padding=(0, 2))
    for name, value in figures.items():
        table.add_row(name, str(value))
    return table


def command(measure: Callable[P, None]) -> Callable[P, None]:
    """The function as a typer command. The log is on standard error. A PlimsollError is printed, and the exit code
    is then 1."""

    @wraps(measure)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        log_to_stderr()
        try:
            measure(*args, **kwargs)
        except PlimsollError as error:
            print_error(error)
            raise typer.Exit(FAILED) from None

    return run
