"""Progress on the terminal during long operations."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from plimsoll.sandbox.parts import Installation
from plimsoll.sandbox.sandbox import Event

_REDRAW_SECONDS: Final = 0.2
_QUIET_SECONDS: Final = 2.0
"""Nothing is shown for operations that are shorter than this."""
_LINE_SECONDS: Final = 10.0


def show_build(installation: Installation, console: Console) -> None:
    """Runs the installation and shows its progress."""
    with installation, showing_build(installation, console):
        installation.wait()


@contextmanager
def showing_build(installation: Installation, console: Console) -> Iterator[None]:
    """Context manager: shows the progress of builds: bars below the output on a terminal, else lines.

    Shows nothing if there is nothing to build.
    """
    if not installation.left():
        yield
        return
    names = [p.part.name for p in installation.left()]
    console.print(
        f"Building {', '.join(names)}: about {_minutes(installation.estimate_seconds())} once, "
        f"{min(installation.at_once, len(names))} at a time. If you interrupt the build, the next run continues it."
    )
    with _bars(installation, console) if console.is_terminal else _lines(installation, console):
        yield


@contextmanager
def _bars(installation: Installation, console: Console) -> Iterator[None]:
    """A bar for each part, and one for all parts with an estimate of the remaining time."""
    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    shown = installation.left()
    with Progress(*columns, console=console) as progress:
        total = progress.add_task("all", total=sum(p.part.build_seconds for p in shown), step="")
        rows = [(one, progress.add_task(one.part.name, total=1.0, start=False, step="")) for one in shown]

        def draw() -> None:
            for one, row in rows:
                if one.started is not None:
                    progress.start_task(row)
                progress.update(row, completed=one.share, step=one.step)
            progress.update(
                total,
                completed=sum(p.part.build_seconds * p.share for p in shown),
                step=f"about {_minutes(installation.estimate_seconds())} left",
            )

        with _repeated(draw, _REDRAW_SECONDS):
            yield


@contextmanager
def _lines(installation: Installation, console: Console) -> Iterator[None]:
    """A line at intervals, for logs and pipes."""

    def print_line() -> None:
        running = [p for p in installation.left() if p.started is not None]
        total = sum(p.part.build_seconds for p in installation.progress)
        built = sum(p.part.build_seconds * p.share for p in installation.progress)
        steps = ", ".join(f"{p.part.name} ({p.step.partition(':')[0]})" for p in running)
        console.print(
            f"built {built / total:.0%}, about {_minutes(installation.estimate_seconds())} left: {steps or 'done'}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    with _repeated(print_line, _LINE_SECONDS):
        yield


@contextmanager
def _repeated(act: Callable[[], None], seconds: float) -> Iterator[None]:
    """Calls `act` at intervals during the block, and once after it."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(seconds):
            act()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        act()


@contextmanager
def showing_startup(console: Console, name: str) -> Iterator[Callable[[Event], None]]:
    """Context manager: a line for each process of a sandbox that starts, with the seconds it took."""
    columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"), TextColumn("{task.fields[took]}"))
    with Progress(*columns, console=console, transient=console.is_terminal) as progress:
        rows = {}
        began: dict[str, float] = {}
        whole = progress.add_task(f"sandbox {name}", total=1, took="")

        def on_event(event: Event) -> None:
            if event["event"] == "starting":
                began[event["name"]] = time.monotonic()
                rows[event["name"]] = progress.add_task(event["name"], total=1, took="")
            elif event["event"] == "ready":
                took = time.monotonic() - began[event["name"]]
                progress.update(rows[event["name"]], completed=1, took=f"{took:.1f} s")
            else:
                progress.update(whole, completed=1, took=f"{event['seconds']:.1f} s")

        yield on_event


@contextmanager
def making_nodes(
    console: Console, total: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int], None]]:
    """Context manager: a function to call with the number of created and of Ready nodes.

    From the third second on, a terminal shows two bars; otherwise a line is printed every ten seconds. `clock` returns
    seconds.
    """
    columns = (TextColumn("{task.description:8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=console, transient=True)
    made, ready = bars.add_task("made", total=total), bars.add_task("Ready", total=total)
    due = clock() + _QUIET_SECONDS

    def on_progress(are_made: int, are_ready: int) -> None:
        nonlocal due
        if console.is_terminal:
            bars.update(made, completed=are_made)
            bars.update(ready, completed=are_ready)
        if clock() < due:
            return
        if console.is_terminal:
            shown.enter_context(bars)
            due = math.inf
        else:
            console.print(f"{are_made} of {total} nodes created, {are_ready} Ready", highlight=False, soft_wrap=True)
            due = clock() + _LINE_SECONDS

    with ExitStack() as shown:
        yield on_progress


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
