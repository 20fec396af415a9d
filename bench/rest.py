"""The load of the idle controller: requests without watches and the Lease, CPU and memory.

    python -m bench.rest [--nodes-from CSV | --nodes 1213] [--settled 15] [--seconds 60] [--only observer]
                         [--output json]

A new sandbox gets the nodes, the kinds and permissions of the foundation, an Environment and ten Workspaces. Then
`plimsoll run` runs with the controller's account, and is measured after it has settled. Requests are counted by the
apiserver's flow control. `--only observer` runs the watches, validation and status alone, without engines; `--command`
runs another command.
"""

import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console
from rich.table import Table

from bench.cluster import (
    OURS,
    a_loop,
    apply,
    busy,
    cpu_seconds,
    install,
    mib,
    own_cpu_seconds,
    requests,
    run_command,
    settle,
)
from bench.command import run_benchmark
from bench.trace import DEFAULT_NODES, TRACES
from plimsoll.cli.shared import Format, Output, only_without, print_json
from plimsoll.kube import Connection
from plimsoll.labels import API_VERSION
from plimsoll.sandbox import Sandbox, making_nodes
from plimsoll.sandbox.nodes import make_nodes, read_node_list

NODES = 1213
"""The number of nodes of openb's cluster."""
WORKSPACES = 10
AIMS = {"otherRequests": 0, "loopMiB": 250, "engineMiB": 150}

err = Console(stderr=True)


class Part(StrEnum):
    OBSERVER = "observer"


def main(
    ctx: typer.Context,
    nodes: Annotated[int | None, typer.Option(min=1, help="so many nodes with 8 GPUs")] = None,
    nodes_from: Annotated[Path | None, typer.Option(help="CSV file of nodes; openb's, where it lies there")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="how long the loop is looked at")] = 60.0,
    settled: Annotated[float, typer.Option(min=1, help="seconds without a request that count as rest")] = 15.0,
    only: Annotated[Part | None, typer.Option(help="a part of the loop")] = None,
    instead: Annotated[str | None, typer.Option("--command", help="what to run instead of `plimsoll run`")] = None,
    output: Output = Format.TEXT,
    as_observer: Annotated[bool, typer.Option("--as-observer", hidden=True)] = False,
) -> None:
    """The load of the idle controller: requests without watches and the Lease, CPU and memory."""
    if as_observer:
        observe()
        return
    only_without(ctx, "nodes_from", "nodes")
    only_without(ctx, "instead", "only")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with a_cluster(nodes_from or default_nodes(folder, nodes)) as sandbox:
            environment = os.environ | sandbox.environ(user="controller")
            with a_loop(command_of(folder, only, instead), environment) as process:
                result = measure(sandbox, process, settled, seconds)
    if output is Format.JSON:
        print_json(result)
        return
    table = Table("measured", "value", "aim", box=None, header_style="bold")
    for measured, value in result.items():
        table.add_row(measured, str(value), str(AIMS.get(measured, "")))
    Console().print(table)


def default_nodes(folder: Path, number: int | None) -> Path:
    """The node list of openb. If it is missing or a number is given, a list of this many nodes with eight GPUs each."""
    openb, path = TRACES / DEFAULT_NODES, folder / "nodes.csv"
    if number is None and openb.is_file():
        return openb
    rows = [f"node-{each},64000,262144,8,V100M32" for each in range(number or NODES)]
    path.write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *rows]))
    return path


@contextmanager
def a_cluster(source: Path) -> Iterator[Sandbox]:
    """A sandbox with the nodes of a list, the foundation, an Environment and Workspaces."""
    listed = read_node_list(source)
    sandbox = Sandbox.named(f"rest-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        with making_nodes(err, len(listed)) as on_progress:
            make_nodes(sandbox.kubeconfig, listed, on_progress)
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            install(connection, {})
            for number in range(WORKSPACES):
                apply(connection, f"{OURS}/namespaces/default/workspaces", a_workspace(number))
        yield sandbox
    finally:
        sandbox.down()


def a_workspace(number: int) -> dict[str, Any]:
    selector = {"matchLabels": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}}
    return {
        "apiVersion": API_VERSION,
        "kind": "Workspace",
        "metadata": {"name": f"ws-{number}", "namespace": "default"},
        "spec": {"resource": {"labelSelector": selector}},
    }


def command_of(folder: Path, only: Part | None, instead: str | None) -> list[str]:
    if instead:
        return shlex.split(instead)
    if only is Part.OBSERVER:
        return [sys.executable, "-m", "bench.rest", "--as-observer"]
    return run_command(folder)


def observe() -> None:
    """The controller without the applier."""
    from datetime import UTC, datetime

    from plimsoll.model import Plan
    from plimsoll.observe.cluster import open_observer
    from plimsoll.plan import validate
    from plimsoll.report import Reporter

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open_observer(None, None) as (connection, observer):
        reporter = Reporter(connection)
        while True:
            snapshot = observer.snapshot()
            reporter.report(snapshot, Plan(verdicts=validate(snapshot)), datetime.now(UTC))
            observer.wait(0.02, 1.0, 30.0)


def measure(sandbox: Sandbox, loop: psutil.Process, settled: float, seconds: float) -> dict[str, Any]:
    """Measures the controller for this many seconds, after it has made no request for `settled` seconds."""
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        until_rest = settle(connection, loop, settled)
        err.print(f"at rest for {seconds:g} s", style="dim")
        before, loop_cpu, cpu = requests(connection), own_cpu_seconds(loop), cpu_seconds(loop)
        time.sleep(seconds)
        after, loop_cpu, cpu = requests(connection), own_cpu_seconds(loop) - loop_cpu, cpu_seconds(loop) - cpu
        engines = engines_mib(loop)
        return {
            "nodes": len(connection.request("GET", "/api/v1/nodes", timeout=60)["items"]),
            "seconds": seconds,
            "otherRequests": busy(after) - busy(before),
            "watchRequests": after["bench-watches"] - before["bench-watches"],
            "leaseRequests": after["bench-lease"] - before["bench-lease"],
            "requestsUntilRest": busy(until_rest),
            "loopCpuSeconds": round(loop_cpu, 3),
            "enginesCpuSeconds": round(cpu - loop_cpu, 3),
            "loopMiB": mib(loop),
            "engineMiB": max(engines.values(), default=0),
            "engines": engines,
        }


def engines_mib(loop: psutil.Process) -> dict[str, int]:
    """Memory of each running process that the controller has started."""
    found = {}
    for each in loop.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found[f"{each.pid} {each.name()}"] = mib(each)
    return found


if __name__ == "__main__":
    run_benchmark(main)
