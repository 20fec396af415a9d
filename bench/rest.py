"""What the loop costs at rest: requests other than watches and the Lease, CPU, memory.

    python -m bench.rest [--nodes 1213] [--nodes-from CSV] [--seconds 60] [--only observer] [--output json]

A sandbox of its own gets the nodes, the kinds and rights of the foundation, an Environment and ten Workspaces; then
`plimsoll run` works as the controller's account, and once it has settled it is left alone. Requests are the
apiserver's own count, by its flow control. `--only observer` runs the watches, validation and status alone, without
engines; `--command` runs something else.
"""

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from bench.cluster import OURS, a_loop, apply, busy, install, mib, requests, run_command, settle
from plimsoll.kube import Connection
from plimsoll.labels import API_VERSION
from plimsoll.sandbox import Sandbox, node_list, nodes

OPENB = Path(__file__).parents[2] / "shared" / "data" / "openb" / "openb_node_list_gpu_node.csv"
WORKSPACES = 10
SETTLE_SECONDS = 15.0
AIMS = {"otherRequests": 0, "loopMiB": 250, "engineMiB": 150}

err = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1213, help="how many nodes, where no list is given")
    parser.add_argument("--nodes-from", type=Path, default=OPENB if OPENB.is_file() else None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=["observer"], help="a part of the loop")
    parser.add_argument("--command", help="what to run instead of `plimsoll run`")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    parser.add_argument("--as-observer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_observer:
        observe()
        return
    with tempfile.TemporaryDirectory() as folder, a_cluster(arguments, Path(folder)) as sandbox:
        environment = os.environ | sandbox.environ(user="controller")
        with a_loop(command_of(arguments, Path(folder)), environment) as process:
            result = measure(sandbox, process, arguments.seconds)
    if arguments.output == "json":
        json.dump(result, sys.stdout, indent=2)
        print()
    else:
        table = Table("measured", "value", "aim", box=None, header_style="bold")
        for name, value in result.items():
            table.add_row(name, str(value), str(AIMS.get(name, "")))
        Console().print(table)


@contextmanager
def a_cluster(arguments: argparse.Namespace, folder: Path) -> Iterator[Sandbox]:
    sandbox = Sandbox.named(f"rest-{os.getpid()}")
    source = arguments.nodes_from
    if source is None:
        source = folder / "nodes.csv"
        rows = [f"node-{number},64000,262144,8,V100M32" for number in range(arguments.nodes)]
        source.write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *rows]))
    sandbox.up(karpenter=False, tied=True)
    try:
        listed = node_list.read(source)
        err.print(f"making {len(listed)} nodes", style="dim")
        nodes.make(sandbox.kubeconfig, listed)
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


def command_of(arguments: argparse.Namespace, folder: Path) -> list[str]:
    if arguments.command:
        return shlex.split(arguments.command)
    if arguments.only == "observer":
        return [sys.executable, "-m", "bench.rest", "--as-observer"]
    return run_command(folder)


def observe() -> None:
    """The loop without the applier."""
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


def measure(sandbox: Sandbox, loop: psutil.Process, seconds: float) -> dict[str, Any]:
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        settled = settle(connection, loop, SETTLE_SECONDS)
        err.print(f"at rest for {seconds:g} s", style="dim")
        engines = loop.children(recursive=True)
        before, loop_cpu = requests(connection), cpu_seconds([loop])
        engine_cpu = cpu_seconds(engines)
        time.sleep(seconds)
        after = requests(connection)
        return {
            "nodes": len(connection.request("GET", "/api/v1/nodes", timeout=60)["items"]),
            "seconds": seconds,
            "otherRequests": busy(after) - busy(before),
            "watchRequests": after["bench-watches"] - before["bench-watches"],
            "leaseRequests": after["bench-lease"] - before["bench-lease"],
            "requestsUntilRest": busy(settled),
            "loopCpuSeconds": round(cpu_seconds([loop]) - loop_cpu, 3),
            "enginesCpuSeconds": round(cpu_seconds(engines) - engine_cpu, 3),
            "loopMiB": mib(loop),
            "engineMiB": max((mib(each) for each in engines), default=0),
            "engines": {f"{each.pid} {each.name()}": mib(each) for each in engines},
        }


def cpu_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes if each.is_running())


if __name__ == "__main__":
    main()
