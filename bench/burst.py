"""Many Workspaces at once to as many NodeClaims: seconds, requests, side by side with a plain client.

    python -m bench.burst [--workspaces 1000] [--karpenter] [--shards 8] [--armed 1] [--output json]

A sandbox of its own gets the foundation's kinds and rights and an Environment with auto-provisioning. First a plain
client writes the NodeClaims one by one; these are removed. Then `plimsoll run` works as the controller's account, and
all Workspaces are created while it is at rest. The clock runs from the first Workspace to the last NodeClaim that a
watch shows. Requests are the apiserver's own count, by its flow control, until the last NodeClaim and until nothing
more is written: statuses and events included, watches and the Lease's renewals not. Without `--karpenter` nobody acts
on the NodeClaims; with it Karpenter and KWOK make nodes for both, and the time until all are Ready is measured too.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson
import psutil
import yaml
from kubernetes import client, config
from rich.console import Console
from rich.table import Table

from bench.cluster import OURS, a_loop, apply, busy, cpu_seconds, install, mib, requests, run_command, settle
from plimsoll.kube import Connection
from plimsoll.labels import API_VERSION
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import part

TYPE = "Standard_NC24ads_A100_v4"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODES = "/api/v1/nodes"
CREATORS = 8
REST_SECONDS = 4.0
CLAIMS_SECONDS = 300.0
NODES_SECONDS = 1800.0
AIMS = {"seconds": 30, "requests": 3000}
KAITO = {"secondsWithDefaultLimits": 139, "secondsUnlimited": 33, "requests": 8200}
"""KAITO's own controller, 1,000 Workspaces, 2 cores."""

err = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspaces", type=int, default=1000)
    parser.add_argument("--karpenter", action="store_true", help="let Karpenter and KWOK make the nodes")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--armed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="file for the loop's log")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, a_cluster(karpenter=arguments.karpenter) as sandbox:
        log = arguments.log or Path(folder) / "loop.log"
        err.print("a plain client", style="dim")
        plain = by_plain_client(sandbox, arguments.workspaces, nodes=arguments.karpenter)
        command = run_command(Path(folder), "--shards", str(arguments.shards), "--armed", str(arguments.armed))
        with a_loop(command, os.environ | sandbox.environ("controller"), log) as process:
            ours = measure(sandbox, process, arguments)
    result = {
        "workspaces": arguments.workspaces,
        "karpenter": arguments.karpenter,
        "plimsoll": ours,
        "plainClient": plain,
        "ratioToPlainClient": {name: round(ours[name] / plain[name], 2) for name in plain},
        "aims": AIMS,
        "kaito": KAITO,
    }
    if arguments.output == "json":
        json.dump(result, sys.stdout, indent=2)
        print()
    else:
        show(result)


@contextmanager
def a_cluster(*, karpenter: bool) -> Iterator[Sandbox]:
    """A sandbox that takes NodeClaims, with the foundation and an Environment."""
    sandbox = Sandbox.named(f"burst-{os.getpid()}")
    sandbox.up(karpenter=karpenter, tied=True)
    try:
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            if not karpenter:
                for path in sorted((part("karpenter").cached / "crds/karpenter").glob("*.yaml")):
                    definition = yaml.safe_load(path.read_text())
                    apply(connection, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
            install(connection, {"nodeAutoProvisioning": "enabled", "nodeClaims": {"nodeClassRef": NODE_CLASS}})
        yield sandbox
    finally:
        sandbox.down()


NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def a_claim(name: str) -> dict[str, Any]:
    """What a plain client writes: as much as the engine declares, without its labels."""
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
    """The same NodeClaims, one by one, by the official client; they are removed again. `nodes` awaits theirs."""
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
        ready.wait(NODES_SECONDS)
        found["secondsToNodesReady"] = round(ready.times[-1] - began, 2)
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        connection.request("DELETE", CLAIMS, query={"labelSelector": "bench=plain"}, timeout=300)
        while connection.request("GET", CLAIMS, query={"limit": "1"})["items"]:
            time.sleep(0.5)
    return found


class Appearances(threading.Thread):
    """Follows a kind and notes when the so-manieth different object was there; `ready` counts conditions instead."""

    def __init__(self, sandbox: Sandbox, path: str, number: int, *, ready: bool = False) -> None:
        super().__init__(daemon=True)
        self._connection = Connection.open(sandbox.kubeconfig)
        self._path, self._number, self._ready = path, number, ready
        self.seen: set[str] = set()
        self.times: list[float] = []
        self.reached = threading.Event()

    def run(self) -> None:
        version = self._connection.request("GET", self._path)["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1800"}
        with self._connection.stream(self._path, query=query, read_timeout=1800.0) as response:
            rest = b""
            for chunk in response.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._take(orjson.loads(line)["object"])
                if self.reached.is_set():
                    break

    def wait(self, seconds: float, loop: psutil.Process | None = None) -> None:
        """Returns once all are there. Raises SystemExit where they do not come, or the loop has ended."""
        deadline = time.monotonic() + seconds
        while not self.reached.wait(0.5):
            if time.monotonic() > deadline or (loop is not None and loop.status() == psutil.STATUS_ZOMBIE):
                raise SystemExit(f"only {len(self.seen)} are there: see the loop's log (--log)")

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


def measure(sandbox: Sandbox, loop: psutil.Process, arguments: argparse.Namespace) -> dict[str, Any]:
    number = arguments.workspaces
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        before = settle(connection, loop, REST_SECONDS)
        claims = Appearances(sandbox, CLAIMS, number)
        nodes = Appearances(sandbox, NODES, number, ready=True)
        claims.start()
        if arguments.karpenter:
            nodes.start()
        time.sleep(1.0)
        cpu = cpu_seconds(loop)
        err.print(f"{number} Workspaces", style="dim")
        began = time.monotonic()
        with ThreadPoolExecutor(CREATORS) as pool:
            list(pool.map(lambda position: create_workspace(connection, position), range(number)))
        created = time.monotonic()
        claims.wait(CLAIMS_SECONDS, loop)
        at_last_claim = requests(connection)
        found: dict[str, Any] = {
            "seconds": round(claims.times[-1] - began, 2),
            "secondsToFirstClaim": round(claims.times[0] - began, 2),
            "secondsToHalf": round(claims.times[number // 2] - began, 2),
            "secondsToCreateWorkspaces": round(created - began, 2),
            "requestsToLastClaim": busy(at_last_claim) - busy(before),
        }
        if arguments.karpenter:
            nodes.wait(NODES_SECONDS, loop)
            found["secondsToNodesReady"] = round(nodes.times[-1] - began, 2)
        peak = mib(loop)
        after = settle(connection, loop, REST_SECONDS)
        found["requests"] = busy(after) - busy(before)
        found["requestsByKind"] = {name.removeprefix("bench-"): after[name] - before[name] for name in after}
        found["cpuSeconds"] = round(cpu_seconds(loop) - cpu, 1)
        found["loopMiB"] = max(peak, mib(loop))
        items = connection.request("GET", CLAIMS, timeout=60)["items"]
        if len(items) != number:
            raise SystemExit(f"{len(items)} NodeClaims for {number} Workspaces")
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
    for name, value in ours.items():
        others = (plain.get(name, ""), ratios.get(name, ""), AIMS.get(name, ""), kaito.get(name, ""))
        table.add_row(name, str(value), *map(str, others))
    Console().print(table)


if __name__ == "__main__":
    main()
