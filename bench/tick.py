"""A whole round of the controller in a large cluster, after one pod changed: from the stores to what is reported.

    python -m bench.tick [--nodes 10000] [--pods 100000] [--waiting 5000] [--workspaces 500] [--output json]

The cluster is generated as JSON lists, which the observer's own code reads: nodes of 8 GPUs with 10 pods each, pods
that wait for shares, a PodGroup for each pod, a tree of Queues, Workspaces with their nodes. The first rounds request
all missing capacity; then one pod at a time is created, bound and deleted, again and again. `total` is the whole round,
all that is done between a watch's event and the next wait: snapshot, validating, planning, rules, reports, metrics.
`cpu` is the part of it in which the thread ran, and the others are parts of that; `planner` is that of DemandPlanner.
No request is sent.
"""

import cProfile
import gc
import pstats
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from bench.command import grid, run_benchmark
from bench.large_cluster import waiting_manifest
from bench.stored_cluster import StoredCluster, a_stored_cluster, pod_group, stored_pod
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.garbage import collect_rarely
from plimsoll.loop import Expectations, with_claims
from plimsoll.model import Plan
from plimsoll.plan import Known, validate
from plimsoll.plan import plan as make_plan
from plimsoll.plan.demand import ClusterStates, DemandPlan, DemandPlanner
from plimsoll.plan.view import ClusterView
from plimsoll.policy import withhold
from plimsoll.report import Metrics, Reporter

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
SETTLED = 8
"""Number of rounds within which all missing capacity is requested and exists."""


class Rounds:
    """Runs rounds over one cluster, with the seconds of each part of the last one."""

    def __init__(self, cluster: StoredCluster) -> None:
        self.cluster = cluster
        self.parts: dict[str, float] = {}
        self._states = ClusterStates()
        self._planner = DemandPlanner(states=self._states)
        self._known = Known()
        self._plain = self._planner.plan
        self._planner.plan = self._timed  # type: ignore[method-assign]
        self._reporter = Reporter(cluster)
        self._metrics = Metrics()
        self._expectations = Expectations.of((), (), NOW)

    def run_round(self) -> Plan:
        """One round as that of the controller, without applying."""
        self.parts, start, cpu = {}, time.perf_counter(), time.thread_time()
        plan = self._run()
        self.parts |= {"total": time.perf_counter() - start, "cpu": time.thread_time() - cpu}
        return plan

    def _run(self) -> Plan:
        with self._part("snapshot"):
            snapshot = self.cluster.stores.snapshot()
        self._known.begin()
        view = ClusterView(snapshot, self._known)
        with self._part("expected"):
            self._expectations.met_by(snapshot, NOW)
        with self._part("validate"):
            verdicts = validate(view)
        with self._part("plan"):
            planned = make_plan(view, verdicts, NOW, self._planner)
        self.parts["plan"] -= self.parts["planner"]
        with self._part("rules"):
            plan = withhold(planned, snapshot, NOW)
        with self._part("report"):
            after = with_claims(snapshot, plan.creations, NOW)
            self._reporter.report(view if after is snapshot else ClusterView(after, self._known), plan, NOW)
        with self._part("metrics"):
            self._metrics.seen(snapshot, NOW, self._states.of(snapshot).accounts.values())
            self._metrics.planned(plan, 0.0, NOW)
        return plan

    def flush(self) -> None:
        """Returns when all reports are written."""
        self._reporter.flush()

    def close(self) -> None:
        self._reporter.close()

    def _timed(self, *args: Any, **named: Any) -> DemandPlan:
        with self._part("planner"):
            return self._plain(*args, **named)

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        start = time.thread_time()
        yield
        self.parts[name] = time.thread_time() - start


def settle(rounds: Rounds) -> float:
    """Runs rounds until nothing is left to do. Returns the seconds of the first."""
    seconds = 0.0
    for _ in range(SETTLED):
        plan = rounds.run_round()
        seconds = seconds or rounds.parts["total"]
        rounds.cluster.take(plan)
        rounds.flush()
        if not (plan.creations or plan.updates or plan.deletions or plan.signals):
            rounds.run_round()  # observes what the others reported, so that those that are measured do not
            rounds.flush()
            return seconds
    left = (*plan.creations, *plan.updates, *plan.deletions)
    raise PlimsollError(f"The plan does not settle in {SETTLED} rounds: {left[:1]}.")


def change(cluster: StoredCluster, number: int, classes: int) -> str:
    """Creates a pod, then binds it, then deletes it. Returns which of these."""
    of = number // 3
    manifest = stored_pod(waiting_manifest(10_000_000 + of, of % classes))
    name = manifest["metadata"]["name"]
    match number % 3:
        case 0:
            cluster.put("PodGroup", pod_group(name))
            cluster.put("Pod", manifest)
            return "one more waits"
        case 1:
            spec = {**manifest["spec"], "nodeName": "node-00000"}
            cluster.put("Pod", {**manifest, "spec": spec, "status": {"phase": "Running"}})
            return "one is bound"
        case _:
            cluster.delete("PodGroup", "team", f"pg-{name}")
            cluster.delete("Pod", "team", name)
            return "one is gone"


def main(
    nodes: Annotated[int, typer.Option(help="nodes with 8 GPUs", min=1)] = 10_000,
    pods: Annotated[int, typer.Option(help="pods in all", min=1)] = 100_000,
    waiting: Annotated[int, typer.Option(help="of them, pods that wait for shares")] = 5_000,
    classes: Annotated[int, typer.Option(help="classes of pods that wait", min=1)] = 20,
    workspaces: Annotated[int, typer.Option(help="Workspaces with a node or two each")] = 500,
    teams: Annotated[int, typer.Option(help="leaves of the tree of Queues", min=1)] = 24,
    changed: Annotated[int, typer.Option("--changes", help="rounds after a change of one pod", min=1)] = 12,
    profile: Annotated[Path | None, typer.Option(help="write a profile of the rounds here, and print it")] = None,
    output: Output = Format.TEXT,
) -> None:
    """A whole round of the controller in a large cluster, after one pod changed: from the stores to the reports."""
    collect_rarely()
    before = _mb()
    cluster = a_stored_cluster(nodes, pods, waiting, classes, workspaces, teams)
    gc.collect()
    stores_mb = _mb() - before
    rounds = Rounds(cluster)
    first = settle(rounds)
    profiler = cProfile.Profile(time.thread_time)
    found: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for number in range(changed):
        what = change(cluster, number, classes)
        if profile is not None:
            profiler.enable()
        plan = rounds.run_round()
        profiler.disable()
        found[what].append(dict(rounds.parts))
        cluster.take(plan)
        rounds.flush()
    rounds.close()
    row: dict[str, Any] = {
        "nodes": nodes,
        "pods": pods,
        "waiting": waiting,
        "queues": len(cluster.stores.queues.values()),
        "workspaces": workspaces,
        "triggers": sum(pod.namespace == "plimsoll-triggers" for pod in cluster.stores.pods.values()),
        "readSeconds": round(cluster.read_seconds, 1),
        "listMb": cluster.bytes_read // 2**20,
        "storesMb": stores_mb,
        "firstTickSeconds": round(first, 2),
        "peakMb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "ms": {what: _medians(parts) for what, parts in found.items()},
    }
    if output is Format.JSON:
        print_json(row)
    else:
        _print(row)
    if profile is not None:
        profiler.dump_stats(profile)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Median milliseconds of each part and of the whole round."""
    return {name: round(statistics.median(each[name] for each in rounds) * 1000, 1) for name in rounds[0]}


def _print(row: dict[str, Any]) -> None:
    table = grid({name: value for name, value in row.items() if name != "ms"})
    parts = Table("milliseconds", *row["ms"], box=SIMPLE)
    for part in next(iter(row["ms"].values())):
        parts.add_row(part, *(str(milliseconds[part]) for milliseconds in row["ms"].values()))
    Console().print(table, parts)


def _mb() -> int:
    """Current resident memory in MB."""
    return int(psutil.Process().memory_info().rss // 2**20)


if __name__ == "__main__":
    run_benchmark(main)
