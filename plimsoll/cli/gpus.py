"""`plimsoll gpus`: the ledger of GPUs, node by node; it is read-only, so it can run in a cluster with KAI."""

from typing import Annotated

import typer

from plimsoll.cli.shared import REFUSED, SETTLED, Context, Format, Kubeconfig, Output, only_without, print_document

app = typer.Typer(add_completion=False)


@app.command()
def gpus(
    ctx: typer.Context,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE_OR_DIR", help="manifests instead of a cluster; - is standard input"),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Show what is allocated and free on each GPU: shares by GPU group, whole GPUs, and inconsistencies.

    Exit code 2 if there are inconsistencies.
    """
    only_without(ctx, "file", "kubeconfig", "context")
    from plimsoll.cli.tables.gpus import as_json, print_ledger
    from plimsoll.cluster.ledger import gpu_ledger

    if file:
        from plimsoll.observe.files import snapshot_from_files

        snapshot = snapshot_from_files(file)
    else:
        from plimsoll.kube import Connection
        from plimsoll.observe.cluster import read_cluster

        connection = Connection.open(kubeconfig, context)
        try:
            snapshot = read_cluster(connection, only=("Environment", "Node", "Pod"))
        finally:
            connection.close()
    accounts = [account for account in gpu_ledger(snapshot).accounts() if account.gpus or account.taken]
    if output.document:
        print_document(as_json(accounts), output)
    else:
        print_ledger(accounts)
    raise typer.Exit(REFUSED if any(account.discrepancies for account in accounts) else SETTLED)
