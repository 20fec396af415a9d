"""`python -m demo`: builds the parts it needs, starts two sandboxes, runs the main job and destroys it all again.

While parts build it explains two commands that need none. What the first half needs is built first.
"""

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo import byo, introduction, provisioned
from demo.stage import PROJECT, Stage
from plimsoll.cli.shared import print_error
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import Sandbox, showing_build, showing_startup, try_start
from plimsoll.sandbox.parts import Installation, find_programs, missing_programs, part_names

CONSOLE = Console()

Step = tuple[str, Callable[[Stage], str]]


BROUGHT: tuple[Step, ...] = (
    ("a policy refuses a wrong program", byo.check_policy),
    ("add existing nodes", byo.add_nodes),
    ("pulumi up: foundation, environment", byo.declare_environment),
    ("plimsoll run --once: verdicts", byo.settle),
    ("the workload on its nodes", byo.show_workload),
    ("change a node label, and change it back", byo.relabel),
    ("plimsoll status, plimsoll plan", byo.show_status),
)
PROVISIONED: tuple[Step, ...] = (
    ("pulumi up: foundation, environment", provisioned.declare_environment),
    ("plimsoll run --once: NodeClaims, nodes, workload", provisioned.settle),
    ("replicas from 3 to 1", provisioned.scale_down),
    ("pulumi destroy of the foundation is refused", provisioned.refuse_destroy),
    ("plimsoll destroy", provisioned.destroy),
)


def main() -> int:
    """Exit code 0 when every step ended as it should, 1 otherwise; nothing is left running either way."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows: list[tuple[str, str, float]] = []
    try:
        CONSOLE.print(introduction.WHAT, highlight=False)
        with _install() as installation, tempfile.TemporaryDirectory(prefix="plimsoll-demo-") as folder:
            with showing_build(installation, CONSOLE):
                if installation.left():
                    introduction.show(CONSOLE)
                else:
                    CONSOLE.print(introduction.WITHOUT_CLUSTER, highlight=False)
                installation.wait(_parts(karpenter=False))
            _run_stage("sandbox", BROUGHT, Path(folder), rows)
            with showing_build(installation, CONSOLE):
                installation.wait(_parts(karpenter=True))
            _run_stage("sandbox-nap", PROVISIONED, Path(folder), rows)
    except PlimsollError as error:
        if rows:
            _summary(rows)
        print_error(error)
        CONSOLE.print("Nothing is left running. `make demo` runs all steps again, and builds only missing components.")
        return 1
    except KeyboardInterrupt:
        CONSOLE.print("Interrupted. Nothing is left running; the next `make demo` continues the build.")
        return 130
    _summary(rows)
    return 0


def _parts(*, karpenter: bool) -> list[str]:
    """Names of the parts that a sandbox of the demo runs: no replica spans nodes."""
    return part_names(karpenter=karpenter, lws=False)


def _install() -> Installation:
    with _busy("look for the parts of the sandboxes"):
        # A part of both halves stands once, where the first needs it.
        wanted = dict.fromkeys([*_parts(karpenter=False), *_parts(karpenter=True)])
        missing = missing_programs(find_programs(wanted))
        if missing:
            try_start()
        return Installation(missing)


def _run_stage(name: str, steps: tuple[Step, ...], folder: Path, rows: list[tuple[str, str, float]]) -> None:
    karpenter = steps is PROVISIONED
    title = "auto-provisioned nodes" if karpenter else "existing nodes (BYO)"
    CONSOLE.rule(f"[bold]{title}")
    sandbox = Sandbox.named(f"demo-{name}")
    with _timed("start the sandbox", rows) as say:
        sandbox.down()
        with showing_startup(CONSOLE, sandbox.name) as on_event:
            sandbox.up(karpenter=karpenter, lws=False, stop_with_caller=True, on_event=on_event)
        say("etcd, kube-apiserver, controller-manager, scheduler, kwok" + (", Karpenter" if karpenter else ""))
    try:
        stage = replace(Stage.on(sandbox, folder / name), log=PROJECT / ".plimsoll" / f"demo-{name}.log")
        stage.log.parent.mkdir(exist_ok=True)
        stage.log.write_text("")
        for step, act in steps:
            with _timed(step, rows) as say:
                say(act(stage))
    finally:
        with _busy("stop the sandbox"):
            sandbox.down()


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """Shows that `what` is being done, and since when; where there is no screen, a line that it has begun."""
    if not CONSOLE.is_terminal:
        CONSOLE.print(f"{what} ...", markup=False, highlight=False)
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=CONSOLE, transient=True) as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def _timed(step: str, rows: list[tuple[str, str, float]]) -> Iterator[Callable[[str], None]]:
    started = time.monotonic()
    said: list[str] = []
    with _busy(step):
        yield said.append
    seconds = time.monotonic() - started
    text = "\n".join(said)
    rows.append((step, text, seconds))
    CONSOLE.print(f"[green]✓[/] {step} [dim]{seconds:.1f} s[/]")
    for line in text.splitlines():
        CONSOLE.print(f"  {line}", style="dim", markup=False, highlight=False)


def _summary(rows: list[tuple[str, str, float]]) -> None:
    table = Table(title="Plimsoll: the main use case on real components")
    table.add_column("step")
    table.add_column("result")
    table.add_column("seconds", justify="right")
    for step, text, seconds in rows:
        table.add_row(step, text.partition("\n")[0], f"{seconds:.1f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    sys.exit(main())
