"""Time of the GPU ledger: 5,000 nodes with 8 GPUs and 4 shares on each, built once, then updated.

    python -m bench.ledger [--nodes 5000] [--gpus 8] [--shares 4] [--rounds 5] [--output json]

`build` reads every pod; `pod` applies one changed pod and reads its node again; `snapshot` applies a whole snapshot in
which one pod changed. Each is compared with `build`, the work of a ledger that keeps nothing between changes. The pods
are created before the clock starts, because reading objects is done by the observer.
"""

import gc
import resource
import statistics
import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from bench.command import run_benchmark
from plimsoll.cli.shared import OUT, Format, Output, print_json
from plimsoll.cluster.ledger import GpuLedger
from plimsoll.model.cluster import Node, Pod
from tests.ledger.cluster import a_gpu_node, a_reservation, a_share


def main(
    nodes: Annotated[int, typer.Option(min=1)] = 5000,
    gpus: Annotated[int, typer.Option(min=1)] = 8,
    shares: Annotated[int, typer.Option(min=1, help="of each GPU")] = 4,
    rounds: Annotated[int, typer.Option(min=1)] = 5,
    output: Output = Format.TEXT,
) -> None:
    """Median seconds of each way to update the ledger, and how many of them take as long as a rebuild."""
    some_nodes = [a_gpu_node(f"node-{number:05}", gpus) for number in range(nodes)]
    pods = [pod for node in some_nodes for pod in _pods(node, gpus, shares)]
    gc.collect()
    gc.freeze()
    ledger = GpuLedger()

    def build() -> None:
        fresh = GpuLedger()
        fresh.update(some_nodes, pods)
        list(fresh.accounts())

    def pod() -> None:
        ledger.put_pod(pods[-1].model_copy())
        ledger.account(some_nodes[-1].name)

    def snapshot() -> None:
        pods[-1] = pods[-1].model_copy()
        ledger.update(some_nodes, pods)
        list(ledger.accounts())

    built = _median(build, rounds)
    ledger.update(some_nodes, pods)
    list(ledger.accounts())
    seconds = {"build": built, "pod": _median(pod, 20 * rounds), "snapshot": _median(snapshot, rounds)}
    free = sum(int(milli) for account in ledger.accounts() for milli in account.free_milli)
    figures = {
        "nodes": nodes,
        "pods": len(pods),
        "free_milli": free,
        "seconds": {name: round(each, 7) for name, each in seconds.items()},
        "rebuilds": {name: round(built / each, 1) for name, each in seconds.items()},
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if output is Format.JSON:
        print_json(figures)
        return
    table = Table(
        "", "seconds", "times faster than a rebuild", box=box.SIMPLE, title=f"{nodes} nodes, {len(pods)} pods"
    )
    for name, each in seconds.items():
        table.add_row(name, f"{each:.6f}", f"{built / each:.1f}")
    OUT.print(table)


def _pods(node: Node, gpus: int, shares: int) -> list[Pod]:
    """Each GPU of the node has a reservation and shares that leave a tenth of it free."""
    made = []
    for gpu in range(gpus):
        group = f"{node.name}-{gpu}"
        made.append(a_reservation(group, node.name))
        fraction = f"{0.9 / shares:.3f}"
        made += [a_share(f"{group}-{number}", node.name, group, fraction=fraction) for number in range(shares)]
    return made


def _median(work: Callable[[], None], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    run_benchmark(main)
