"""`plimsoll gpus`: the ledger of GPUs, node by node; it is read-only, so it can run in a cluster with KAI."""

import typer

from plimsoll.cli.shared import (
    REFUSED,
    SETTLED,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    Paths,
    named_files,
    print_document,
    print_warnings,
    read_snapshot,
)

app = typer.Typer(add_completion=False)


@app.command()
def gpus(
    ctx: typer.Context,
    paths: Paths = None,
    *,
    file: Files = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Show what is allocated and free on each GPU: shares by GPU group, whole GPUs, and inconsistencies;
    and the accelerators of other vendors.

    Exit code 2 if there are inconsistencies.
    """
    from plimsoll.cli.tables.gpus import as_json, print_ledger, print_others
    from plimsoll.cluster.ledger import gpu_ledger, other_accelerators

    snapshot = read_snapshot(named_files(ctx, paths, file), kubeconfig, context, ("Environment", "Node", "Pod"))
    accounts = [each for each in gpu_ledger(snapshot).accounts() if each.has_gpus or each.discrepancies]
    others = other_accelerators(snapshot)
    if output.document:
        print_document(as_json(accounts, others) | {"warnings": list(snapshot.warnings)}, output)
    else:
        print_warnings(snapshot.warnings)
        print_ledger(accounts)
        print_others(others)
    raise typer.Exit(REFUSED if any(account.discrepancies for account in accounts) else SETTLED)
