"""Pods without GPU requests in a large cluster: memory and time for each, and the time of the next plan after one was
added.

    python -m bench.plain_pods [--plain 100000] [--nodes 10000] [--pods 100000] [--waiting 5000] [--output json]

The plain pods are manifests as an apiserver lists them, ten for each node, two of them of DaemonSets, the others of
1,000 Deployments; a tenth requires other nodes than those of its own kind. They are read into the observer's store, in
addition to the cluster of `bench.scale`. `bytesEach` is the memory that the store uses for each after the list; the aim
is 110. `update` is the plan after one more of them on a node with GPUs; the aim is that of `bench.scale`. With
`--distinct`, no two of them have the same labels. With `--ruled`, one of the waiting pods has a rule about them.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.command import grid, run_benchmark
from bench.large_cluster import Situation, a_cluster, running_pods
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.labels import HOSTNAME
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import NodeRequirement, PodRule, PodSelector
from plimsoll.observe.cluster import PODS, PodStore
from plimsoll.packing import Relation
from plimsoll.plan.demand import DemandPlanner

_SIZES = ("50m", "100m", "250m", "500m", "1", "2")
_CHANGES = 9
_LISTED = 500


_DEPLOYMENTS = 1000


def manifests(count: int, nodes: int, *, distinct: bool = False) -> Iterator[dict[str, Any]]:
    """Manifests of running plain pods; `distinct`: each with labels of its own."""
    for number in range(count):
        node, kind = number % nodes, number // nodes
        daemon_set = f"agent-{kind}" if kind < 2 else ""
        owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon_set, "uid": "u", "controller": True}]
        app = daemon_set or f"web-{number if distinct else number % _DEPLOYMENTS}"
        labels = {"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": f"7c{app}"}
        term = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}}, "topologyKey": HOSTNAME}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        affinity = {"affinity": apart} if number % 10 == 9 else {}
        resources = {"requests": {"cpu": _SIZES[number % len(_SIZES)], "memory": "256Mi"}}
        yield {
            "metadata": {
                "name": f"{daemon_set or 'web'}-{number:06}-abcde",
                "namespace": "kube-system",
                "uid": f"0b0e1c5e-0000-4000-8000-{number:012}",
                "ownerReferences": owner if daemon_set else [],
                "labels": labels,
            },
            "spec": {
                "nodeName": f"node-{node:05}",
                "containers": [{"name": "main", "resources": resources}],
                **affinity,
            },
            "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
        }


def read(store: PodStore, raws: Iterable[dict[str, Any]]) -> float:
    """Seconds for reading, without parsing the JSON of responses."""
    entries, seconds, raws = store.empty(), 0.0, iter(raws)
    while piece := list(islice(raws, _LISTED)):
        start = time.perf_counter()
        for raw in piece:
            key, entry = store.read(raw)
            entries[key] = entry
        seconds += time.perf_counter() - start
    start = time.perf_counter()
    store.replace(entries)
    store.loads()
    return seconds + time.perf_counter() - start


def _with_rule(pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """The pods, of which one that waits must be on no node with pods of one Deployment."""
    one = next(pod for pod in pods if not pod.node_name)
    selector = PodSelector((NodeRequirement("app.kubernetes.io/name", "In", ("web-2",)),), None)
    rule = PodRule(Relation.APART, HOSTNAME, selector)
    return tuple(pod.model_copy(update={"rules": (rule,)}) if pod is one else pod for pod in pods)


def main(
    plain: Annotated[int, typer.Option(help="pods that ask for no GPU", min=1)] = 100_000,
    nodes: Annotated[int, typer.Option(help="nodes with 8 GPUs", min=1)] = 10_000,
    pods: Annotated[int, typer.Option(help="pods that ask for shares")] = 100_000,
    waiting: Annotated[int, typer.Option(help="of them, pods that wait")] = 5_000,
    distinct: Annotated[bool, typer.Option("--distinct", help="labels of their own for all pods without GPUs")] = False,
    ruled: Annotated[bool, typer.Option("--ruled", help="a waiting pod with a rule about them")] = False,
    output: Output = Format.TEXT,
) -> None:
    """Pods without GPU requests in a large cluster: memory and time for each, and the time of the next plan."""
    running_pods(pods, waiting)  # rejects invalid numbers before the slow part
    seconds = read(PodStore(PODS, lambda _: True), manifests(plain, nodes, distinct=distinct))
    gc.collect()
    tracemalloc.start()
    store = PodStore(PODS, lambda _: True)
    read(store, manifests(plain, nodes, distinct=distinct))
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    snapshot = a_cluster(nodes, pods, waiting, Situation())
    snapshot = snapshot.model_copy(
        update={"host_loads": store.loads(), "pods": _with_rule(snapshot.pods) if ruled else snapshot.pods}
    )
    gc.collect()
    gc.freeze()
    planner = DemandPlanner()
    start = time.perf_counter()
    planner.plan(snapshot)
    first = time.perf_counter() - start
    updates = []
    for raw in islice(manifests(plain + _CHANGES, nodes, distinct=distinct), plain, None):
        start = time.perf_counter()
        key, entry = store.read(raw)
        store.put(key, entry)
        snapshot = snapshot.model_copy(update={"host_loads": store.loads()})
        planner.plan(snapshot)
        updates.append(time.perf_counter() - start)
    row = {
        "plain": plain,
        "nodes": nodes,
        "bytesEach": round(held / plain, 1),
        "bytesAim": 110,
        "readMicrosecondsEach": round(seconds / plain * 1e6, 1),
        "planSeconds": round(first, 3),
        "updateMs": round(statistics.median(updates) * 1000, 1),
    }
    if output is Format.JSON:
        print_json(row)
        return
    Console().print(grid(row))


if __name__ == "__main__":
    run_benchmark(main)
