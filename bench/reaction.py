"""How soon a Workspace has its NodeClaim: from the request that creates the one to the event that shows the other.

    python -m bench.reaction [--times 20] [--output json]

On a sandbox where nobody acts on NodeClaims, so that the loop's own way is measured: at rest, an update armed; then
cold, every update started when it is needed; then, for the lower bound, a plain client that creates a NodeClaim itself.
Each creation waits until the one before has settled. Engine, provider and own time come from the loop's log.
"""

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
from rich.console import Console
from rich.table import Table

from demo.stage import Stage, declare
from plimsoll.errors import PlimsollError
from plimsoll.kube import APPLY_PATCH, Connection
from plimsoll.labels import API_VERSION
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import part
from plimsoll.stacks import make

NAMESPACE = "inference"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
WORKSPACES = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/workspaces"
REST_SECONDS = 6.0
"""An update ends 2 to 4 s after its delta, and the next one is armed a second later."""
WAIT_SECONDS = 60.0
err = Console(stderr=True)


class Arrivals:
    """Names of NodeClaims in the order in which a watch shows them, with the time of a monotonic clock."""

    def __init__(self, kubeconfig: Path) -> None:
        self.names: queue.Queue[tuple[str, float]] = queue.Queue()
        self._connection = Connection.open(kubeconfig)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        with suppress(PlimsollError), self._connection.stream(CLAIMS, query={"watch": "1"}, read_timeout=3600) as lines:
            pending = b""
            for chunk in lines.stream(None):
                now = time.monotonic()
                *events, pending = (pending + chunk).split(b"\n")
                for event in map(orjson.loads, events):
                    if event["type"] == "ADDED":
                        self.names.put((event["object"]["metadata"]["name"], now))

    def next(self, prefix: str) -> float:
        """When the next NodeClaim of that prefix was shown."""
        while True:
            name, at = self.names.get(timeout=WAIT_SECONDS)
            if name.startswith(prefix):
                return at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), arguments.times)
    if arguments.output == "json":
        json.dump(result, sys.stdout, indent=2)
        print()
        return
    columns = ("case", "p50", "p95", "most", "engine p50", "provider p50", "own review p50", "x plain client")
    table = Table(*columns, title="Workspace to NodeClaim, seconds", box=None)
    for name, figures in result.items():
        table.add_row(name, *(f"{figures[key]:.3f}" if key in figures else "" for key in KEYS))
    Console().print(table)


KEYS = ("p50", "p95", "most", "engine", "provider", "review", "ratio")


def measure(folder: Path, times: int) -> dict[str, dict[str, float]]:
    """Seconds of each case."""
    sandbox = Sandbox.named(f"reaction-{os.getpid()}")
    sandbox.up(karpenter=False, tied=True)
    try:
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            define_claims(connection)
            environs = {user: {**os.environ, **sandbox.environ(user)} for user in ("admin", "controller")}
            declare_nap(Stage(sandbox.name, make(folder / "project"), environs, folder / "log"))
            arrivals = Arrivals(sandbox.kubeconfig)
            result = {}
            for case, armed in (("armed", 1), ("cold", 0)):
                err.print(f"{case}: {times} Workspaces", style="dim")
                log = folder / f"{case}.log"
                with loop(environs["controller"], log, armed) as process:
                    await_rest(process, armed)
                    seconds = [workspace(connection, arrivals, process, f"{case}-{n}", armed) for n in range(times)]
                result[case] = {**spread(seconds), **parts(log, case)}
            seconds = [plain(connection, arrivals, f"plain-{number}") for number in range(times)]
            result["plain client"] = spread(seconds)
            for figures in result.values():
                figures["ratio"] = figures["p50"] / result["plain client"]["p50"]
            return result
    finally:
        sandbox.down()


def define_claims(connection: Connection) -> None:
    """Karpenter's kinds without Karpenter."""
    for path in sorted((part("karpenter").cached / "crds/karpenter").glob("*.yaml")):
        command = ["kubectl", "apply", "--server-side", "-f", str(path)]
        environment = {**os.environ, **Sandbox.named(f"reaction-{os.getpid()}").environ()}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        with suppress(PlimsollError):
            connection.request("GET", CLAIMS)
            return
        time.sleep(0.2)
    raise SystemExit("NodeClaims are not served")


def declare_nap(stage: Stage) -> None:
    """The sandbox's environment with auto-provisioning, without the Workspaces that it declares."""
    path = stage.project / "stacks" / "Pulumi.sandbox-nap.yaml"
    head, _, _ = path.read_text().partition("  plimsoll:workspaces:")
    path.write_text(head.replace("nodes: 20", "nodes: 1000").replace("gpus: 40", "gpus: 1000"))
    declare(stage, "sandbox-nap")


@contextmanager
def loop(environment: dict[str, str], log: Path, armed: int) -> Iterator[subprocess.Popen[bytes]]:
    """`plimsoll run`, stopped on leaving."""
    command = [sys.executable, "-m", "plimsoll", "run", "--armed", str(armed)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)


def await_rest(process: subprocess.Popen[bytes], armed: int) -> None:
    """Returns when as many engines as are armed have stood for a while, and no other runs."""
    deadline = time.monotonic() + WAIT_SECONDS
    rested = time.monotonic()
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the loop ended with {process.returncode}")
        engines = [each for each in psutil.Process(process.pid).children() if "pulumi" in each.name()]
        if len(engines) != armed or any(time.time() - each.create_time() < 2.0 for each in engines):
            rested = time.monotonic()
        elif time.monotonic() - rested > 1.0 + (0.0 if armed else REST_SECONDS / 2):
            return
        time.sleep(0.1)
    raise SystemExit("the loop does not come to rest")


def workspace(
    connection: Connection, arrivals: Arrivals, process: subprocess.Popen[bytes], name: str, armed: int
) -> float:
    """Seconds from the creation of a Workspace to its NodeClaim."""
    manifest = {
        "apiVersion": API_VERSION,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "queue": "inference",
            "resource": {"instanceType": "Standard_NC24ads_A100_v4"},
            "inference": {"preset": {"name": "phi-4-mini-instruct"}, "replicas": 1},
        },
    }
    await_rest(process, armed)
    started = time.monotonic()
    connection.request("POST", WORKSPACES, manifest)
    return arrivals.next(name) - started


def plain(connection: Connection, arrivals: Arrivals, name: str) -> float:
    """Seconds that a client takes that creates a NodeClaim itself."""
    manifest: dict[str, Any] = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
        },
    }
    started = time.monotonic()
    query = {"fieldManager": "bench", "force": "true"}
    connection.request("PATCH", f"{CLAIMS}/{name}", manifest, query=query, content_type=APPLY_PATCH)
    return arrivals.next(name) - started


def parts(log: Path, case: str) -> dict[str, float]:
    """Medians of what the loop says of its deltas that created NodeClaims."""
    timings = []
    for line in log.read_text().splitlines():
        with suppress(orjson.JSONDecodeError):
            entry = orjson.loads(line)
            if entry.get("event") == "delta applied" and any(case in each for each in entry.get("created", ())):
                timings += entry["timings"]
    return {key: statistics.median(each[key] for each in timings) for key in ("engine", "provider", "review")}


def spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))],
        "most": ordered[-1],
    }


if __name__ == "__main__":
    main()
