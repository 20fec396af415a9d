"""`plimsoll destroy`: deletes the capacity, then the environment, then the foundation."""

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
"""Karpenter drains a node before it deletes its NodeClaim."""


@app.command()
def destroy(  # noqa: PLR0917 - options of a command, each given by name
    environment: EnvironmentName = None,
    project: Annotated[Path, typer.Option(help="folder with Pulumi.yaml")] = Path(),
    stack: Annotated[str | None, typer.Option(help="stack of the environment [the Environment's name]")] = None,
    foundation: Annotated[
        str | None, typer.Option(help="stack of the foundation [the environment's stack with the suffix -foundation]")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask for confirmation")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    backend: Backend = "",
    passphrase_file: PassphraseFile = None,
    provider: Provider = "plugin",
    work_folder: WorkFolder = None,
) -> None:
    """Delete the capacity, then the environment, then the foundation."""
    if not (project / "Pulumi.yaml").is_file():
        raise PlimsollError(
            f"{project / 'Pulumi.yaml'}: no such file", "set the folder of the Pulumi project with --project"
        )
    options = WriterOptions(
        environment, kubeconfig, context, backend, passphrase_file, provider, pre_started=0, work_folder=work_folder
    )
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with open_writer(options) as writer:
        name = writer.environment
        if not yes:
            typer.confirm(f"Destroy all GPU capacity, the environment {name!r} and its foundation?", abort=True)
        of_environment = stack or name
        writer.applier.start()
        with Progress(*columns, console=ERR) as progress:
            progress.add_task(f"deleting the capacity of {name}", total=None)
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
    """Returns when no capacity exists, no Workspace has our finalizer, and the Environment's status is updated."""
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        snapshot = writer.observer.snapshot()
        ownership = Ownership(snapshot)
        left = [f"NodeClaim {each.name}" for each in ownership.claims]
        left += [f"NodePool {each.name}" for each in ownership.pools]
        left += [f"{each.kind} {each.namespace}/{each.name}" for each in ownership.workloads]
        left += [str(key_of(each)) for each in request_objects(snapshot)]
        if not left:
            # The controller does not run, so the finalizers are removed here.
            now = datetime.now(UTC)
            finalized = [str(each.ref) for each in finalizing(snapshot, Plan(), (), now) if not each.wanted]
            writer.reporter.report(snapshot, Plan(verdicts=validate(snapshot)), now)
            writer.reporter.flush()
            if not finalized:
                return
            left = [f"the finalizer of Workspace {each}" for each in finalized]
        if time.monotonic() > deadline:
            raise PlimsollError(
                f"not deleted after {GONE_SECONDS:g} s: {shortlist(left)}",
                "run `kubectl describe` to see what blocks their deletion; then run `plimsoll destroy` again",
            )
        writer.observer.wait(0.1, 1.0, 1.0)


def _destroy_stack(project: Path, name: str) -> None:
    """Destroys and removes a stack of the project; a stack that does not exist is skipped."""
    try:
        stack = auto.select_stack(stack_name=name, work_dir=str(project))
    except auto.StackNotFoundError:
        return
    try:
        stack.destroy(remove=True, color="never")
    except auto.CommandError as error:
        lines = [line.strip() for line in str(error).splitlines() if "error" in line.lower()]
        raise PlimsollError(
            f"cannot destroy stack {name}: {' '.join(dict.fromkeys(lines))[:1000] or error}",
            "correct the cause; then run `plimsoll destroy` again",
        ) from None


def _refuse_leftovers(writer: Writer) -> None:
    """Refuses to go on while Workspaces exist that no stack declares: deleting the CRDs would delete them."""
    left = [str(workspace.ref) for workspace in writer.observer.snapshot().workspaces if not workspace.deleting]
    if left:
        raise PlimsollError(
            f"Workspaces exist that the environment's stack does not declare: {shortlist(left)}",
            "their capacity is deleted; delete them with kubectl, then run `plimsoll destroy` again",
        )
