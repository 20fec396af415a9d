"""GPUs that a trace's shares need: by KAI's formula, by best fit decreasing, by Plimsoll, and the lower bound.

    python -m bench.openb [PODS.csv ...] [--nodes NODES.csv | --shape GPUS:CPU_MILLI:MEMORY_MIB]
        [--output json] [--duals]

Without PODS.csv, the default trace of openb is used if it is in ../shared/data/openb.

A share is a row with num_gpu 1 and gpu_milli from 1 to 999. The figures of a file and its bins are about the shares
without gpu_spec; `constrained` is about all shares, each on a model that it allows; `all_pods` adds the pods that ask
for whole GPUs. Rows without GPUs are counted and not packed.

With `--nodes`, pods go onto new nodes of the shapes of that file, with their CPU and memory: all shares in
`shares_on_nodes`, all pods with GPUs in `on_nodes`. `--shape` does the same with one shape, and without gpu_spec.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from bench.command import run_benchmark
from bench.figures import Report, measure
from bench.node_figures import load_solver, shape_of, shapes_of
from bench.trace import default_pods
from plimsoll.cli.shared import OUT, Format, Output, print_json
from plimsoll.errors import PlimsollError


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
            f"{every.rounds}", f"{every.solve_seconds:.3f}", end_section=True,
        )  # fmt: skip
    OUT.print(table)
    OUT.print(
        "The first line of a trace is about its shares without gpu_spec, the second about all of them, the third adds"
        " whole GPUs.\nKAI: the sum of fractions; holds: the most shares that so many GPUs can hold, the smallest"
        " first. Best fit and ours hold all."
    )
    if not all(each.figures.exact and each.constrained.exact for each in reports):
        OUT.print("* time ran out: the optimum of the linear program may be higher.")


def _print_nodes(reports: Sequence[Report]) -> None:
    table = Table("trace", title="GPUs of new nodes", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for column in ("pods", "nodes", "best fit", "ours", "bound", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    table.columns[0].no_wrap = True
    unplaced = 0
    for report in reports:
        name = report.file.removeprefix("openb_pod_list_").removesuffix(".csv")
        for title, nodes in ((f"{name}: shares", report.shares_on_nodes), ("  and whole GPUs", report.on_nodes)):
            if nodes is not None:
                unplaced = max(unplaced, nodes.unplaced)
                table.add_row(
                    title, f"{nodes.pods}", f"{nodes.nodes}", f"{nodes.best_fit}", f"{nodes.gpus}",
                    f"{nodes.lower_bound_gpus}", f"{nodes.solve_seconds:.3f}", end_section=nodes is report.on_nodes,
                )  # fmt: skip
    OUT.print(table)
    OUT.print("With the CPU and memory of the pods. Best fit looks at GPUs, CPU and memory at once.")
    if unplaced:
        OUT.print(f"Pods that ask for more than any of these nodes has are in no figure: {unplaced} at most.")


def main(
    pods: Annotated[
        list[Path] | None, typer.Argument(help="CSV files of pods; openb's default trace", metavar="[PODS.csv...]")
    ] = None,
    nodes: Annotated[Path | None, typer.Option(help="CSV file of nodes: packs onto nodes of their shapes, too")] = None,
    shape: Annotated[
        str | None, typer.Option(help="packs onto nodes of this shape, too", metavar="GPUS:CPU_MILLI:MEMORY_MIB")
    ] = None,
    output: Output = Format.TEXT,
    duals: Annotated[bool, typer.Option("--duals", help="with json: the dual price of each gpu_milli")] = False,
) -> None:
    """GPUs that a trace's shares take: KAI's formula, best fit decreasing, ours, and the lower bound."""
    load_solver()
    if nodes is not None and shape is not None:
        raise PlimsollError("--nodes and --shape both say what nodes there are", "give one of them")
    if duals and output is not Format.JSON:
        raise PlimsollError("--duals has no effect without --output json", "add it, or remove --duals")
    shapes = [] if nodes is None else shapes_of(nodes)
    shapes += [] if shape is None else [shape_of(shape)]
    reports = [measure(path, shapes) for path in pods or [default_pods()]]
    if output is Format.JSON:
        objects = [report.as_json(duals) for report in reports]
        print_json(objects[0] if len(objects) == 1 else objects)
    else:
        _print(reports)
        if shapes:
            _print_nodes(reports)


if __name__ == "__main__":
    run_benchmark(main)
