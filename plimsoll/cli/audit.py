"""`plimsoll audit`: what a cluster's GPUs cost, what is idle or blocked, and what Plimsoll would do; reads only."""

from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.shared import (
    ERR,
    Context,
    Files,
    Format,
    Kubeconfig,
    Paths,
    named_files,
    only_without,
    print_document,
    read_snapshot,
)
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.cli.tables.audit import Audited
    from plimsoll.model import Snapshot

app = typer.Typer(add_completion=False)


class Written(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    HTML = "html"


@app.command()
def audit(
    ctx: typer.Context,
    paths: Paths = None,
    *,
    file: Files = None,
    stack: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="also write the stack file that adopts NodePools, Queues and Workspaces"),
    ] = None,
    fleet: Annotated[
        Path | None,
        typer.Option(help="audit several clusters: file with the list `clusters`, each with name, kubeconfig, context"),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[
        Written, typer.Option("--output", "-o", help="html is one page without other files, to send on")
    ] = Written.TEXT,
) -> None:
    """Audit a cluster: idle GPUs and their cost, pods without capacity and why, packing against its lower bound,
    contradictory labels, nodes without an owner, missing gates, queues that can run nothing, what Plimsoll would do.

    It needs the rights to get and list, and none of Plimsoll's kinds; it says what it does not judge for lack of a
    right. Nothing is changed. Exit code 0 whatever it finds; 1 if no cluster of --fleet could be read.
    """
    from plimsoll.cli.tables.audit import as_html, as_json, print_audits
    from plimsoll.observe.cloud_types import with_cloud_types

    only_without(ctx, "fleet", "paths", "file", "stack", "kubeconfig", "context")
    files = named_files(ctx, paths, file)
    if fleet is not None:
        audits = _of_fleet(fleet)
    else:
        snapshot = with_cloud_types(read_snapshot(files, kubeconfig, context, any_rights=True))
        name = context or ", ".join(files) or "the cluster of the kubeconfig"
        audits = [_audited(name, snapshot)]
        if stack is not None:
            _write_stack(stack, files, kubeconfig, context)
    if output in (Written.JSON, Written.YAML):
        documents = [as_json(each) for each in audits]
        print_document({"clusters": documents} if fleet is not None else documents[0], Format(output.value))
    elif output is Written.HTML:
        typer.echo(as_html(audits), nl=False)
    else:
        print_audits(audits, several=fleet is not None)
    if all(each.error for each in audits):
        raise typer.Exit(1)


def _audited(name: str, snapshot: "Snapshot") -> "Audited":
    from plimsoll.cli.tables.audit import Audited
    from plimsoll.explaining import audit as audited
    from plimsoll.explaining import plan_demand

    return Audited(name, audited(plan_demand(snapshot, datetime.now(UTC))), snapshot.warnings)


def _of_fleet(path: Path) -> "list[Audited]":
    from plimsoll.cli.fleet import of_each, read_fleet
    from plimsoll.cli.tables.audit import Audited

    log_to_stderr()
    found = of_each(read_fleet(path), path.parent, lambda name, _, snapshot: _audited(name, snapshot), any_rights=True)
    return [
        Audited(name, error=each.message, hint=each.hint or "") if isinstance(each, PlimsollError) else each
        for name, each in found.items()
    ]


def _write_stack(path: Path, files: list[str], kubeconfig: Path | None, context: str | None) -> None:
    from plimsoll.cli.adopt import adoptable_in, adoptable_of, of_no_stack
    from plimsoll.project import adopt
    from plimsoll.yaml_text import write_yaml

    if files:
        manifests = adoptable_in(files)
    else:
        from plimsoll.kube import Connection

        with closing(Connection.open(kubeconfig, context)) as connection:
            manifests = adoptable_of(connection, any_rights=True)
    adoption = adopt(of_no_stack(manifests))
    for line in adoption.left_out:
        ERR.print(f"omitted: {line}", style="yellow", soft_wrap=True)
    text = write_yaml({"config": {"layer": "objects", **adoption.settings}})
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlimsollError(f"--stack {path}: {error.strerror}", "set a path that can be written") from None
