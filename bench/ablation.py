"""What each heuristic of packing gains: the GPUs of new nodes for the pods of a trace, with all heuristics and without
each.

    python -m bench.ablation [PODS.csv ...] [--nodes NODES.csv] [--shape GPUS:CPU_MILLI:MEMORY_MIB ...] [--output json]

Without PODS.csv, the default trace of openb is used if it is in ../shared/data/openb; without shapes, shapes whose CPU
is ample, tight and scarce. A heuristic that gains nothing can be removed.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from bench.command import run_benchmark
from bench.node_figures import load_solver, needs_of, shape_of, shapes_of
from bench.trace import default_pods, read_pods
from plimsoll.cli.shared import OUT, Format, Output, print_json
from plimsoll.packing.nodes import Heuristic, NodeShape, PodNeed, pack_nodes

SHAPES = ("8:128000:786432", "8:96000:1152000", "8:64000:512000", "4:32000:256000")


def figures(needs: Sequence[PodNeed], shapes: Sequence[NodeShape]) -> dict[str, Any]:
    """GPUs of new nodes and seconds, with all heuristics and without each."""
    found: dict[str, Any] = {}
    for left_out in (None, *Heuristic):
        start = time.perf_counter()
        packing = pack_nodes(needs, shapes, without=() if left_out is None else (left_out,))
        found[left_out.value if left_out is not None else "all"] = {
            "gpus": packing.gpus,
            "seconds": round(time.perf_counter() - start, 3),
        }
        if left_out is None:
            found["bound"] = packing.least
    return found


def main(
    pods: Annotated[list[Path] | None, typer.Argument(metavar="[PODS.csv ...]", help="traces of pods")] = None,
    *,
    nodes: Annotated[Path | None, typer.Option(help="a file of nodes, whose shapes are used")] = None,
    shape: Annotated[list[str] | None, typer.Option(help="GPUS:CPU_MILLI:MEMORY_MIB of a node")] = None,
    output: Output = Format.TEXT,
) -> None:
    """What each heuristic of packing gains: GPUs with all heuristics, and without each."""
    load_solver()
    rows = []
    for path in pods or [default_pods()]:
        trace = [pod for pod in read_pods(path) if pod.gpus]
        offers = {str(nodes): shapes_of(nodes)} if nodes is not None else {}
        offers |= {text: [shape_of(text)] for text in shape or (() if nodes is not None else SHAPES)}
        for name, shapes in offers.items():
            rows.append({"file": path.name, "shape": name, **figures(needs_of(trace, shapes), shapes)})
    if output is Format.JSON:
        print_json(rows)
        return
    table = Table(
        "trace", "nodes", "bound", "all", *(f"without {each.value}" for each in Heuristic), box=box.SIMPLE_HEAD
    )
    for row in rows:
        table.add_row(
            row["file"].removeprefix("openb_pod_list_").removesuffix(".csv"),
            Path(row["shape"]).name,
            *(f"{row['bound'] if each == 'bound' else row[each]['gpus']}" for each in ("bound", "all", *Heuristic)),
        )
    OUT.print(table)


if __name__ == "__main__":
    run_benchmark(main)
