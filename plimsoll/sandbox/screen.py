"""What the terminal shows while something takes long."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from plimsoll.sandbox.installing import Installation
from plimsoll.sandbox.sandbox import Event

_REDRAW_SECONDS = 0.2
_QUIET_SECONDS = 2.0
"""Nothing is shown of what takes less."""
_LINE_SECONDS = 10.0


def build(installation: Installation, console: Console) -> None:
    """Runs the installation with a bar per part and an estimate of what is left."""
    parts = ", ".join(p.part.name for p in installation.progress)
    console.print(
        f"Building {parts}: about {_minutes(installation.estimate_seconds())} once, "
        f"{installation.at_once} at a time. An interrupted build goes on when you run this again."
    )
    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}"),
    )
    done = threading.Event()
    with Progress(*columns, console=console) as progress:
        total = progress.add_task("all", total=sum(p.part.build_seconds for p in installation.progress), step="")
        rows = {
            p.part.name: progress.add_task(p.part.name, total=1.0, start=False, step="") for p in installation.progress
        }

        def draw() -> None:
            for one in installation.progress:
                if one.started is not None:
                    progress.start_task(rows[one.part.name])
                progress.update(rows[one.part.name], completed=one.share, step=one.step)
            progress.update(
                total,
                completed=sum(p.part.build_seconds * p.share for p in installation.progress),
                step=f"about {_minutes(installation.estimate_seconds())} left",
            )

        def redraw() -> None:
            while not done.wait(_REDRAW_SECONDS):
                draw()

        drawer = threading.Thread(target=redraw, daemon=True)
        drawer.start()
        try:
            installation.run()
        finally:
            done.set()
            drawer.join()
            draw()


@contextmanager
def starting(console: Console, name: str) -> Iterator[Callable[[Event], None]]:
    """A line per process of a sandbox that starts, with the seconds each took."""
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
    """What is yielded takes how many nodes are made and how many are Ready.

    From the third second on, a terminal shows two bars, and anything else gets a line every ten seconds. `clock`
    returns seconds.
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
            console.print(f"{are_made} of {total} nodes made, {are_ready} Ready", highlight=False, soft_wrap=True)
            due = clock() + _LINE_SECONDS

    with ExitStack() as shown:
        yield on_progress


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
