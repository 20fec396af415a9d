"""A burst of share pods to the last trigger that asks for their GPUs: seconds, rounds, GPUs, requests.

    python -m bench.rounds PODS.csv [--pods 100 1000 3078] [--type p5.48xlarge] [--shards 4] [--armed 1] [--output json]

PODS.csv is a trace of the openb family, such as its default one. Its first shares are created in a sandbox of its own
and marked unschedulable while demand is only reported; then the Environment's provisioner becomes `trigger-pod`. The
clock runs from there until every planned node is asked for by an armed trigger. Requests are the apiserver's own count,
watches and the Lease's renewals aside. Nobody makes nodes: what is measured is the asking. Beside it stands KAI's
node-scale-adjuster, measured on 2 cores on the same pods with nodes taken as instant.

`--type` names the one instance type of the NodePool, of those that Plimsoll knows: its GPUs, CPU and memory make the
number of nodes, and so of triggers and requests. The default has 8 GPUs and 192 CPUs.

Where the seconds go is the loop's own word (`delta applied` in its log): planning; waiting for the end of the burst;
engines, until the last stack that takes part has one; objects, from there to the last confirmed creation, whose
triggers are armed meanwhile; signals, the arming that is left then. The rest is the watches' and this program's looks.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psutil
import yaml
from rich.console import Console
from rich.table import Table

from bench.cluster import OURS, a_loop, apply, busy, cpu_seconds, install, mib, requests, run_command, settle
from bench.trace import TracePod, read_pods
from plimsoll.kube import MERGE_PATCH, Connection
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api import TRIGGER_NAMESPACE
from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.parts import part

PODS: Final = "/api/v1/namespaces/default/pods"
TRIGGERS: Final = f"/api/v1/namespaces/{TRIGGER_NAMESPACE}/pods"
TYPE: Final = "p5.48xlarge"
PARTS: Final = ("planning", "waiting", "engines", "objects", "signals")
CREATORS: Final = 16
REST_SECONDS: Final = 3.0
PATIENCE_SECONDS: Final = 300.0
AIMS: Final = {"seconds": 10, "rounds": 1, "requests": 600}
KAI: Final[dict[int, dict[str, float]]] = {
    100: {"seconds": 134, "rounds": 3},
    1000: {"seconds": 157, "rounds": 3},
    3078: {"seconds": 306, "rounds": 4, "gpus": 1975, "requests": 5931, "cpuSeconds": 34, "loopMiB": 175},
}

err = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, metavar="PODS.csv")
    parser.add_argument("--pods", type=int, nargs="+", default=[100, 1000, 3078])
    parser.add_argument("--type", default=TYPE, help="instance type of the NodePool (default: %(default)s)")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--armed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="file for the loop's log")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    shares = [pod for pod in read_pods(arguments.trace) if pod.shares and not pod.models]
    results = [measure(shares[:number], arguments) for number in arguments.pods]
    report = {"aims": AIMS, "kai": {str(number): figures for number, figures in KAI.items()}, "bursts": results}
    if arguments.output == "json":
        json.dump(report, sys.stdout, indent=2)
        print()
    else:
        show(results)


def measure(shares: Sequence[TracePod], arguments: argparse.Namespace) -> dict[str, Any]:
    """One burst in a sandbox of its own."""
    sandbox = Sandbox.named(f"rounds-{os.getpid()}")
    sandbox.up(karpenter=False, tied=True)
    try:
        with tempfile.TemporaryDirectory() as folder, closing(Connection.open(sandbox.kubeconfig)) as connection:
            prepare(connection, arguments.type)
            err.print(f"{len(shares)} share pods", style="dim")
            with ThreadPoolExecutor(CREATORS) as pool:
                list(pool.map(lambda pod: create(connection, pod), shares))
            log = arguments.log or Path(folder) / "loop.log"
            command = run_command(Path(folder), "--shards", str(arguments.shards), "--armed", str(arguments.armed))
            with a_loop(command, os.environ | sandbox.environ("controller"), log) as process:
                return {"pods": len(shares), **burst(connection, process, log)}
    finally:
        sandbox.down()


def prepare(connection: Connection, instance_type: str) -> None:
    """Karpenter's kinds without Karpenter, a NodePool of one type, and an Environment."""
    for path in sorted((part("karpenter").cached / "crds/karpenter").glob("*.yaml")):
        definition = yaml.safe_load(path.read_text())
        apply(connection, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    install(connection, {"demand": {"provisioner": "none"}})
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": [requirement]}}},
    }
    apply(connection, "/apis/karpenter.sh/v1/nodepools", pool)


def create(connection: Connection, pod: TracePod) -> None:
    """A share pod, and what KAI would say of it."""
    resources = {"requests": {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "annotations": {"gpu-fraction": f"{pod.gpu_milli / 1000:g}"}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}],
        },
    }
    connection.request("POST", PODS, manifest)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"status": {"conditions": [condition]}}
    connection.request("PATCH", f"{PODS}/{pod.name}/status", status, content_type=MERGE_PATCH)


def burst(connection: Connection, loop: psutil.Process, log: Path) -> dict[str, Any]:
    """Switches the provisioner on, and follows what is asked until nothing more is."""
    before = settle(connection, loop, REST_SECONDS)
    cpu = cpu_seconds(loop)
    began = time.monotonic()
    change = {"spec": {"demand": {"provisioner": "trigger-pod"}}}
    connection.request("PATCH", f"{OURS}/environments/bench", change, content_type=MERGE_PATCH)
    seconds = 0.0
    while time.monotonic() - began < PATIENCE_SECONDS:
        triggers = connection.request("GET", TRIGGERS)["items"]
        planned = sum(demand["status"].get("objectCount", 0) for demand in demands(connection))
        if triggers and len(triggers) >= planned > 0 and all(map(armed, triggers)):
            seconds = time.monotonic() - began
            break
        time.sleep(0.2)
    else:
        raise SystemExit("not all was asked for in time: see the loop's log (--log)")
    asked = requests(connection)
    after = settle(connection, loop, REST_SECONDS)
    triggers = connection.request("GET", TRIGGERS)["items"]
    deltas = [delta for line in log.read_text().splitlines() if '"created"' in line and (delta := json.loads(line))]
    return {
        "seconds": round(seconds, 2),
        "parts": parts(deltas),
        "rounds": len(deltas),
        "triggers": len(triggers),
        "gpus": sum(map(gpus, triggers)),
        "leastGpus": sum(demand["status"].get("leastGpus", 0) for demand in demands(connection)),
        "requests": busy(asked) - busy(before),
        "requestsToRest": busy(after) - busy(before),
        "cpuSeconds": round(cpu_seconds(loop) - cpu, 1),
        "loopMiB": mib(loop),
    }


def parts(deltas: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Seconds by part, over all rounds. Stacks work side by side: the part that all wait for is the longest."""
    found = dict.fromkeys(PARTS, 0.0)
    for delta in deltas:
        engines = max((each["start"] for each in delta["timings"]), default=0.0)
        ends = (each["start"] + each["review"] + each["engine"] + each["provider"] for each in delta["timings"])
        objects = max(ends, default=0.0) - engines
        seconds = (delta["planned"], delta["waited"], engines, objects, delta["signalling"])
        for name, value in zip(PARTS, seconds, strict=True):
            found[name] += value
    return {name: round(value, 2) for name, value in found.items()}


def demands(connection: Connection) -> list[dict[str, Any]]:
    found = connection.request("GET", f"{OURS}/gpudemands")["items"]
    return [each for each in found if each.get("status")]


def armed(trigger: dict[str, Any]) -> bool:
    conditions = trigger["status"].get("conditions") or ()
    return any(each["reason"] == "Unschedulable" for each in conditions)


def gpus(trigger: dict[str, Any]) -> int:
    return int(trigger["spec"]["containers"][0]["resources"]["requests"][GPU_RESOURCE])


def show(results: Sequence[dict[str, Any]]) -> None:
    """Each figure beside KAI's and the aim."""
    table = Table("pods", "measured", "Plimsoll", "KAI", "aim", box=None, header_style="bold")
    for result in results:
        number = result["pods"]
        kai = KAI.get(number, {})
        for name in ("seconds", "rounds", "gpus", "leastGpus", "triggers", "requests", "cpuSeconds", "loopMiB"):
            aim = f"{result['leastGpus'] + 1}" if name == "gpus" else str(AIMS.get(name, ""))
            table.add_row(str(number), name, str(result[name]), str(kai.get(name, "")), aim)
            if name == "seconds":
                for of, seconds in result["parts"].items():
                    table.add_row(str(number), f"  {of}", str(seconds), "", "", style="dim")
    Console().print(table)


if __name__ == "__main__":
    main()
