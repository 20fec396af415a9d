"""`plimsoll destroy`: deletes the capacity, then the environment, then the foundation."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from plimsoll.apply import ProjectStack, project_environment
from plimsoll.cli.shared import (
    ERR,
    OUT,
    Backend,
    Context,
    EnvironmentName,
    Kubeconfig,
    PassphraseFile,
    SecretsProvider,
    WorkFolder,
)
from plimsoll.cli.writing import Writer, WriterOptions, apply_settings, check_project, refuse_leftovers, writer_of
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, Objects
from plimsoll.logs import log_to_stderr
from plimsoll.model import Plan
from plimsoll.model.api import Environment
from plimsoll.observe.cluster import Observer, open_observer
from plimsoll.plan import validate
from plimsoll.plan.owned import Ownership, key_of, request_objects
from plimsoll.report import finalizing
from plimsoll.text import counted, shortlist

app = typer.Typer(add_completion=False)

GONE_SECONDS = 900.0
"""Karpenter drains a node before it deletes its NodeClaim."""
LEFT_SECONDS = 60.0
"""A namespace takes a while to go."""


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
    secrets_provider: SecretsProvider = "passphrase",
    work_folder: WorkFolder = None,
) -> None:
    """Delete the capacity, then the environment, then the foundation, and verify that they are gone.

    The options name the cluster and the backend. If a stack is not found but its objects are in the cluster, nothing is
    deleted.
    """
    log_to_stderr()
    check_project(project)
    options = WriterOptions(
        environment=environment,
        kubeconfig=kubeconfig,
        context=context,
        backend=backend,
        passphrase_file=passphrase_file,
        secrets_provider=secrets_provider,
        pre_started=0,
        work_folder=work_folder,
    )
    with open_observer(kubeconfig, context) as (connection, observer):
        found = observer.snapshot().environment
        name = _name_of(found, environment, connection)
        found = found.model_copy(update={"name": name})
        settings = apply_settings(found, options)
        with project_environment(settings, connection) as variables:
            layers = [
                ProjectStack(project, stack or name, variables),
                ProjectStack(project, foundation or f"{stack or name}-foundation", variables),
            ]
            _refuse_unseen(layers, observer, settings.backend or "the backend of the pulumi login")
            if not yes:
                typer.confirm(
                    f"Destroy all GPU capacity, the environment {name!r} and its foundation, in the cluster at "
                    f"{connection.server}?",
                    abort=True,
                )
            with Progress(
                SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=ERR
            ) as progress:
                with writer_of(options, connection, observer, found) as writer:
                    progress.add_task(f"deleting the capacity of {name}", total=None)
                    writer.applier.start()
                    drained = writer.applier.drain()
                    _await_no_capacity(writer)
                    progress.add_task(f"destroying the stack {layers[0].name}", total=None)
                    layers[0].destroy()
                    refuse_leftovers(writer.observer.snapshot())
                progress.add_task(f"destroying the stack {layers[1].name}", total=None)
                layers[1].destroy()
                _verify(layers, Objects(connection))
    OUT.print(f"destroyed: {counted(len(drained), 'object')} of the capacity of {name}")
    for layer in layers:
        OUT.print(f"destroyed: the stack {layer.name}" if layer.exists else f"there was no stack {layer.name}")


def _name_of(found: Environment, named: str | None, connection: Connection) -> str:
    if not found.uid and named is None:
        raise PlimsollError(
            f"the cluster at {connection.server} has no Environment",
            "name the environment whose stacks are to be destroyed with --environment",
        )
    if found.uid and named not in (None, found.name):
        raise PlimsollError(
            f"the Environment of the cluster at {connection.server} is {found.name!r}, not {named!r}",
            "connect to the other cluster with --context, or remove --environment",
        )
    return named or found.name


def _refuse_unseen(layers: list[ProjectStack], observer: Observer, backend: str) -> None:
    """Refuses to begin where a stack is not there and what it declares is."""
    snapshot = observer.snapshot()
    existing = (
        f"the Environment {snapshot.environment.name}" if snapshot.environment.uid else "",
        "the kinds of plimsoll.dev" if "Workspace" not in snapshot.missing_kinds else "",
    )
    for layer, objects, option in zip(layers, existing, ("--stack", "--foundation"), strict=True):
        if objects and not layer.exists:
            raise PlimsollError(
                f"no stack {layer.name} in {backend}, but {objects} in the cluster: nothing was destroyed",
                f"set the stack that declares it with {option}, and its backend with --backend",
            )


def _verify(layers: list[ProjectStack], cluster: Objects) -> None:
    """Raises PlimsollError where an object that a stack declared is still in the cluster."""
    deadline = time.monotonic() + LEFT_SECONDS
    while left := [each for layer in layers for each in layer.left(cluster)]:
        if time.monotonic() > deadline:
            raise PlimsollError(
                f"the stacks are destroyed, but these are still in the cluster: {shortlist(left)}",
                "run `kubectl describe` to see what blocks their deletion",
            )
        time.sleep(1.0)


def _await_no_capacity(writer: Writer) -> None:
    """Returns when no capacity exists, no Workspace has our finalizer, and the Environment's status is updated."""
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        snapshot = writer.observer.snapshot().model_copy(update={"recorded": writer.applier.recorded()})
        ownership = Ownership(snapshot)
        left = [f"NodeClaim {each.name}" for each in ownership.claims]
        left += [f"NodePool {each.name}" for each in ownership.pools]
        left += [f"{each.kind} {each.namespace}/{each.name}" for each in (*ownership.workloads, *ownership.services)]
        left += [str(key_of(each)) for each in ownership.claim_templates]
        left += [str(key_of(each)) for each in request_objects(snapshot)]
        if not left:
            # The controller does not run, so the finalizers are removed here.
            now = datetime.now(UTC)
            finalized = [str(each.ref) for each in finalizing(snapshot, Plan(), (), now) if not each.wanted]
            writer.reporter.report(snapshot, Plan(verdicts=validate(snapshot, now)), now)
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
