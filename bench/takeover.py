"""The takeover by a standby: from the kill of the active controller to a verdict of the other one.

    python -m bench.takeover [--times 5] [--lease-duration 4] [--output json]

Two controllers of one cluster share a backend. The active one is killed while an update is pre-started, and a Workspace
is created at once; then the killed one is started again, as the standby of the other. The Lease's duration is the lower
bound: until the last renewal is so old, the active controller may still be writing.
"""

import os
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console
from rich.table import Table

from bench.arrivals import WAIT_SECONDS, Arrivals
from bench.cluster import a_loop, engine_ages, install, run_command
from bench.command import run_benchmark
from bench.live_nodes import WORKSPACES, await_state, has_verdict
from bench.reaction import spread
from bench.rest import a_workspace
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.components import NAMESPACE
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.processes import hold_port, port_of

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/plimsoll"
ENGINE_SECONDS = 3.0
"""Age of an engine that has certainly read its state and taken its lock."""
err = Console(stderr=True)


def main(
    times: Annotated[int, typer.Option(min=1, help="kills")] = 5,
    lease_duration: Annotated[float, typer.Option(min=2, help="seconds")] = 4.0,
    output: Output = Format.TEXT,
) -> None:
    """The time from the kill of the active controller to a verdict of its standby."""
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), times, lease_duration)
    if output is Format.JSON:
        print_json(result)
        return
    table = Table("seconds", "p50", "p95", "most", title=f"Lease duration: {lease_duration:g} s", box=None)
    for name, figures in result["seconds"].items():
        table.add_row(name, *(f"{figures[key]:.2f}" for key in ("p50", "p95", "most")))
    Console().print(table)


def measure(folder: Path, times: int, duration: float) -> dict[str, Any]:
    """Figures of all kills, in seconds: the Lease and the first verdict after the Lease has expired, and the verdict
    after the kill."""
    sandbox = Sandbox.named(f"takeover-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        with closing(Connection.open(sandbox.kubeconfig)) as connection, ExitStack() as stack:
            install(connection, {})
            pair = Pair(stack, sandbox, folder, duration)
            verdicts = Arrivals(sandbox.kubeconfig, WORKSPACES, has_verdict)
            kills = []
            for number in range(times):
                err.print(f"kill {number + 1} of {times}", style="dim")
                kills.append(takeover(connection, pair, verdicts, number, duration))
    finally:
        sandbox.down()
    return {
        "leaseDuration": duration,
        "kills": times,
        "seconds": {
            "from expiry to the Lease": spread([each.lease for each in kills]),
            "from expiry to a verdict": spread([each.verdict for each in kills]),
            "from the kill to a verdict": spread([each.since_kill for each in kills]),
        },
    }


@dataclass(frozen=True)
class Takeover:
    """In seconds; `lease` and `verdict` since the Lease expired."""

    lease: float
    verdict: float
    since_kill: float


class Pair:
    """An active controller and its standby."""

    def __init__(self, stack: ExitStack, sandbox: Sandbox, folder: Path, duration: float) -> None:
        self._stack = stack
        self._environment = os.environ | sandbox.environ(user="controller")
        self._folder = folder
        times = (duration, 0.75 * duration, 0.25 * duration)
        names = ("--lease-duration", "--lease-renew-deadline", "--lease-retry-period")
        self._options = [text for name, seconds in zip(names, times, strict=True) for text in (name, str(seconds))]
        self._started = 0
        self.active, _ = self._start("Active")
        self._standby, self._standby_port = self._start("Standby")

    def await_pre_started(self) -> None:
        """Waits until the active controller has pre-started an update."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not any(age > ENGINE_SECONDS for age in engine_ages(self.active)):
            if time.monotonic() > deadline:
                raise PlimsollError(f"No update is pre-started after {WAIT_SECONDS:g} s.", "See the controller's log.")
            time.sleep(0.05)

    def swap(self) -> None:
        """After the end of the active controller: waits until the standby is active, and starts its standby."""
        await_state(self._standby, self._standby_port, lambda state: state == "Active")
        self.active = self._standby
        self._standby, self._standby_port = self._start("Standby")

    def _start(self, state: str) -> tuple[psutil.Process, int]:
        port = port_of(self._stack.enter_context(hold_port()))
        command = run_command(self._folder, "--health-probe-port", str(port), *self._options)
        log = self._folder / f"log-{self._started}"
        self._started += 1
        process = self._stack.enter_context(a_loop(command, self._environment, log))
        await_state(process, port, lambda found: found == state)
        return process, port


def takeover(connection: Connection, pair: Pair, verdicts: Arrivals, number: int, duration: float) -> Takeover:
    """Kills the active controller of a pair, and waits for the verdict of the other one on a new Workspace."""
    pair.await_pre_started()
    workspace = a_workspace(number)
    pair.active.kill()
    killed, killed_at = time.monotonic(), time.time()
    renewed = lease_time(connection, "renewTime")
    connection.request("POST", WORKSPACES, workspace)
    shown = verdicts.next(workspace["metadata"]["name"])
    if shown is None:
        raise PlimsollError(f"The standby gives no verdict within {WAIT_SECONDS:g} s.", "See its log.")
    since_kill = shown - killed
    expiry = renewed + duration
    taken = lease_time(connection, "acquireTime") - expiry
    pair.swap()
    return Takeover(taken, killed_at + since_kill - expiry, since_kill)


def lease_time(connection: Connection, field: str) -> float:
    """A time of the Lease, in seconds since the epoch."""
    return datetime.fromisoformat(connection.request("GET", LEASE)["spec"][field]).timestamp()


if __name__ == "__main__":
    run_benchmark(main)
