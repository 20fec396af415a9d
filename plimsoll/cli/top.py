"""`plimsoll top`: nodes, queues, demand and what the controller does, live in the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.shared import OUT, Context, Files, Kubeconfig, Paths, named_files, print_tables, read_files, snapshots
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.model import Snapshot

app = typer.Typer(add_completion=False)


@app.command()
def top(
    ctx: typer.Context,
    paths: Paths = None,
    file: Files = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="print the current state and exit")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show nodes, queues, demand and the last deltas, live until Ctrl+C; nothing is applied."""
    from rich.live import Live

    from plimsoll.cli.tables.top import Screen

    files = named_files(ctx, paths, file)
    log_to_stderr()
    printed = once or bool(files) or not OUT.is_terminal
    screen = Screen(whole=printed)
    with _snapshots(files, kubeconfig, context) as states:
        first = screen.shown(next(states))
        if printed:
            print_tables(first)
            return
        with Live(first, console=OUT, screen=True, auto_refresh=False) as live:
            for snapshot in states:
                live.update(screen.shown(snapshot), refresh=True)


@contextmanager
def _snapshots(files: list[str], kubeconfig: Path | None, context: str | None) -> "Iterator[Iterator[Snapshot]]":
    """The current Snapshot, then one for each change; of files only one."""
    if files:
        yield iter([read_files(files)])
        return
    from plimsoll.observe.cluster import open_observer

    with open_observer(kubeconfig, context) as (_, observer):
        yield snapshots(observer)
