"""GPUs that a trace's shares take: KAI's formula, best fit decreasing, ours, and the lower bound.

    python -m bench.openb PODS.csv [PODS.csv ...] [--nodes NODES.csv] [--output json] [--duals]

A share is a row with num_gpu 1 and gpu_milli from 1 to 999. The figures of a file and its bins are about the shares
without gpu_spec; `constrained` is about all shares, each on a model that it allows; `all_pods` adds the pods that ask
for whole GPUs. Rows without GPUs are counted and take none. With `--nodes`, `on_nodes` packs all pods with GPUs onto
new nodes of the shapes of that file, with their CPU and memory.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from bench.figures import Report, measure, shapes_of
from plimsoll.cli.output import FAILED, OUT, Format, Output, print_error, print_json
from plimsoll.model.errors import PlimsollError
from plimsoll.plan.packing import ANY, Item, pack


def _print(reports: Sequence[Report]) -> None:
    table = Table("trace", title="GPUs for the shares of each trace", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for column in ("shares", "KAI", "holds", "best fit", "ours", "bound", "rounds", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    table.columns[0].no_wrap = True
    for report in reports:
        own, whole, every = report.figures, report.constrained, report.all_pods
        name = report.file.removeprefix("openb_pod_list_").removesuffix(".csv")
        for title, figures, fitting in ((name, own, f"{own.held.kai_sum}"), ("  and gpu_spec", whole, "")):
            table.add_row(
                title, f"{figures.shares}", f"{figures.kai_sum}", fitting, f"{figures.best_fit}", f"{figures.gpus}",
                f"{figures.lower_bound:.3f}{'' if figures.exact else '*'}",
                f"{figures.rounds}", f"{figures.solve_seconds:.3f}",
            )  # fmt: skip
        table.add_row(
            f"  all {every.pods}", "", "", "", "", f"{every.gpus}", f"{every.lower_bound_gpus}",
            f"{every.rounds}", f"{every.solve_seconds:.3f}", end_section=report.on_nodes is None,
        )  # fmt: skip
        if (nodes := report.on_nodes) is not None:
            table.add_row(
                f"  {nodes.nodes} nodes", "", "", "", "", f"{nodes.gpus}", f"{nodes.lower_bound_gpus}", "",
                f"{nodes.solve_seconds:.3f}", end_section=True,
            )  # fmt: skip
    OUT.print(table)
    OUT.print(
        "The first line of a trace is about its shares without gpu_spec, the second about all of them, the third adds"
        " whole GPUs.\nKAI: the sum of fractions; holds: the most shares that so many GPUs can hold, the smallest"
        " first. Best fit and ours hold all."
    )
    if any(report.on_nodes is not None for report in reports):
        OUT.print("nodes: the GPUs of new nodes that have the CPU and memory for all pods with GPUs, too.")
    if not all(each.figures.exact and each.constrained.exact for each in reports):
        OUT.print("* time ran out: the optimum of the linear program may be higher.")


def main(
    pods: Annotated[list[Path], typer.Argument(help="CSV files of pods", metavar="PODS.csv...")],
    nodes: Annotated[Path | None, typer.Option(help="CSV file of nodes: packs onto nodes of their shapes, too")] = None,
    output: Output = Format.TEXT,
    duals: Annotated[bool, typer.Option("--duals", help="with json: the dual price of each gpu_milli")] = False,
) -> None:
    """GPUs that a trace's shares take: KAI's formula, best fit decreasing, ours, and the lower bound."""
    try:
        pack([Item("first", {ANY: 600}), Item("second", {ANY: 500})])  # loads the solver, which is no part of solving
        shapes = [] if nodes is None else shapes_of(nodes)
        reports = [measure(path, shapes) for path in pods]
    except PlimsollError as error:
        print_error(error)
        raise typer.Exit(FAILED) from None
    if output is Format.JSON:
        objects = [report.as_json(duals) for report in reports]
        print_json(objects[0] if len(objects) == 1 else objects)
    else:
        _print(reports)


if __name__ == "__main__":
    typer.run(main)
