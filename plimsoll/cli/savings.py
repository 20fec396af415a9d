"""`plimsoll savings`: which nodes could be removed, and a new packing of the same demand; nothing is changed."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from plimsoll.cli.shared import (
    OUT,
    Context,
    Files,
    Format,
    Kubeconfig,
    Output,
    Paths,
    named_files,
    print_document,
    print_table,
    print_warnings,
    read_snapshot,
)
from plimsoll.text import counted, shortlist

if TYPE_CHECKING:
    from plimsoll.cost import Moving, Savings

app = typer.Typer(add_completion=False)

_READ: Final = (
    *("Environment", "Node", "Pod", "DaemonSet", "Workspace", "PodGroup", "Queue", "NodePool"),
    *("PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
)


@app.command()
def savings(
    ctx: typer.Context,
    paths: Paths = None,
    file: Files = None,
    *,
    any_gpu: Annotated[
        bool, typer.Option("--any-gpu", help="let pods move to any GPU product that their selectors allow")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = Format.TEXT,
) -> None:
    """Show which nodes could be removed if pods moved, which pods would have to move, and the cost of a new packing.

    Nothing is changed. A lower bound shows how far the packing is from the optimum.
    """
    from plimsoll.cost import Prices
    from plimsoll.cost import savings as possible_savings

    snapshot = read_snapshot(named_files(ctx, paths, file), kubeconfig, context, _READ)
    prices = Prices.of(snapshot)
    found = possible_savings(snapshot, prices, any_gpu=any_gpu)
    basis = prices.basis(each.instance_type for each in found.groups)
    if output.document:
        print_document({**_as_json(found), "prices": basis.as_json(), "warnings": list(snapshot.warnings)}, output)
    else:
        print_warnings(snapshot.warnings)
        _print(found, basis.currency, whole=output is Format.WIDE)
        if basis:
            _say(str(basis))


def _as_json(found: "Savings") -> dict[str, Any]:
    return {
        "unit": "price" if found.priced else "gpus",
        "nodesWithoutPrice": found.unpriced,
        "now": round(found.now, 6),
        "saved": round(found.saved, 6),
        "repacked": round(found.repacked, 6),
        "least": round(found.least, 6),
        "groups": [
            {
                "instanceType": each.instance_type,
                "nodePool": each.node_pool,
                "product": each.product,
                "price": each.price,
                "nodes": each.nodes,
                "repacked": each.repacked,
                "removable": list(each.removable),
            }
            for each in found.groups
        ],
        "moving": {
            "gpus": found.moving.gpus,
            "gangs": found.moving.gangs,
            "withoutController": found.moving.without_controller,
            "moves": [asdict(move) for move in found.moving.moves],
        },
        "stays": dict(found.stays),
        "leftOut": dict(found.left_out),
        "pendingPods": found.pending,
    }


def _print(found: "Savings", currency: str, *, whole: bool) -> None:
    unit = f" {currency}" if currency else ""
    if not found.groups:
        _say("no usable node has GPUs")
        _print_by_reason("not counted", found.left_out, whole=whole)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("Type", "NodePool", "GPU"):
        table.add_column(column, overflow="fold")
    for column in ("Nodes", "Removable", "Needed", f"Saves{unit} an hour"):
        table.add_column(column, justify="right")
    for each in found.groups:
        saved = "not known" if each.price is None else f"{each.price * len(each.removable):,.2f}"
        counts = (each.nodes, len(each.removable), each.repacked)
        table.add_row(each.instance_type or "-", each.node_pool or "-", each.product, *map(str, counts), saved)
    print_table(table)
    for each in found.groups:
        if each.removable:
            names = ", ".join(each.removable) if whole else shortlist(each.removable)
            _say(f"{each.instance_type or each.product}: can be removed: {names}")
    _print_moves(found.moving, whole=whole)
    _print_by_reason("cannot be removed", found.stays, whole=whole)
    _print_by_reason("not counted", found.left_out, whole=whole)
    if found.pending:
        _say(
            f"{counted(found.pending, 'pending pod')} not counted: they may need the nodes that could be removed "
            "(`plimsoll demand`)"
        )

    def amount(value: float) -> str:
        return f"{value:,.2f}{unit} an hour" if found.priced else _gpus(value)

    OUT.print(
        Text(
            f"Now: {amount(found.now)}. Moving pods saves {amount(found.saved)}. "
            f"If all pods were placed again: {amount(found.repacked)}. Lower bound of any packing onto these nodes: "
            f"{amount(found.least)}.",
            style="bold",
        ),
        soft_wrap=True,
    )
    if not found.priced:
        without = {each.instance_type or "no instance type" for each in found.groups if each.price is None}
        _say(
            f"GPUs are counted instead of prices: {counted(found.unpriced, 'node')} without a price "
            f"({shortlist(sorted(without))}); set catalog.prices (`plimsoll prices`)"
        )


def _print_moves(moving: "Moving", *, whole: bool) -> None:
    if not moving.moves:
        return
    pods = counted(len(moving.moves), "pod")
    _say(f"{pods} with {_gpus(moving.gpus)} would move:")
    for move in moving.moves if whole else moving.moves[:5]:
        _say(f"  {move.pod}: {move.source} -> {move.target}")
    if not whole and len(moving.moves) > 5:
        _say(f"  and {counted(len(moving.moves) - 5, 'more pod')}; --output wide lists all")
    if moving.gangs:
        _say(f"{counted(moving.gangs, 'gang')} among them may restart all their pods")
    if moving.without_controller:
        alone = counted(moving.without_controller, "pod")
        _say(f"{alone} without a controller among them: not recreated once deleted")


def _print_by_reason(what: str, reasons: Mapping[str, str], *, whole: bool) -> None:
    """Nodes with one reason on one line."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in sorted(by_reason.items()):
        _say(f"{', '.join(names) if whole else shortlist(names)}: {what}: {reason}")


def _gpus(number: float) -> str:
    return f"{number:g} GPU" + ("" if number == 1 else "s")


def _say(text: str) -> None:
    OUT.print(text, highlight=False, soft_wrap=True)
