"""Demand of a large cluster: the time of a plan, memory, and the time of the next plan after one pod changed.

    python -m bench.scale [--nodes 10000] [--pods 100000] [--waiting 5000] [--classes 20] [--products 1] [--free 0]
                          [--queue-limit 0] [--changes 140] [--output json]

The cluster consists of values in memory: nodes of 8 GPUs with 10 pods each, most of them full; the waiting pods request
shares of the sizes in the openb trace. Options add several GPU products, a part of a GPU that is free on every node
(`--free`, in thousandths), and queues with a limit of this many GPUs in addition to those of running pods. `plan` is
the first plan of a new planner, `update` the plan of the same planner after one change: a pod is created, deleted or
bound, in the class that is planned first or in the one that is planned last, or a running pod ends. All changes are
made twice: before nodes are requested, and with the planned nodes requested, as in the controller. For the last state,
`gpusAfterUpdates` is the number of requested GPUs, `gpusWithoutRequests` the number that a planner would request if
nothing had been requested before, and `requestedAfterRestart` the number of further nodes that a restarted controller
would request, which must be 0. The aim for an update is 50 ms. Garbage is collected
as rarely as in the controller.
"""

import gc
import itertools
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from bench.command import grid, run_benchmark
from bench.large_cluster import PRODUCTS, Situation, a_cluster, queue_name, waiting_pod
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.garbage import collect_rarely
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.plan.demand import DemandPlan, DemandPlanner, RequestedNode
from plimsoll.plan.requests import NodeRequest

_AIM_MS = 50
_KINDS = ("one more waits", "one is gone", "one is bound")
_ENDS = "one that ran ends"


def changes(snapshot: Snapshot, situation: Situation, count: int, seed: int = 0) -> Iterator[tuple[str, Snapshot]]:
    """Snapshots that differ from the one before by one pod each."""
    pods = list(snapshot.pods)
    for number in range(count):
        kind = number % (2 * len(_KINDS) + 1)
        if kind == 2 * len(_KINDS):
            name = _ENDS
            pods.pop(_running(pods, number * 37))
        else:
            what, first = _KINDS[kind % len(_KINDS)], kind < len(_KINDS)
            name = f"{what}, {'first' if first else 'last'} class"
            of_class = 0 if first else situation.classes - 1
            _change(pods, what, of_class, (number + seed * count) * 50, snapshot, situation)
        snapshot = snapshot.model_copy(update={"pods": tuple[Pod, ...](pods)})
        yield name, snapshot


def _running(pods: list[Pod], start: int) -> int:
    """Index of the next running pod from `start`; from the beginning if there is none."""
    return next(at % len(pods) for at in range(start, start + len(pods)) if pods[at % len(pods)].node_name)


def _change(pods: list[Pod], what: str, of_class: int, number: int, snapshot: Snapshot, situation: Situation) -> None:
    """Adds, removes or binds one pod of a class."""
    if what == "one more waits":
        pods.append(waiting_pod(10_000_000 + number, of_class, situation.products))
        return
    waiting = (at for at in range(len(pods) - 1, -1, -1) if not pods[at].node_name)
    at = next((at for at in waiting if pods[at].labels["kai.scheduler/queue"] == queue_name(of_class)), None)
    if at is None:
        raise PlimsollError(f"No pod of {queue_name(of_class)} is left.", "Give more --waiting, or fewer --changes.")
    if what == "one is gone":
        pods.pop(at)
    else:
        node = snapshot.nodes[number % len(snapshot.nodes)]
        pods[at] = pods[at].model_copy(update={"node_name": node.name, "conditions": ()})


def main(
    nodes: Annotated[int, typer.Option(help="nodes with 8 GPUs", min=1)] = 10_000,
    pods: Annotated[int, typer.Option(help="pods in all", min=1)] = 100_000,
    waiting: Annotated[int, typer.Option(help="of them, pods that wait for shares")] = 5_000,
    classes: Annotated[int, typer.Option(help="classes of pods that wait", min=1)] = 20,
    products: Annotated[int, typer.Option(help="GPU products", min=1, max=len(PRODUCTS))] = 1,
    free: Annotated[int, typer.Option(help="thousandths that one GPU of every node has free", max=950)] = 0,
    queue_limit: Annotated[int, typer.Option(help="GPUs of a queue's limit above what runs; 0: no queues")] = 0,
    changed: Annotated[int, typer.Option("--changes", help="updates after a change of one pod, twice", min=1)] = 140,
    output: Output = Format.TEXT,
) -> None:
    """Demand of a large cluster: the time of a plan, memory, and the time of the next plan after one pod changed."""
    situation = Situation(classes, products, free, queue_limit)
    snapshot = a_cluster(nodes, pods, waiting, situation)
    collect_rarely()
    gc.collect()
    gc.freeze()
    before = _mb()
    planner = DemandPlanner()
    start = time.perf_counter()
    found = planner.plan(snapshot)
    plan = time.perf_counter() - start
    updates: dict[str, list[float]] = defaultdict(list)
    for name, changed_snapshot in changes(snapshot, situation, changed):
        seconds, _ = _timed(planner, changed_snapshot, [])
        updates[f"{name}, nothing requested"].append(seconds)
    requested = _requested([], planner.plan(changed_snapshot))
    planner.plan(changed_snapshot, requested)
    new_requests = 0
    start_of_second = changed_snapshot
    for name, changed_snapshot in changes(start_of_second, situation, changed, seed=1):
        seconds, last = _timed(planner, changed_snapshot, requested)
        updates[f"{name}, all on its way"].append(seconds)
        new_requests += len(last.nodes)
        requested = _requested(requested, last)
    again = DemandPlanner().plan(changed_snapshot, requested)
    without_requests = DemandPlanner().plan(changed_snapshot)
    row: dict[str, Any] = {
        "nodes": nodes,
        "pods": pods,
        "waiting": waiting,
        **asdict(situation),
        "gpus": found.gpus,
        "leastGpus": found.least_gpus,
        "planSeconds": round(plan, 3),
        "updateMs": {
            name: {"median": _ms(statistics.median(times)), "max": _ms(max(times)), "changes": len(times)}
            for name, times in updates.items()
        },
        "updateAimMs": _AIM_MS,
        "requestedByUpdates": new_requests,
        "gpusAfterUpdates": sum(each.gpus for each in requested),
        "gpusWithoutRequests": without_requests.gpus,
        "requestedAfterRestart": len(again.nodes),
        "snapshotMb": before,
        "peakMb": _mb(),
    }
    if output is Format.JSON:
        print_json(row)
        return
    table = grid({name: value for name, value in row.items() if name != "updateMs"})
    updates_table = Table("change", "median, ms", "at most, ms", title="The next plan", box=SIMPLE)
    for what, times in row["updateMs"].items():
        updates_table.add_row(what, str(times["median"]), str(times["max"]))
    Console().print(table, updates_table)


def _timed(planner: DemandPlanner, snapshot: Snapshot, requested: list[RequestedNode]) -> tuple[float, DemandPlan]:
    start = time.perf_counter()
    found = planner.plan(snapshot, requested)
    return time.perf_counter() - start, found


def _requested(requested: Iterable[RequestedNode], plan: DemandPlan) -> list[RequestedNode]:
    """The requested nodes after a provisioner has requested new nodes and withdrawn unneeded ones."""
    kept = [each for each in requested if each.name in plan.needed]
    taken = {each.name for each in kept}
    names = (name for number in itertools.count() if (name := f"trigger-{number}") not in taken)
    return kept + [NodeRequest.of(node).requested_node(next(names)) for node in plan.nodes]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    run_benchmark(main)
