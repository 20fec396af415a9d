"""`plimsoll destroy`: capacity first, then the environment, then the foundation, and nothing is left."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import pulumi.automation as auto
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from plimsoll.cli.shared import (
    ERR,
    OUT,
    Backend,
    Context,
    EnvironmentName,
    Kubeconfig,
    PassphraseFile,
    Provider,
    WorkFolder,
)
from plimsoll.cli.writing import Writer, WriterOptions, open_writer
from plimsoll.errors import PlimsollError
from plimsoll.model import Plan
from plimsoll.plan import validate
from plimsoll.plan.owned import Ownership, key_of, request_objects
from plimsoll.report import finalizing
from plimsoll.text import shortlist

app = typer.Typer(add_completion=False)

GONE_SECONDS = 900.0
"""Karpenter drains a node before its NodeClaim goes."""


@app.command()
def destroy(  # noqa: PLR0917 - options of a command, each given by name
    environment: EnvironmentName = None,
    project: Annotated[Path, typer.Option(help="folder of Pulumi.yaml")] = Path(),
    stack: Annotated[str | None, typer.Option(help="stack of the environment; else its name")] = None,
    foundation: Annotated[
        str | None, typer.Option(help="stack of the foundation; else that of the environment and -foundation")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    backend: Backend = "",
    passphrase_file: PassphraseFile = None,
    provider: Provider = "plugin",
    work_folder: WorkFolder = None,
) -> None:
    """Drain capacity, then environment, then foundation."""
    if not (project / "Pulumi.yaml").is_file():
        raise PlimsollError(f"{project / 'Pulumi.yaml'}: no such file", "name the project's folder with --project")
    options = WriterOptions(
        environment, kubeconfig, context, backend, passphrase_file, provider, armed=0, work_folder=work_folder
    )
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with open_writer(options) as writer:
        name = writer.environment
        if not yes:
            typer.confirm(f"Destroy all GPU capacity, the environment {name!r} and its foundation?", abort=True)
        of_environment = stack or name
        writer.applier.start()
        with Progress(*columns, console=ERR) as progress:
            progress.add_task(f"draining the capacity of {name}", total=None)
            writer.applier.drain()
            _await_no_capacity(writer)
            progress.add_task(f"destroying the stack {of_environment}", total=None)
            _destroy_stack(project, of_environment)
        _refuse_leftovers(writer)
    of_foundation = foundation or f"{of_environment}-foundation"
    with Progress(*columns, console=ERR) as progress:
        progress.add_task(f"destroying the stack {of_foundation}", total=None)
        _destroy_stack(project, of_foundation)
    OUT.print(f"destroyed: the capacity of {name}, then {of_environment}, then {of_foundation}")


def _await_no_capacity(writer: Writer) -> None:
    """Returns when the cluster holds no object of ours, no Workspace waits for one, and the Environment's status
    says so.
    """
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        snapshot = writer.observer.snapshot()
        ownership = Ownership(snapshot)
        left = [f"NodeClaim {each.name}" for each in ownership.claims]
        left += [f"NodePool {each.name}" for each in ownership.pools]
        left += [f"{each.kind} {each.namespace}/{each.name}" for each in ownership.workloads]
        left += [str(key_of(each)) for each in request_objects(snapshot)]
        if not left:
            # Nobody else would take the finalizers off, once the loop has ended.
            now = datetime.now(UTC)
            held = [str(each.ref) for each in finalizing(snapshot, Plan(), (), now) if not each.wanted]
            writer.reporter.report(snapshot, Plan(verdicts=validate(snapshot)), now)
            writer.reporter.flush()
            if not held:
                return
            left = [f"the finalizer of Workspace {each}" for each in held]
        if time.monotonic() > deadline:
            raise PlimsollError(
                f"still there after {GONE_SECONDS:g} s: {shortlist(left)}",
                "see what holds them with `kubectl describe`; then run `plimsoll destroy` again",
            )
        writer.observer.wait(0.1, 1.0, 1.0)


def _destroy_stack(project: Path, name: str) -> None:
    """Destroys and removes a stack of the project; one that does not exist is done already."""
    try:
        stack = auto.select_stack(stack_name=name, work_dir=str(project))
    except auto.StackNotFoundError:
        return
    try:
        stack.destroy(remove=True, color="never")
    except auto.CommandError as error:
        lines = [line.strip() for line in str(error).splitlines() if "error" in line.lower()]
        raise PlimsollError(
            f"stack {name} is not destroyed: {' '.join(dict.fromkeys(lines))[:1000] or error}",
            "mend what it names; then run `plimsoll destroy` again",
        ) from None


def _refuse_leftovers(writer: Writer) -> None:
    """Workspaces that no stack declared would go with the foundation's CRDs."""
    left = [str(workspace.ref) for workspace in writer.observer.snapshot().workspaces if not workspace.deleting]
    if left:
        raise PlimsollError(
            f"Workspaces that the environment's stack did not declare are left: {shortlist(left)}",
            "their capacity is drained; delete them with kubectl, then run `plimsoll destroy` again",
        )
