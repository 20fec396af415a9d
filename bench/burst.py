"""Creates many Workspaces at once, which need one NodeClaim each: seconds and requests, compared with a plain client.

    python -m bench.burst [--workspaces 1000] [--karpenter] [--shards 8] [--pre-started 1] [--output json]

A new sandbox gets the foundation's kinds and permissions, and an Environment with auto-provisioning. First a plain
client creates the NodeClaims one by one; these are removed again. Then `plimsoll run` runs with the controller's
account, and all Workspaces are created while it is idle. Time is measured from the first Workspace to the last
NodeClaim that a watch shows. Requests are counted by the apiserver's flow control, until the last NodeClaim and until
nothing more is written: statuses and events are included, watches and renewals of the Lease are not. Without
`--karpenter`, nothing handles the NodeClaims; with it, Karpenter and KWOK create nodes for both, and the time until all
are Ready is measured too.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import psutil
import typer
from kubernetes import client, config
from rich.console import Console
from rich.table import Table

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
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.labels import API_VERSION
from plimsoll.sandbox import Sandbox

TYPE = "Standard_NC24ads_A100_v4"
NODES = "/api/v1/nodes"
CREATORS = 8
PATIENCE_SECONDS = 300.0
"""Seconds without a further NodeClaim or Ready node after which the benchmark fails."""
COMPARED = 1000
"""Workspaces to which AIMS and KAITO apply; they are shown for no other number."""
AIMS = {"seconds": 30, "requests": 3000}
KAITO = {"secondsWithDefaultLimits": 139, "secondsUnlimited": 33, "requests": 8200}
"""Figures of KAITO's own controller on 2 cores."""

err = Console(stderr=True)


def main(
    workspaces: Annotated[int, typer.Option(min=1)] = COMPARED,
    karpenter: Annotated[bool, typer.Option("--karpenter", help="let Karpenter and KWOK make the nodes")] = False,
    shards: Annotated[int, typer.Option(min=1)] = 8,
    pre_started: Annotated[int, typer.Option(min=0)] = 1,
    settled: Annotated[float, typer.Option(min=1, help="seconds without a request that count as rest")] = 4.0,
    log: Annotated[Path | None, typer.Option(help="file for the loop's log")] = None,
    output: Output = Format.TEXT,
) -> None:
    """Creates many Workspaces at once, and compares the time and requests with those of a plain client."""
    with tempfile.TemporaryDirectory() as folder, a_cluster(karpenter=karpenter) as sandbox:
        err.print("a plain client", style="dim")
        plain = by_plain_client(sandbox, workspaces, nodes=karpenter)
        loop = run_command(Path(folder), "--shards", str(shards), "--pre-started", str(pre_started))
        with a_loop(loop, os.environ | sandbox.environ("controller"), log or Path(folder) / "loop.log") as process:
            ours = measure(sandbox, process, workspaces, settled, nodes=karpenter)
    result = {
        "workspaces": workspaces,
        "karpenter": karpenter,
        "plimsoll": ours,
        "plainClient": plain,
        "ratioToPlainClient": {name: round(ours[name] / plain[name], 2) for name in plain},
        **({"aims": AIMS, "kaito": KAITO} if workspaces == COMPARED else {}),
    }
    if output is Format.JSON:
        print_json(result)
    else:
        show(result)


@contextmanager
def a_cluster(*, karpenter: bool) -> Iterator[Sandbox]:
    """A sandbox that accepts NodeClaims, with the foundation and an Environment."""
    sandbox = Sandbox.named(f"burst-{os.getpid()}")
    sandbox.up(karpenter=karpenter, lws=False, stop_with_caller=True)
    try:
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            if not karpenter:
                define_karpenter(connection)
            install(connection, {"nodeAutoProvisioning": "enabled", "nodeClaims": {"nodeClassRef": NODE_CLASS}})
        yield sandbox
    finally:
        sandbox.down()


NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def a_claim(name: str) -> dict[str, Any]:
    """The NodeClaim of the plain client: what the engine declares, without labels."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"bench": "plain"}},
        "spec": {
            "nodeClassRef": NODE_CLASS,
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [TYPE]}],
            "resources": {"requests": {"nvidia.com/gpu": "1"}},
            "taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
        },
    }


def by_plain_client(sandbox: Sandbox, number: int, *, nodes: bool) -> dict[str, Any]:
    """Creates the same NodeClaims one by one with the official client, and removes them again. `nodes` also waits for
    their nodes."""
    configuration = client.Configuration()
    config.load_kube_config(str(sandbox.kubeconfig), client_configuration=configuration)
    api = client.CustomObjectsApi(client.ApiClient(configuration))
    ready = Appearances(sandbox, NODES, number, ready=True)
    if nodes:
        ready.start()
    began = time.monotonic()
    for position in range(number):
        api.create_cluster_custom_object("karpenter.sh", "v1", "nodeclaims", a_claim(f"plain-{position:04}"))
    found: dict[str, Any] = {"seconds": round(time.monotonic() - began, 2), "requests": number}
    if nodes:
        ready.wait()
        found["secondsToNodesReady"] = round(ready.times[-1] - began, 2)
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        connection.request("DELETE", NODE_CLAIMS, query={"labelSelector": "bench=plain"}, timeout=300)
        while connection.request("GET", NODE_CLAIMS, query={"limit": "1"})["items"]:
            time.sleep(0.5)
    return found


class Appearances(threading.Thread):
    """Watches a kind and records when each number of different objects was reached; `ready` counts Ready conditions
    instead.

    Objects that existed before are not counted.
    """

    def __init__(self, sandbox: Sandbox, path: str, number: int, *, ready: bool = False) -> None:
        super().__init__(daemon=True)
        self._connection = Connection.open(sandbox.kubeconfig)
        self._path, self._number, self._ready = path, number, ready
        listed = self._connection.request("GET", path, query={"limit": "1"})
        self._version = listed["metadata"]["resourceVersion"]
        self.seen: set[str] = set()
        self.times: list[float] = []
        self.reached = threading.Event()

    def run(self) -> None:
        query = {"watch": "true", "resourceVersion": self._version, "timeoutSeconds": "86400"}
        with self._connection.stream(self._path, query=query, read_timeout=86400.0) as response:
            rest = b""
            for chunk in response.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._take(orjson.loads(line)["object"])
                if self.reached.is_set():
                    break

    def wait(self, loop: psutil.Process | None = None) -> None:
        """Waits for all objects. Raises PlimsollError if no further one appears for long, or if the controller has
        ended."""
        began = time.monotonic()
        while not self.reached.wait(0.5):
            last = self.times[-1] if self.times else began
            ended = loop is not None and loop.status() == psutil.STATUS_ZOMBIE
            if ended or time.monotonic() - last > PATIENCE_SECONDS:
                raise PlimsollError(
                    f"{len(self.seen)} of {self._number} are there, and "
                    + ("the loop has ended." if ended else f"no further one came in {PATIENCE_SECONDS:g} s."),
                    "See the loop's log, which --log keeps.",
                )

    def _take(self, found: dict[str, Any]) -> None:
        name = found["metadata"]["name"]
        if name in self.seen or (self._ready and not is_ready(found)):
            return
        self.seen.add(name)
        self.times.append(time.monotonic())
        if len(self.seen) == self._number:
            self.reached.set()


def is_ready(found: dict[str, Any]) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def measure(sandbox: Sandbox, loop: psutil.Process, number: int, settled: float, *, nodes: bool) -> dict[str, Any]:
    """Creates this many Workspaces at once, and measures until the controller is idle again; `nodes` also waits for
    their nodes."""
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        before = settle(connection, loop, settled)
        claims = Appearances(sandbox, NODE_CLAIMS, number)
        claims.start()
        if nodes:
            ready = Appearances(sandbox, NODES, number, ready=True)
            ready.start()
        cpu = cpu_seconds(loop)
        err.print(f"{number} Workspaces", style="dim")
        began = time.monotonic()
        with ThreadPoolExecutor(CREATORS) as pool:
            list(pool.map(lambda position: create_workspace(connection, position), range(number)))
        created = time.monotonic()
        claims.wait(loop)
        at_last_claim = requests(connection)
        found: dict[str, Any] = {
            "seconds": round(claims.times[-1] - began, 2),
            "secondsToFirstClaim": round(claims.times[0] - began, 2),
            "secondsToHalf": round(claims.times[number // 2] - began, 2),
            "secondsToCreateWorkspaces": round(created - began, 2),
            "requestsToLastClaim": busy(at_last_claim) - busy(before),
        }
        if nodes:
            ready.wait(loop)
            found["secondsToNodesReady"] = round(ready.times[-1] - began, 2)
        peak = mib(loop)
        after = settle(connection, loop, settled)
        found["requests"] = busy(after) - busy(before)
        found["requestsByKind"] = {name.removeprefix("bench-"): after[name] - before[name] for name in after}
        found["cpuSeconds"] = round(cpu_seconds(loop) - cpu, 1)
        found["loopMiB"] = max(peak, mib(loop))
        items = connection.request("GET", NODE_CLAIMS, timeout=60)["items"]
        if len(items) != number:
            raise PlimsollError(f"There are {len(items)} NodeClaims for {number} Workspaces.")
        return found


def create_workspace(connection: Connection, position: int) -> None:
    workspace = {
        "apiVersion": API_VERSION,
        "kind": "Workspace",
        "metadata": {"name": f"ws-{position:04}", "namespace": "default"},
        "spec": {"resource": {"instanceType": TYPE}, "inference": {"preset": {"name": "phi-4-mini-instruct"}}},
    }
    connection.request("POST", f"{OURS}/namespaces/default/workspaces", workspace)


def show(result: dict[str, Any]) -> None:
    ours, plain, ratios = result["plimsoll"], result["plainClient"], result["ratioToPlainClient"]
    columns = ("measured", "Plimsoll", "plain client", "ratio", "aim", "KAITO")
    table = Table(*columns, box=None, header_style="bold")
    kaito = {"seconds": f"{KAITO['secondsWithDefaultLimits']} ({KAITO['secondsUnlimited']} without limits)"}
    kaito["requests"] = str(KAITO["requests"])
    aims = result.get("aims", {})
    for name, value in ours.items():
        others = (plain.get(name, ""), ratios.get(name, ""), aims.get(name, ""), kaito.get(name, "") if aims else "")
        table.add_row(name, str(value), *map(str, others))
    Console().print(table)


if __name__ == "__main__":
    run_benchmark(main)
