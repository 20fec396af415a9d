"""The controller in a cluster with many nodes: an apiserver, and KWOK, which renews the nodes' Leases.

    python -m bench.live_nodes [--nodes 10000] [--times 20] [--settled 15] [--seconds 60] [--output json]

Measures `plimsoll run` with the controller's account in a new sandbox: the time until its watches are synced and until
it holds the Lease; its memory, requests and CPU while idle; the time from a Workspace to its verdict over all nodes;
and the time from a Workspace to its NodeClaim. Nothing handles the NodeClaims, so only the controller is measured. Each
Workspace is created when the controller is idle again.
"""

import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console
from rich.table import Table

from bench.arrivals import WAIT_SECONDS, Arrivals
from bench.cluster import (
    NODE_CLAIMS,
    OURS,
    a_loop,
    busy,
    cpu_seconds,
    define_karpenter,
    install,
    mib,
    requests,
    run_command,
    settle,
)
from bench.command import run_benchmark
from bench.reaction import LAUNCH_SECONDS, spread
from bench.rest import a_workspace, default_nodes
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.kube import MERGE_PATCH, Connection
from plimsoll.sandbox import Sandbox, making_nodes
from plimsoll.sandbox.nodes import make_nodes, read_node_list
from plimsoll.sandbox.processes import LOOPBACK, hold_port, port_of

WORKSPACES = f"{OURS}/namespaces/default/workspaces"
NODES = 10_000
SYNC_SECONDS = 300.0
INSTANCE_TYPE = "Standard_NC24ads_A100_v4"
PROVISIONING = {
    "nodeAutoProvisioning": "enabled",
    "nodeClaims": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "launchDeadlineSeconds": LAUNCH_SECONDS,
        "registrationDeadlineSeconds": LAUNCH_SECONDS,
    },
    "limits": {"nodes": 100_000},
}
err = Console(stderr=True)


def main(
    nodes: Annotated[int, typer.Option(min=1, help="so many nodes with 8 GPUs")] = NODES,
    times: Annotated[int, typer.Option(min=1, help="Workspaces of each kind")] = 20,
    seconds: Annotated[float, typer.Option(min=0, help="how long the loop is looked at, at rest")] = 60.0,
    settled: Annotated[float, typer.Option(min=1, help="seconds without a request that count as rest")] = 15.0,
    output: Output = Format.TEXT,
) -> None:
    """The controller in a cluster with many nodes: sync, memory, idle load, verdicts and reactions."""
    with tempfile.TemporaryDirectory() as name, a_cluster(default_nodes(Path(name), nodes)) as (sandbox, made_in):
        result = {
            "nodes": nodes,
            "secondsToMakeNodes": made_in,
            **measure(sandbox, Path(name), times, seconds, settled),
        }
    if output is Format.JSON:
        print_json(result)
        return
    table = Table("measured", "value", box=None, header_style="bold")
    for measured, value in result.items():
        said = ", ".join(f"{key} {each:.3f}" for key, each in value.items()) if isinstance(value, dict) else str(value)
        table.add_row(measured, said)
    Console().print(table)


@contextmanager
def a_cluster(source: Path) -> Iterator[tuple[Sandbox, float]]:
    """A sandbox with the nodes of a list, Karpenter's kinds and the foundation, and the seconds that the nodes took."""
    listed = read_node_list(source)
    sandbox = Sandbox.named(f"live-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        began = time.monotonic()
        with making_nodes(err, len(listed)) as on_progress:
            make_nodes(sandbox.kubeconfig, listed, on_progress)
        made_in = round(time.monotonic() - began, 1)
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            define_karpenter(connection)
            install(connection, {})
        yield sandbox, made_in
    finally:
        sandbox.down()


def measure(sandbox: Sandbox, folder: Path, times: int, seconds: float, settled: float) -> dict[str, Any]:
    held = hold_port()
    port = port_of(held)
    environment = os.environ | sandbox.environ(user="controller")
    began = time.monotonic()
    with (
        closing(Connection.open(sandbox.kubeconfig)) as connection,
        a_loop(run_command(folder, "--health-probe-port", str(port)), environment, folder / "log") as loop,
    ):
        synced = await_state(loop, port, lambda standing: standing != "Syncing") - began
        active = await_state(loop, port, lambda standing: standing == "Active") - began
        settle(connection, loop, settled)
        before, cpu = requests(connection), cpu_seconds(loop)
        err.print(f"at rest for {seconds:g} s", style="dim")
        time.sleep(seconds)
        after, cpu = requests(connection), cpu_seconds(loop) - cpu
        at_rest = {
            "secondsToSync": round(synced, 2),
            "secondsToLease": round(active, 2),
            "seconds": seconds,
            "otherRequests": busy(after) - busy(before),
            "cpuSeconds": round(cpu, 2),
            "loopMiB": mib(loop),
        }
        err.print(f"{times} Workspaces to their verdicts", style="dim")
        shown = Arrivals(sandbox.kubeconfig, WORKSPACES, has_verdict)
        verdicts = []
        for number in range(times):
            verdicts.append(seconds_to(connection, shown, a_workspace(number)))
            settle(connection, loop, 1.0)
        apply_provisioning(connection)
        settle(connection, loop, settled)
        err.print(f"{times} Workspaces to their NodeClaims", style="dim")
        claimed = Arrivals(sandbox.kubeconfig, NODE_CLAIMS)
        reactions = []
        for number in range(times):
            reactions.append(seconds_to(connection, claimed, a_provisioned_workspace(number)))
            settle(connection, loop, 5.0)
        return at_rest | {"verdict": spread(verdicts), "reaction": spread(reactions), "loopMiBInTheEnd": mib(loop)}


def has_verdict(event: dict[str, Any]) -> bool:
    return bool((event["object"].get("status") or {}).get("conditions"))


def apply_provisioning(connection: Connection) -> None:
    connection.request("PATCH", f"{OURS}/environments/bench", {"spec": PROVISIONING}, content_type=MERGE_PATCH)


def a_provisioned_workspace(number: int) -> dict[str, Any]:
    inference = {"preset": {"name": "phi-4-mini-instruct"}, "replicas": 1}
    spec = {"resource": {"instanceType": INSTANCE_TYPE}, "inference": inference}
    made = a_workspace(number)
    return {**made, "metadata": {**made["metadata"], "name": f"claimed-{number}"}, "spec": spec}


def await_state(loop: psutil.Process, port: int, reached: Callable[[str], bool]) -> float:
    """The time of a monotonic clock when the controller reports a state that meets the condition. Raises PlimsollError
    if it does not."""
    deadline = time.monotonic() + SYNC_SECONDS
    while time.monotonic() < deadline and loop.status() != psutil.STATUS_ZOMBIE:
        with suppress(OSError), urllib.request.urlopen(f"http://{LOOPBACK}:{port}/healthz", timeout=5) as answer:
            if reached(json.load(answer)["state"]):
                return time.monotonic()
        time.sleep(0.02)
    raise PlimsollError(f"The controller is not active after {SYNC_SECONDS:g} s.", "See its log.")


def seconds_to(connection: Connection, shown: Arrivals, workspace: dict[str, Any]) -> float:
    """Seconds from the request that creates a Workspace to the event that shows its result."""
    name = workspace["metadata"]["name"]
    began = time.monotonic()
    connection.request("POST", WORKSPACES, workspace)
    at = shown.next(name)
    if at is None:
        status = connection.request("GET", f"{WORKSPACES}/{name}").get("status") or {}
        said = [f"{each['reason']}: {each['message']}" for each in status.get("conditions", ())]
        raise PlimsollError(
            f"Nothing is shown of Workspace {name} after {WAIT_SECONDS:g} s.", "\n  ".join(said) or None
        )
    return at - began


if __name__ == "__main__":
    run_benchmark(main)
