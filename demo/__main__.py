"""`python -m demo`: installs the parts, starts two sandboxes, runs the main job and destroys it all again."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo import brought, provisioned
from demo.stage import PROJECT, Stage
from plimsoll.cli.shared import print_error
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import Sandbox
from plimsoll.stacks import make

CONSOLE = Console()

Step = tuple[str, Callable[[Stage], str]]


BROUGHT: tuple[Step, ...] = (
    ("a policy refuses a wrong program", brought.check_policy),
    ("bring nodes", brought.bring_nodes),
    ("pulumi up: foundation, environment", brought.declare_environment),
    ("plimsoll run --once: verdicts", brought.settle),
    ("the workload on its nodes", brought.show_workload),
    ("a node is relabelled, and back", brought.relabel),
    ("plimsoll status, plimsoll plan", brought.show_status),
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
    rows: list[tuple[str, str, float]] = []
    try:
        _install()
        with tempfile.TemporaryDirectory(prefix="plimsoll-demo-") as folder:
            _run_stage("sandbox", BROUGHT, Path(folder), rows)
            _run_stage("sandbox-nap", PROVISIONED, Path(folder), rows)
    except PlimsollError as error:
        _summary(rows)
        print_error(error)
        return 1
    except KeyboardInterrupt:
        CONSOLE.print("interrupted; the sandboxes are stopped")
        return 130
    _summary(rows)
    return 0


def _install() -> None:
    command = ["plimsoll", "sandbox", "install"]
    if subprocess.run(command, check=False).returncode != 0:
        raise PlimsollError("the real parts could not be installed", "see the message above")


def _run_stage(name: str, steps: tuple[Step, ...], folder: Path, rows: list[tuple[str, str, float]]) -> None:
    karpenter = steps is PROVISIONED
    title = "auto-provisioned nodes" if karpenter else "brought nodes"
    CONSOLE.rule(f"[bold]{title}")
    sandbox = Sandbox.named(f"demo-{name}")
    with _timed("start the sandbox", rows) as say:
        sandbox.down()
        sandbox.up(karpenter=karpenter)
        say("etcd, kube-apiserver, controller-manager, scheduler, kwok" + (", Karpenter" if karpenter else ""))
    try:
        stage = Stage(
            sandbox=sandbox.name,
            project=make(folder / name),
            environs={user: {**os.environ, **sandbox.environ(user)} for user in ("admin", "controller")},
            log=PROJECT / ".plimsoll" / f"demo-{name}.log",
        )
        stage.log.parent.mkdir(exist_ok=True)
        stage.log.write_text("")
        for step, act in steps:
            with _timed(step, rows) as say:
                say(act(stage))
    finally:
        sandbox.down()


@contextmanager
def _timed(step: str, rows: list[tuple[str, str, float]]) -> Iterator[Callable[[str], None]]:
    started = time.monotonic()
    said: list[str] = []
    with CONSOLE.status(f"{step} ..."):
        yield said.append
    seconds = time.monotonic() - started
    text = "\n".join(said)
    rows.append((step, text, seconds))
    CONSOLE.print(f"[green]✓[/] {step} [dim]{seconds:.1f} s[/]")
    for line in text.splitlines():
        CONSOLE.print(f"  {line}", style="dim", markup=False, highlight=False)


def _summary(rows: list[tuple[str, str, float]]) -> None:
    table = Table(title="Plimsoll: the main job on real parts")
    table.add_column("step")
    table.add_column("what came of it")
    table.add_column("seconds", justify="right")
    for step, text, seconds in rows:
        table.add_row(step, text.partition("\n")[0], f"{seconds:.1f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    sys.exit(main())
