"""`plimsoll drift`: what is declared, what the states have and what the cluster has, compared; nothing is written."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from plimsoll.cli.shared import (
    OUT,
    REFUSED,
    SETTLED,
    Backend,
    Context,
    Format,
    Kubeconfig,
    Output,
    PassphraseFile,
    SecretsProvider,
    WorkFolder,
    next_plan,
    only_with,
    print_document,
)
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr
from plimsoll.text import counted, shortlist

app = typer.Typer(add_completion=False)


@app.command()
def drift(  # noqa: PLR0917 - options of a command, each given by name
    ctx: typer.Context,
    project: Annotated[
        Path | None, typer.Option(help="folder with Pulumi.yaml: also compares its stacks, by a preview")
    ] = None,
    stacks: Annotated[
        list[str] | None, typer.Option("--stack", help="stack of the project; may be repeated [the Environment's name]")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    backend: Backend = "",
    passphrase_file: PassphraseFile = None,
    secrets_provider: SecretsProvider = "passphrase",
    work_folder: WorkFolder = None,
    output: Output = Format.TEXT,
) -> None:
    """Compare the declarations, the states of the stacks and the cluster. Nothing is written.

    Exit code 0: no drift; 2: drift; 1: the comparison failed. The command takes no Lease, so a controller may run.
    """
    from plimsoll.apply import Applier, ProjectStack, cluster_identity, find_drift, project_environment
    from plimsoll.cli.writing import WriterOptions, apply_settings, check_project
    from plimsoll.kube import Objects
    from plimsoll.observe.cluster import open_observer

    only_with(ctx, "project", "stacks")
    if project is not None:
        check_project(project)
    log_to_stderr()
    options = WriterOptions(
        environment=None,
        kubeconfig=kubeconfig,
        context=context,
        backend=backend,
        passphrase_file=passphrase_file,
        secrets_provider=secrets_provider,
        pre_started=0,
        work_folder=work_folder,
    )
    with open_observer(kubeconfig, context) as (connection, observer):
        snapshot = observer.snapshot()
        if not snapshot.environment.uid:
            raise PlimsollError(
                f"the cluster at {connection.server} has no Environment", "apply the environment's stack first"
            )
        settings = apply_settings(snapshot.environment, options)
        states = Applier(settings, connection).states()
        found: list[dict[str, Any]] = [
            {"drift": each.kind.value, "object": str(each.key), "stack": each.stack, "fields": list(each.fields)}
            for each in find_drift(settings, states, cluster_identity(connection), Objects(connection))
        ]
        found += _planned(next_plan(snapshot, datetime.now(UTC)))
        if project is not None:
            with project_environment(settings, connection) as variables:
                for name in stacks or [snapshot.environment.name]:
                    stack = ProjectStack(project, name, variables)
                    if not stack.exists:
                        raise PlimsollError(
                            f"no stack {name}", "name the stack with --stack, its backend with --backend"
                        )
                    found += [
                        {"drift": verb, "object": urn, "stack": name, "fields": []} for verb, urn in stack.preview()
                    ]
    _print(found, output)
    raise typer.Exit(REFUSED if found else SETTLED)


def _planned(plan: Any) -> list[dict[str, Any]]:
    """What the controller has still to do: declared, and not there. What a policy withholds is never done."""
    verbs = (("ToCreate", plan.creations), ("ToUpdate", plan.updates), ("ToDelete", plan.deletions))
    return [
        {"drift": verb, "object": str(each.key), "stack": "", "fields": []}
        for verb, changes in verbs
        for each in changes
    ]


def _print(found: list[dict[str, Any]], output: Format) -> None:
    if output.document:
        print_document(found, output)
        return
    for each in found:
        where = f"  {each['stack']}" if each["stack"] else ""
        fields = f": {shortlist(each['fields'])}" if each["fields"] else ""
        OUT.print(
            Text.assemble((f"{each['drift']:<9}", "yellow"), each["object"], fields, (where, "dim")), soft_wrap=True
        )
    OUT.print(Text(f"{counted(len(found), 'difference')}" if found else "no drift", style="bold"))
