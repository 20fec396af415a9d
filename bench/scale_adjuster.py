"""Plimsoll and KAI's node scale adjuster, beside the KAI Scheduler and Karpenter: GPUs, empty nodes, and seconds.

    python -m bench.scale_adjuster [--patience 150] [--only fragments] [--system plimsoll] [--output json]

For each case and each of the two, a new sandbox with KAI and Karpenter gets the NodePools, the queues and the pods of
the case, all at once. It ends when every pod that the limits of its queue allow is bound and no further node is
requested or made, or when nothing has changed for `--patience` seconds, which is longer than the adjuster's pause of
60 s. The adjuster is the program of KAI 0.12, with the rights of a cluster administrator.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench.cluster import a_loop, apply, install, run_command
from bench.command import run_benchmark
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.components import NAMESPACE
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.model.api import CAPACITY_GATE
from plimsoll.sandbox import Sandbox

PODS = "/api/v1/namespaces/default/pods"
QUEUES = "/apis/scheduling.run.ai/v2/queues"
POOLS = "/apis/karpenter.sh/v1/nodepools"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
SCALING = "kai-scale-adjust"
POLL_SECONDS = 1.0
START_SECONDS = 120.0


class System(StrEnum):
    PLIMSOLL = "plimsoll"
    ADJUSTER = "adjuster"


err = Console(stderr=True)


@dataclass(frozen=True)
class Share:
    fraction: str
    pool: str = "a"
    queue: str = "default-queue"


@dataclass(frozen=True)
class Case:
    """Pods, and the instance type of each NodePool, which the pods select."""

    title: str
    shares: Sequence[Share]
    pools: Mapping[str, str]
    limits: Mapping[str, int] = field(default_factory=dict)
    """GPUs of queues."""
    bindable: int = 0
    """Pods that the limits allow; 0: all."""


CASES = {
    "fragments": Case("3 x 0.6", [Share("0.6")] * 3, {"a": "g5.xlarge"}),
    "selectors": Case(
        "0.5 on each of two types", [Share("0.5"), Share("0.5", "b")], {"a": "g5.xlarge", "b": "p4d.24xlarge"}
    ),
    "limits": Case(
        "20 x 0.5 in 5 queues with limit 1",
        [Share("0.5", queue=f"q{n % 5}") for n in range(20)],
        {"a": "g5.xlarge"},
        {f"q{n}": 1 for n in range(5)},
        10,
    ),
}


def main(
    patience: Annotated[float, typer.Option(min=1, help="seconds without a change that end a case")] = 150.0,
    only: Annotated[str | None, typer.Option(help=f"one case: {', '.join(CASES)}")] = None,
    system: Annotated[System | None, typer.Option(help="one of the two systems")] = None,
    output: Output = Format.TEXT,
) -> None:
    """GPUs, empty nodes and seconds of Plimsoll and of KAI's node scale adjuster."""
    if only is not None and only not in CASES:
        raise PlimsollError(f"There is no case {only}.", f"The cases are {', '.join(CASES)}.")
    results = []
    for name in CASES if only is None else [only]:
        for each in System if system is None else [system]:
            err.print(f"{CASES[name].title}: {each}", style="dim")
            results.append({"case": name, "system": each, **measure(CASES[name], each, patience)})
    if output is Format.JSON:
        print_json({"results": results})
        return
    table = Table("case", "system", "bound", "GPUs", "nodes", "empty", "seconds", box=None)
    for result in results:
        bound = f"{result['bound']} of {result['bindable']}"
        row = (bound, f"{result['gpus']}", f"{result['nodes']}", f"{result['empty']}", f"{result['seconds']:.1f}")
        table.add_row(CASES[result["case"]].title, result["system"], *row)
    Console().print(table)


def measure(case: Case, system: System, patience: float) -> dict[str, Any]:
    """Runs one case in a new sandbox."""
    sandbox = Sandbox.named(f"adjuster-{os.getpid()}")
    sandbox.up(karpenter=True, kai=True, lws=False, stop_with_caller=True)
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(closing(Connection.open(sandbox.kubeconfig)))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            prepare(connection, case)
            if system is System.PLIMSOLL:
                environ = os.environ | sandbox.environ("controller")
                stack.enter_context(a_loop(run_command(folder), environ, folder / "loop.log"))
                await_lease(connection)
            else:
                stack.enter_context(an_adjuster(sandbox, folder))
            began = time.monotonic()
            for number, share in enumerate(case.shares):
                connection.request("POST", PODS, manifest(f"share-{number}", share, system))
            return outcome(connection, case, began, patience)
    finally:
        sandbox.down()


def prepare(connection: Connection, case: Case) -> None:
    install(connection, {"demand": {"provisioner": "trigger-pod"}})
    apply(connection, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SCALING}})
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    for name, limit in case.limits.items():
        resources = {"gpu": unlimited | {"quota": limit, "limit": limit}, "cpu": unlimited, "memory": unlimited}
        spec = {"parentQueue": "default-parent-queue", "resources": resources}
        queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        apply(connection, QUEUES, queue)
    for name, instance_type in case.pools.items():
        requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}
        reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
        template = {
            "metadata": {"labels": {"pool": name}},
            "spec": {"nodeClassRef": reference, "requirements": [requirement]},
        }
        disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
        spec = {"template": template, "disruption": disruption}
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
        apply(connection, POOLS, pool)


def manifest(name: str, share: Share, system: System) -> dict[str, Any]:
    """A share as users of the system write it: the adjuster knows no capacity gate, so that Karpenter sees its pods as
    pods without GPUs."""
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": {"gpu-fraction": share.fraction},
            "labels": {"kai.scheduler/queue": share.queue},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "schedulingGates": [{"name": CAPACITY_GATE}] if system is System.PLIMSOLL else [],
            "nodeSelector": {"pool": share.pool},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}],
        },
    }


def await_lease(connection: Connection) -> None:
    """Returns when the controller is active: Python starts for seconds. Raises PlimsollError."""
    deadline = time.monotonic() + START_SECONDS
    while not any(lease["spec"].get("holderIdentity") for lease in connection.list_items(LEASES)):
        if time.monotonic() > deadline:
            raise PlimsollError(f"The controller is not active after {START_SECONDS:g} s.")
        time.sleep(0.1)


@contextmanager
def an_adjuster(sandbox: Sandbox, folder: Path) -> Iterator[None]:
    """KAI's node scale adjuster, beside the block."""
    program = [str(sandbox.folder.bin() / "kai"), "nodescaleadjuster"]
    environ = os.environ | {"KUBECONFIG": str(sandbox.kubeconfig)}
    with (folder / "adjuster.log").open("w") as log:
        process = subprocess.Popen(program, env=environ, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def outcome(connection: Connection, case: Case, began: float, patience: float) -> dict[str, Any]:
    """What came of it, once that is final. The seconds are those of the last change."""
    bindable = case.bindable or len(case.shares)
    last, changed, state = began, began, None
    while True:
        now, seen = time.monotonic(), observed(connection)
        if seen != state:
            last, state, changed = now, seen, now
        bound, nodes, claims = len(seen.bound), len(seen.gpus), seen.claims
        done = bound == bindable and claims == nodes and not seen.asked
        if done or now - changed > patience:
            empty = seen.gpus.keys() - seen.bound.values()
            return {
                "bindable": bindable,
                "bound": bound,
                "gpus": sum(seen.gpus.values()),
                "nodes": nodes,
                "empty": len(empty),
                "seconds": round(last - began, 1),
            }
        time.sleep(POLL_SECONDS)


@dataclass(frozen=True)
class Observed:
    bound: Mapping[str, str]
    """Nodes of bound shares."""
    gpus: Mapping[str, int]
    """GPUs of the nodes of Karpenter."""
    claims: int
    asked: int
    """Pods that ask for nodes, of Plimsoll or of the adjuster."""


def observed(connection: Connection) -> Observed:
    pods = list(connection.list_items(PODS))
    nodes = connection.list_items("/api/v1/nodes", query={"labelSelector": "karpenter.sh/nodepool"})
    asking = [
        pod
        for namespace in (SCALING, "plimsoll-triggers")
        for pod in connection.list_items(f"/api/v1/namespaces/{namespace}/pods")
        if pod["status"].get("phase") == "Pending"
    ]
    return Observed(
        bound={pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")},
        gpus={
            node["metadata"]["name"]: int(node["status"].get("allocatable", {}).get("nvidia.com/gpu", 0))
            for node in nodes
        },
        claims=len(list(connection.list_items("/apis/karpenter.sh/v1/nodeclaims"))),
        asked=len(asking),
    )


if __name__ == "__main__":
    run_benchmark(main)
