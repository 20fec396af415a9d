"""What the terminal shows while something takes long."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from plimsoll.sandbox.installing import Installation
from plimsoll.sandbox.sandbox import Event

_REDRAW_SECONDS = 0.2


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
def making_nodes(console: Console, total: int) -> Iterator[Callable[[int, int], None]]:
    """Two bars: nodes made, nodes Ready."""
    columns = (TextColumn("{task.description:8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        made, ready = progress.add_task("made", total=total), progress.add_task("Ready", total=total)

        def on_progress(created: int, are_ready: int) -> None:
            progress.update(made, completed=created)
            progress.update(ready, completed=are_ready)

        yield on_progress


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
