"""`plimsoll status`: Workspaces and the objects that Plimsoll created for them, as the cluster reports them."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from plimsoll.cli.shared import (
    OUT,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    Paths,
    named_files,
    namespaces,
    only_without,
    print_document,
    read_snapshot,
    snapshots,
)
from plimsoll.logs import log_to_stderr

_READ: Final = (
    *("Environment", "Workspace", "NodeClaim", "Deployment", "StatefulSet", "LeaderWorkerSet", "GPUDemand"),
    *("Node", "NodePool", "Pod"),
)

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="show only Workspaces of this namespace", autocompletion=namespaces),
]

app = typer.Typer(add_completion=False)


@app.command()
def status(
    ctx: typer.Context,
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    fleet: Annotated[
        Path | None, typer.Option(help="file with the list `clusters`, each with name, kubeconfig and context")
    ] = None,
    output: Output = Format.TEXT,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="print the status again after each change")] = False,
) -> None:
    """Show Workspaces, their nodes, NodeClaims and workloads, as the cluster, or files of it, report them.

    With --fleet: a table with one row for each cluster. A cluster that does not answer gets a row with the error.
    """
    only_without(ctx, "fleet", "paths", "file", "kubeconfig", "context", "namespace", "watch")
    files = named_files(ctx, paths, file)
    for given in ("paths", "file"):
        only_without(ctx, given, "watch")
    if fleet is not None:
        _show_fleet(fleet, output)
        return
    from plimsoll.cli.tables.status import as_json

    log_to_stderr()
    if not watch:
        snapshot = read_snapshot(files, kubeconfig, context, _READ, required=("Workspace",))
        _show(as_json(snapshot, namespace), output)
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
