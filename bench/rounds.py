"""A burst of share pods: seconds, rounds, GPUs and requests until their last trigger pod.

    python -m bench.rounds [PODS.csv] [--pods 100 --pods 1000 --pods 3078] [--type p5.48xlarge] [--shards 4]
        [--pre-started 1] [--output json]

PODS.csv is a trace of the openb family; without it, the default trace is used if it is in ../shared/data/openb. Its
first shares are created in a new sandbox and marked Unschedulable while demand is only reported; then the Environment's
provisioner becomes `trigger-pod`. Time is measured from then until every planned node is requested by a trigger pod
that is marked Unschedulable. The creation of the pods and their first plan are not included. Requests are counted by
the apiserver, without watches and renewals of the Lease. Nothing creates nodes, so only the requests are measured. For
comparison: KAI's node-scale-adjuster with the same pods on 2 cores, where nodes count as created instantly.

`--type` is the one instance type of the NodePool, of those that Plimsoll knows. Its GPUs, CPU and memory determine the
number of nodes, and so of triggers and requests. The default has 8 GPUs and 192 CPUs.

The parts of the time are those in the controller's log (`delta applied`): planning; waiting for the end of the burst;
engines, until the last stack that takes part has one; objects, from then to the last confirmed creation, while
conditions of trigger pods are written; signals, the conditions that remain. The rest is the time of watches and of this
program.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import psutil
import typer
from rich.console import Console
from rich.table import Table

from bench.cluster import (
    CLI,
    OURS,
    a_loop,
    apply,
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
from bench.trace import TracePod, default_pods, read_pods
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.kube import MERGE_PATCH, Connection
from plimsoll.labels import GPU_RESOURCE
from plimsoll.model.api import TRIGGER_NAMESPACE
from plimsoll.sandbox import Sandbox

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


def main(
    trace: Annotated[
        Path | None, typer.Argument(help="CSV file of pods; openb's default trace", metavar="[PODS.csv]")
    ] = None,
    pods: Annotated[list[int], typer.Option(min=1, help="shares of a burst, once for each")] = [100, 1000, 3078],  # noqa: B006
    instance_type: Annotated[str, typer.Option("--type", help="instance type of the NodePool")] = TYPE,
    shards: Annotated[int, typer.Option(min=1)] = 4,
    pre_started: Annotated[int, typer.Option(min=0)] = 1,
    log: Annotated[Path | None, typer.Option(help="file for the loop's log")] = None,
    output: Output = Format.TEXT,
) -> None:
    """A burst of share pods, until the last trigger pod for their GPUs."""
    trace = trace or default_pods()
    shares = [pod for pod in read_pods(trace) if pod.shares and not pod.models]
    if not shares:
        raise PlimsollError(f"{trace}: no pod asks for a share of a GPU.", "Give a trace with such pods.")
    results = []
    for number in pods:
        with tempfile.TemporaryDirectory() as name, a_cluster(instance_type) as sandbox:
            folder = Path(name)
            loop = run_command(folder, "--shards", str(shards), "--pre-started", str(pre_started))
            results.append(measure(sandbox, shares[:number], loop, log or folder / "loop.log"))
    if output is Format.JSON:
        print_json({"aims": AIMS, "kai": {str(number): figures for number, figures in KAI.items()}, "bursts": results})
    else:
        show(results)


@contextmanager
def a_cluster(instance_type: str) -> Iterator[Sandbox]:
    """A sandbox with Karpenter's kinds, but without Karpenter, a NodePool of one type, and an Environment."""
    sandbox = Sandbox.named(f"rounds-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            define_karpenter(connection)
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
        yield sandbox
    finally:
        sandbox.down()


def measure(sandbox: Sandbox, shares: Sequence[TracePod], command: list[str], log: Path) -> dict[str, Any]:
    """Runs one burst, with a controller that the command starts."""
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        err.print(f"{len(shares)} share pods", style="dim")
        with ThreadPoolExecutor(CREATORS) as pool:
            list(pool.map(lambda pod: create(connection, pod), shares))
        least = least_gpus(sandbox)
        with a_loop(command, os.environ | sandbox.environ("controller"), log) as process:
            return {"pods": len(shares), "leastGpus": least, **burst(connection, process, log)}


def least_gpus(sandbox: Sandbox) -> int:
    """Lower bound of the GPUs of the nodes that the waiting pods need, from the output of `plimsoll demand`."""
    command = [*CLI, "demand", "--output", "json"]
    environment = os.environ | sandbox.environ("controller")
    told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return int(json.loads(told)["summary"]["leastGpus"])


def create(connection: Connection, pod: TracePod) -> None:
    """Creates a share pod with the condition that KAI would write."""
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
    """Enables the provisioner, and watches the trigger pods until there are no more."""
    before = settle(connection, loop, REST_SECONDS)
    cpu = cpu_seconds(loop)
    began = time.monotonic()
    change = {"spec": {"demand": {"provisioner": "trigger-pod"}}}
    connection.request("PATCH", f"{OURS}/environments/bench", change, content_type=MERGE_PATCH)
    seconds = 0.0
    while time.monotonic() - began < PATIENCE_SECONDS:
        triggers = connection.request("GET", TRIGGERS)["items"]
        planned = sum(demand["status"].get("objectCount", 0) for demand in demands(connection))
        if triggers and len(triggers) >= planned > 0 and all(map(is_unschedulable, triggers)):
            seconds = time.monotonic() - began
            break
        time.sleep(0.2)
    else:
        raise PlimsollError(
            f"Not all was asked for in {PATIENCE_SECONDS:g} s: {len(triggers)} triggers of {planned}.",
            "See the loop's log, which --log keeps.",
        )
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
        "requests": busy(asked) - busy(before),
        "requestsToRest": busy(after) - busy(before),
        "cpuSeconds": round(cpu_seconds(loop) - cpu, 1),
        "loopMiB": mib(loop),
    }


def parts(deltas: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Seconds by part, summed over all rounds. Stacks run concurrently, so the slowest stack counts."""
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


def is_unschedulable(trigger: dict[str, Any]) -> bool:
    conditions = trigger["status"].get("conditions") or ()
    return any(each["reason"] == "Unschedulable" for each in conditions)


def gpus(trigger: dict[str, Any]) -> int:
    return int(trigger["spec"]["containers"][0]["resources"]["requests"][GPU_RESOURCE])


def show(results: Sequence[dict[str, Any]]) -> None:
    """Prints each figure with KAI's and the aim."""
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
    run_benchmark(main)
