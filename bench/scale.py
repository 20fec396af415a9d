"""Demand of a large cluster: time to a plan, memory, and time to the next plan after one pod changed.

    python -m bench.scale [--nodes 10000] [--pods 100000] [--waiting 5000] [--classes 20] [--changes 10] [--output json]

The cluster is made, not read: nodes of 8 GPUs with 10 pods each, most of them full; the pods that wait ask for shares
as those of the openb trace do. `plan` is the first plan of a new planner; a change is one pod more, one less, or one
bound, and `update` the plan after it by the same planner. The aim for an update is 50 ms.
"""

import gc
import resource
import statistics
import time
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench.large_cluster import a_cluster, waiting_pod
from plimsoll.cli.output import Format, Output, print_json
from plimsoll.model.pod import Pod
from plimsoll.model.snapshot import Snapshot
from plimsoll.plan.demand_planning import DemandPlanner

_AIM_MS = 50


def changes(snapshot: Snapshot, classes: int, count: int) -> Iterator[tuple[str, Snapshot]]:
    """Snapshots that each differ from the one before by one pod."""
    pods = list(snapshot.pods)
    for number in range(count):
        match number % 3:
            case 0:
                what = "one more waits"
                pods.append(waiting_pod(10_000_000 + number, number % classes))
            case 1:
                what = "one is gone"
                pods.pop(next(at for at in range(len(pods) - 1, -1, -1) if not pods[at].node_name))
            case _:
                what = "one is bound"
                at = next(at for at in range(len(pods) - 1, -1, -1) if not pods[at].node_name)
                pods[at] = pods[at].model_copy(update={"node_name": snapshot.nodes[number].name, "conditions": ()})
        snapshot = snapshot.model_copy(update={"pods": tuple[Pod, ...](pods)})
        yield what, snapshot


def main(
    nodes: Annotated[int, typer.Option(help="nodes with 8 GPUs")] = 10_000,
    pods: Annotated[int, typer.Option(help="pods in all")] = 100_000,
    waiting: Annotated[int, typer.Option(help="of them, pods that wait for shares")] = 5_000,
    classes: Annotated[int, typer.Option(help="classes of pods that wait")] = 20,
    changed: Annotated[int, typer.Option("--changes", help="updates after a change of one pod")] = 12,
    output: Output = Format.TEXT,
) -> None:
    """Demand of a large cluster: time to a plan, memory, and time to the next plan after one pod changed."""
    snapshot = a_cluster(nodes, pods, waiting, classes)
    gc.collect()
    gc.freeze()
    before = _mb()
    planner = DemandPlanner(clock=time.perf_counter)
    start = time.perf_counter()
    found = planner.demands(snapshot)
    plan = time.perf_counter() - start
    updates: dict[str, list[float]] = {}
    for what, changed_snapshot in changes(snapshot, classes, changed):
        start = time.perf_counter()
        planner.demands(changed_snapshot)
        updates.setdefault(what, []).append(time.perf_counter() - start)
    row = {
        "nodes": nodes,
        "pods": pods,
        "waiting": waiting,
        "classes": classes,
        "gpus": sum(each.gpus for each in found),
        "leastGpus": sum(each.packing.least for each in found),
        "planSeconds": round(plan, 3),
        "updateMs": {what: round(statistics.median(times) * 1000, 1) for what, times in updates.items()},
        "updateAimMs": _AIM_MS,
        "snapshotMb": before,
        "peakMb": _mb(),
    }
    if output is Format.JSON:
        print_json(row)
        return
    table = Table(*(name for name in row if name != "updateMs"))
    table.add_row(*(str(value) for name, value in row.items() if name != "updateMs"))
    Console().print(table)
    for what, milliseconds in row["updateMs"].items():  # type: ignore[attr-defined]
        Console().print(f"{what}: {milliseconds} ms to the next plan, aim {_AIM_MS} ms")


def _mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    typer.run(main)
