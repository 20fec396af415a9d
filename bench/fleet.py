"""The load of one more cluster on the backend of all clusters: requests, bytes and seconds.

    python -m bench.fleet [--clusters 3] [--deltas 3] [--others 50] [--seconds 60] [--output json]

Each cluster is a sandbox where nothing handles NodeClaims. All clusters have their states in one S3 bucket (moto),
which counts requests. One after the other, their controllers start and apply some Plans of one Workspace each, while
the other controllers are idle; then all are idle. `--others` first adds the states of this many further clusters, as
copies of the first one's, to show which figures grow with the number of clusters.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench.bucket import CREDENTIALS, NAME, Bucket, Traffic, a_bucket, as_figures
from bench.burst import NODE_CLASS, create_workspace
from bench.cluster import CLI, NODE_CLAIMS, a_loop, define_karpenter, install
from bench.command import run_benchmark
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.sandbox import Sandbox

QUIET_SECONDS = 6.0
"""Seconds without a request to the bucket after which a controller counts as idle: an update ends, and the next one is
pre-started, within this time."""
WAIT_SECONDS = 180.0
err = Console(stderr=True)


def main(
    clusters: Annotated[int, typer.Option(min=1)] = 3,
    deltas: Annotated[int, typer.Option(min=1, help="for each cluster")] = 3,
    others: Annotated[int, typer.Option(min=0, help="clusters of which only the states are there")] = 0,
    seconds: Annotated[float, typer.Option(min=0, help="how long all are looked at, at rest")] = 60.0,
    output: Output = Format.TEXT,
) -> None:
    """The load of one more cluster on the backend of all clusters."""
    if others and clusters == 1:
        raise PlimsollError(
            "--others has no effect with --clusters 1: the copies are made before the second cluster starts",
            "set --clusters to at least 2, or remove --others",
        )
    with tempfile.TemporaryDirectory() as folder, a_bucket() as bucket:
        result = measure(Path(folder), bucket, clusters, deltas, others, seconds)
    if output is Format.JSON:
        print_json(result)
    else:
        show(result)


def measure(folder: Path, bucket: Bucket, clusters: int, deltas: int, others: int, seconds: float) -> dict[str, Any]:
    """Figures of each cluster, in the order of their start, and of all while idle."""
    with ExitStack() as stack:
        found = []
        for number in range(clusters):
            if number == 1:
                copy_states(bucket, others)
            err.print(f"cluster {number}", style="dim")
            sandbox = stack.enter_context(a_cluster(number))
            found.append(one_more(stack, sandbox, folder / str(number), bucket, deltas))
        err.print(f"all at rest for {seconds:g} s", style="dim")
        before = bucket.traffic()
        time.sleep(seconds)
        return {
            "clusters": found,
            "others": others,
            "atRest": {"seconds": seconds, **as_figures(bucket.traffic() - before)},
            "stored": {"objects": len(bucket.objects()), "bytes": sum(bucket.objects().values())},
        }


@contextmanager
def a_cluster(number: int) -> Iterator[Sandbox]:
    """A sandbox that accepts NodeClaims, with the foundation and an Environment of its own name."""
    sandbox = Sandbox.named(f"fleet-{number}-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            define_karpenter(connection)
            spec = {"nodeAutoProvisioning": "enabled", "nodeClaims": {"nodeClassRef": NODE_CLASS}}
            install(connection, spec, name=f"prod-{number}")
        yield sandbox
    finally:
        sandbox.down()


def one_more(stack: ExitStack, sandbox: Sandbox, folder: Path, bucket: Bucket, deltas: int) -> dict[str, Any]:
    """Starts the controller of one cluster, and measures the bucket's traffic until it is idle, and for each Plan.

    The controller runs until `stack` is left.
    """
    folder.mkdir()
    (folder / "passphrase").write_text("bench")
    where = ["--backend", bucket.url, "--passphrase-file", str(folder / "passphrase"), "--work-folder", str(folder)]
    environment = {**os.environ, **sandbox.environ("controller"), **CREDENTIALS}
    connection = stack.enter_context(closing(Connection.open(sandbox.kubeconfig)))
    stored = sum(bucket.objects().values())

    def start() -> None:
        command = [*CLI, "run", *where]
        stack.enter_context(a_loop(command, environment, folder / "log"))
        # Waits for the end of this controller's traffic.
        wait(lambda: bucket.traffic().total > idle, folder / "log")

    def delta(number: int) -> None:
        create_workspace(connection, number)
        wait(lambda: claims(connection) > number, folder / "log")

    idle = bucket.traffic().total
    started = moved(bucket, start)
    each = [moved(bucket, lambda number=number: delta(number)) for number in range(deltas)]  # type: ignore[misc]
    return {"start": started, "deltas": each, "storedBytes": sum(bucket.objects().values()) - stored}


def moved(bucket: Bucket, act: Callable[[], None]) -> dict[str, Any]:
    """The traffic that an action causes until the bucket is idle again; `seconds` are those of the action."""
    before, began = bucket.traffic(), time.monotonic()
    act()
    seconds = time.monotonic() - began
    last, since = bucket.traffic(), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.2)
        if (now := bucket.traffic()).total != last.total:
            last, since = now, time.monotonic()
    return {"seconds": round(seconds, 2), **as_figures(last - before)}


def claims(connection: Connection) -> int:
    return len(connection.request("GET", NODE_CLAIMS)["items"])


def wait(done: Callable[[], bool], log: Path) -> None:
    """Waits for a condition. Raises PlimsollError, with the end of the controller's log, after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise PlimsollError(f"Nothing came in {WAIT_SECONDS:g} s: {log.read_text()[-2000:]}")
        time.sleep(0.05)


def copy_states(bucket: Bucket, number: int) -> None:
    """Copies the states of the first cluster for this many other clusters, with their names."""
    listed = [key for key in bucket.objects() if "/stacks/" in key and "capacity-prod-0-" in key]
    for other in range(number):
        for key in listed:
            target = key.replace("capacity-prod-0-", f"capacity-other-{other}-")
            bucket.client.copy_object(Bucket=NAME, Key=target, CopySource={"Bucket": NAME, "Key": key})


def show(result: dict[str, Any]) -> None:
    kinds = list(as_figures(Traffic()))
    table = Table(
        "measured", "seconds", "requests", "reads", "lists", "writes", "deletes", "written", "read",
        title="One more cluster, on the backend of all", box=None,
    )  # fmt: skip
    for number, figures in enumerate(result["clusters"]):
        rows = {"start": figures["start"], **{f"delta {at}": each for at, each in enumerate(figures["deltas"])}}
        for name, row in rows.items():
            table.add_row(f"cluster {number}, {name}", f"{row['seconds']:g}", *(f"{row[kind]:,}" for kind in kinds))
    rest = result["atRest"]
    table.add_row("all at rest", f"{rest['seconds']:g}", *(f"{rest[kind]:,}" for kind in kinds))
    Console().print(table)
    stored = result["stored"]
    Console().print(f"stored: {stored['objects']:,} objects, {stored['bytes']:,} bytes")


if __name__ == "__main__":
    run_benchmark(main)
