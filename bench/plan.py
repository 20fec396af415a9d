"""Time and memory of validating and planning: 100, 1,000 and 10,000 nodes with 1,000 Workspaces.

    python -m bench.plan [--nodes 100 --nodes 1000 --nodes 10000] [--workspaces 1000] [--rounds 5] [--output json]

Each case runs in a process of its own, so that its peak memory can be measured. The snapshot is created before the
clock starts, because reading objects is done by the observer. In `brought`, Workspaces use pools of equal existing
nodes; in `distinct`, each node is selected by one Workspace; in `provisioned`, Workspaces have 3 nodes each, half of
which exist.
"""

import gc
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench.command import run_benchmark
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.model import Snapshot
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_claim, a_node, a_snapshot, a_workspace

MORE_LABELS = {f"example.com/label-{number}": "value" for number in range(15)}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def brought(nodes: int, workspaces: int) -> Snapshot:
    pools = max(1, nodes // 100)
    return a_snapshot(
        *(a_node(f"node-{n:05}", f"pool-{n % pools}", more_labels=MORE_LABELS) for n in range(nodes)),
        *(
            a_workspace(f"ws-{n:04}", selector={"pool": f"pool-{n % pools}"}, preset="phi-4-mini-instruct")
            for n in range(workspaces)
        ),
    )


def distinct(nodes: int, workspaces: int) -> Snapshot:
    return a_snapshot(
        *(a_node(f"node-{n:05}", f"pool-{n % workspaces}", more_labels=MORE_LABELS) for n in range(nodes)),
        *(a_workspace(f"ws-{n:04}", selector={"pool": f"pool-{n}"}, preset="phi-4") for n in range(workspaces)),
    )


def provisioned(nodes: int, workspaces: int) -> Snapshot:
    made = [a_workspace(f"ws-{n:04}", selector={}, instance_type=NC24, replicas=3) for n in range(workspaces)]
    return a_snapshot(
        *(a_node(f"node-{n:05}", instance_type=NC24, allocatable=1, more_labels=MORE_LABELS) for n in range(nodes)),
        *made,
        *(
            a_claim(f"claim-{n:05}", made[n % workspaces], ready=True, node=f"node-{n:05}")
            for n in range(min(nodes, 3 * workspaces // 2))
        ),
        nap=True,
    )


CASES: dict[str, Callable[[int, int], Snapshot]] = {
    "brought": brought,
    "distinct": distinct,
    "provisioned": provisioned,
}


def measure(case: str, nodes: int, workspaces: int, rounds: int) -> dict[str, float | int | str]:
    """Median milliseconds of each step, of the CPU time of both, and the peak memory of the process in MB."""
    snapshot = CASES[case](nodes, workspaces)
    gc.collect()
    gc.freeze()
    before = _peak_mb()
    validating, planning, cpu = [], [], []
    for _ in range(rounds):
        start_cpu = time.process_time()
        start = time.perf_counter()
        verdicts = validate(snapshot)
        middle = time.perf_counter()
        done = plan(snapshot, verdicts, NOW)
        validating.append(middle - start)
        planning.append(time.perf_counter() - middle)
        cpu.append(time.process_time() - start_cpu)
    return {
        "case": case,
        "nodes": nodes,
        "validate_ms": round(statistics.median(validating) * 1000, 1),
        "plan_ms": round(statistics.median(planning) * 1000, 1),
        "cpu_ms": round(statistics.median(cpu) * 1000, 1),
        "operations": len(done.creations) + len(done.updates) + len(done.deletions),
        "refused": len(done.refusals),
        "snapshot_mb": before,
        "peak_mb": _peak_mb(),
    }


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(
    nodes: Annotated[list[int], typer.Option(min=1, help="once for each case")] = [100, 1_000, 10_000],  # noqa: B006
    workspaces: Annotated[int, typer.Option(min=1)] = 1000,
    rounds: Annotated[int, typer.Option(min=1)] = 5,
    output: Output = Format.TEXT,
) -> None:
    """Time and memory of validating and planning."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        cases = [(case, number, workspaces, rounds) for case in CASES for number in nodes]
        rows = pool.starmap(measure, cases, chunksize=1)
    if output is Format.JSON:
        print_json(rows)
        return
    table = Table(*(name.replace("_", " ") for name in rows[0]), box=None)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    run_benchmark(main)
