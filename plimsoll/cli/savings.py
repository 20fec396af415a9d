"""`plimsoll savings`: the same demand packed anew, and which nodes could go; nothing is changed."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from plimsoll.cli.shared import OUT, Context, Format, Kubeconfig, Output, print_document
from plimsoll.text import counted, shortlist

if TYPE_CHECKING:
    from plimsoll.cost import GroupSavings

app = typer.Typer(add_completion=False)


@app.command()
def savings(
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE_OR_DIR", help="manifests instead of a cluster; - is standard input"),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Show how many nodes the running pods need if they are packed anew, with a lower bound, which nodes could go, and
    which pods would have to move; nothing is changed."""
    from plimsoll.cost import Prices
    from plimsoll.cost import savings as possible_savings

    if file:
        from plimsoll.observe.files import snapshot_from_files

        snapshot = snapshot_from_files(file)
    else:
        from plimsoll.kube import Connection
        from plimsoll.observe.cluster import read_cluster

        connection = Connection.open(kubeconfig, context)
        try:
            snapshot = read_cluster(connection, only=("Environment", "Node", "Pod", "DaemonSet", "Workspace"))
        finally:
            connection.close()
    found = possible_savings(snapshot, Prices.of(snapshot))
    if output.document:
        print_document(_as_json(found), output)
    else:
        _print(found, whole=output is Format.WIDE)


def _as_json(found: "Sequence[GroupSavings]") -> dict[str, Any]:
    return {
        "hourly": sum(each.hourly for each in found),
        "mostHourly": sum(each.most_hourly for each in found),
        "groups": [
            {
                "instanceType": each.instance_type,
                "nodePool": each.node_pool,
                "product": each.product,
                "nodes": each.nodes,
                "anew": each.anew,
                "least": each.least,
                "leaving": list(each.leaving),
                "kept": list(each.kept),
                "moves": [asdict(move) for move in each.moves],
                "price": each.price,
                "hourly": each.hourly,
            }
            for each in found
        ],
    }


def _print(found: "Sequence[GroupSavings]", *, whole: bool) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("Type", "NodePool"):
        table.add_column(column)
    for column in ("Nodes", "Packed anew", "At least", "Could go", "Pods to move", "Saves an hour"):
        table.add_column(column, justify="right")
    for each in found:
        saved = f"{each.hourly:,.2f}" if each.price is not None else "not known"
        counts = (each.nodes, each.anew, each.least, len(each.leaving), len(each.moves))
        table.add_row(each.instance_type or "-", each.node_pool, *map(str, counts), saved)
    OUT.print(table if found else "no usable node has GPUs")
    for each in found:
        if each.leaving:
            names = ", ".join(each.leaving) if whole else shortlist(each.leaving)
            _say(f"{each.instance_type}: {names} could go")
            for move in each.moves if whole else each.moves[:5]:
                _say(f"  {move.pod}: {move.source} -> {move.target}")
            if not whole and len(each.moves) > 5:
                _say(f"  and {counted(len(each.moves) - 5, 'more pod')}; --output wide lists all")
        if each.kept:
            why = "of Workspaces, with pods that must not be disrupted, or with discrepancies (`plimsoll gpus`)"
            _say(f"{each.instance_type}: {shortlist(each.kept)} stay: {why}")
    OUT.print(
        Text(
            f"{sum(each.hourly for each in found):,.2f} an hour could be saved by moving pods; "
            f"no packing onto these nodes saves more than {sum(each.most_hourly for each in found):,.2f}",
            style="bold",
        ),
        soft_wrap=True,
    )


def _say(text: str) -> None:
    OUT.print(text, markup=False, highlight=False, soft_wrap=True)
