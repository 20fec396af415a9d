"""`plimsoll status`: Workspaces and the objects that Plimsoll created for them, as the cluster reports them."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.shared import (
    OUT,
    Context,
    Format,
    Kubeconfig,
    Output,
    namespaces,
    only_without,
    print_document,
    snapshots,
)
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.model import Snapshot

SHOWN = ("Environment", "Workspace", "NodeClaim", "Deployment", "StatefulSet", "LeaderWorkerSet", "GPUDemand")
"""The kinds that are read."""

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="show only Workspaces of this namespace", autocompletion=namespaces),
]

app = typer.Typer(add_completion=False)


@app.command()
def status(  # noqa: PLR0917 - options of a command, each given by name
    ctx: typer.Context,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    fleet: Annotated[
        Path | None, typer.Option(help="file with the list `clusters`, each with name, kubeconfig and context")
    ] = None,
    output: Output = Format.TEXT,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="print the status again after each change")] = False,
) -> None:
    """Show Workspaces, their nodes, NodeClaims and workloads, as the cluster reports them now.

    With --fleet: a table with one row for each cluster. A cluster that does not answer gets a row with the error.
    """
    only_without(ctx, "fleet", "kubeconfig", "context", "namespace", "watch")
    if fleet is not None:
        _show_fleet(fleet, output)
        return
    from plimsoll.cli.tables.status import as_json

    log_to_stderr()
    if not watch:
        _show(as_json(_read(kubeconfig, context), namespace), output)
        return
    from plimsoll.observe.cluster import open_observer

    with open_observer(kubeconfig, context) as (_, observer):
        before: dict[str, Any] | None = None
        for snapshot in snapshots(observer):
            shown = as_json(snapshot, namespace)
            if shown != before:
                OUT.clear()  # on a terminal alone
                _show(shown, output)
                before = shown


def _read(kubeconfig: Path | None, context: str | None) -> "Snapshot":
    from plimsoll.kube import Connection
    from plimsoll.observe.cluster import read_cluster

    with closing(Connection.open(kubeconfig, context)) as connection:
        return read_cluster(connection, only=(*SHOWN, "Node", "NodePool", "Pod"), required=("Workspace",))


def _show(shown: dict[str, Any], output: Format) -> None:
    if output.document:
        print_document(shown, output)
    else:
        from plimsoll.cli.tables.status import print_status

        print_status(shown, wide=output is Format.WIDE)


def _show_fleet(path: Path, output: Format) -> None:
    from plimsoll.cli.fleet import fleet_status, print_fleet, read_fleet

    log_to_stderr()
    rows = fleet_status(read_fleet(path), path.parent)
    if output.document:
        print_document(rows, output)
    else:
        print_fleet(rows)
