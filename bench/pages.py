"""The time of a page of `plimsoll ui` after one of 10,000 nodes changed, beside that of the first page after a start.

    python -m bench.pages [--nodes 10000] [--pods 30000] [--waiting 500] [--changes 10] [--output json]

A page is requested from the server as a browser does, without the time that the browser takes to draw it. The first
page of a view computes all that the view shows. After a change, only what depends on the changed node is computed
again. Both are measured in one run, so their ratio does not depend on the machine.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final
from urllib.request import urlopen

import typer
from rich import box
from rich.table import Table

from bench.command import run_benchmark
from bench.large_cluster import Situation, a_cluster
from plimsoll.cli.shared import OUT, Format, Output, print_json
from plimsoll.cluster.pods import IndexedPods
from plimsoll.model import Snapshot
from plimsoll.ui import Feed, create_app, serve

VIEWS: Final = {"cluster": "", "queues": "queues", "workspaces": "workspaces", "demand": "demand", "plan": "plan"}


def main(
    nodes: Annotated[int, typer.Option(min=1)] = 10_000,
    pods: Annotated[int, typer.Option(min=0)] = 30_000,
    waiting: Annotated[int, typer.Option(min=0, help="how many of the pods wait")] = 500,
    changes: Annotated[int, typer.Option(min=1, help="of one node, for each view")] = 10,
    output: Output = Format.TEXT,
) -> None:
    """Seconds to the first page of each view, and the median after a change of one node."""
    snapshot = a_cluster(nodes, pods, waiting, Situation(products=3, queue_limit=100))
    figures = {}
    for view, path in VIEWS.items():
        with _pages(snapshot) as (feed, address):
            first = _seconds(address + path)
            after = statistics.median(_after_changes(feed, address + path, changes))
        figures[view] = {"first": round(first, 4), "changed": round(after, 4), "ratio": round(first / after, 1)}
    if output is Format.JSON:
        print_json({"nodes": nodes, "pods": pods, "seconds": figures})
        return
    table = Table("view", "first, s", "after a change, s", "times faster", box=box.SIMPLE, title=f"{nodes} nodes")
    for view, row in figures.items():
        table.add_row(view, f"{row['first']:.3f}", f"{row['changed']:.3f}", f"{row['ratio']:.1f}")
    OUT.print(table)


@contextmanager
def _pages(snapshot: Snapshot) -> Iterator[tuple[Feed, str]]:
    """A feed of the cluster and the address of its pages, of which nothing is computed yet."""
    feed = Feed(snapshot.model_copy(update={"pods": IndexedPods.of(snapshot.pods)}))
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        yield feed, address
        feed.close()


def _after_changes(feed: Feed, address: str, changes: int) -> Iterator[float]:
    for number in range(changes):
        nodes = list(feed.latest.nodes)
        at = number % len(nodes)
        nodes[at] = nodes[at].model_copy(update={"unschedulable": not nodes[at].unschedulable})
        feed.publish(feed.latest.model_copy(update={"nodes": tuple(nodes)}))
        yield _seconds(address)


def _seconds(address: str) -> float:
    began = time.perf_counter()
    with urlopen(address) as answer:
        answer.read()
    return time.perf_counter() - began


if __name__ == "__main__":
    run_benchmark(main)
