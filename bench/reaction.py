"""The reaction time: from the request that creates a Workspace to the watch event that shows its NodeClaim.

    python -m bench.reaction [--times 20] [--output json]

Measured in a sandbox where nothing handles NodeClaims, so only the controller counts: while idle, with a pre-started
update; then cold, with each update started when it is needed; then, as a lower bound, with a plain client that creates
a NodeClaim itself.

Each creation waits until the one before is settled. The parts for engine, provider and own work are from the
controller's log.
"""

import os
import statistics
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any

import orjson
import psutil
import typer
import yaml
from rich.console import Console
from rich.table import Table

from bench.arrivals import WAIT_SECONDS, Arrivals
from bench.cluster import NODE_CLAIMS, a_loop, define_karpenter, engine_ages
from bench.command import run_benchmark
from demo.stage import Stage, declare
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.kube import APPLY_PATCH, Connection
from plimsoll.labels import API_VERSION
from plimsoll.sandbox import Sandbox

NAMESPACE = "inference"
WORKSPACES = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/workspaces"
CASES = {"pre-started": 1, "cold": 0}
"""Number of pre-started updates."""
KEYS = ("p50", "p95", "most", "engine", "provider", "review", "ratio")
REST_SECONDS = 6.0
"""An update ends 2 to 4 s after its Plan is applied, and the next one is pre-started a second later."""
LAUNCH_SECONDS = 24 * 3600
"""Nothing launches the NodeClaims, and none may be replaced meanwhile."""
err = Console(stderr=True)


def main(
    times: Annotated[int, typer.Option(min=1, help="Workspaces in each case")] = 20,
    output: Output = Format.TEXT,
) -> None:
    """The time from a Workspace to its NodeClaim."""
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), times)
    if output is Format.JSON:
        print_json(result)
        return
    columns = ("case", "p50", "p95", "most", "engine p50", "provider p50", "own review p50", "x plain client")
    table = Table(*columns, title="Workspace to NodeClaim, seconds", box=None)
    for name, figures in result.items():
        table.add_row(name, *(f"{figures[key]:.3f}" if key in figures else "" for key in KEYS))
    Console().print(table)


def measure(folder: Path, times: int) -> dict[str, dict[str, float]]:
    """Measures each case, in seconds."""
    sandbox = Sandbox.named(f"reaction-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        with closing(Connection.open(sandbox.kubeconfig)) as connection:
            define_karpenter(connection)
            stage = Stage.on(sandbox, folder)
            fit(stage.project / "stacks" / "Pulumi.sandbox-nap.yaml", len(CASES) * times)
            declare(stage, "sandbox-nap")
            arrivals = Arrivals(sandbox.kubeconfig, NODE_CLAIMS)
            result = {}
            for case, pre_started in CASES.items():
                err.print(f"{case}: {times} Workspaces", style="dim")
                log = folder / f"{case}.log"
                run = [sys.executable, "-m", "plimsoll", "run", "--pre-started", str(pre_started)]
                seconds = []
                with a_loop(run, stage.environs["controller"], log) as process:
                    await_rest(process, pre_started)
                    for number in range(times):
                        seconds.append(workspace(connection, arrivals, f"{case}-{number}"))
                        await_rest(process, pre_started)
                result[case] = {**spread(seconds), **parts(log, case)}
            result["plain client"] = spread([plain(connection, arrivals, f"plain-{number}") for number in range(times)])
            for figures in result.values():
                figures["ratio"] = figures["p50"] / result["plain client"]["p50"]
            return result
    finally:
        sandbox.down()


def fit(settings: Path, workspaces: int) -> None:
    """Replaces the sandbox's Workspaces and limits, so that this many Workspaces of one GPU fit."""
    stack = yaml.safe_load(settings.read_text())
    config = stack["config"]
    del config["plimsoll:workspaces"]
    environment = config["plimsoll:environment"]
    environment["limits"] = {"nodes": workspaces, "gpus": workspaces}
    environment["nodeClaims"] |= {
        "launchDeadlineSeconds": LAUNCH_SECONDS,
        "registrationDeadlineSeconds": LAUNCH_SECONDS,
    }
    for pool in config["plimsoll:nodePools"].values():
        pool["limits"] = {"nvidia.com/gpu": workspaces}
    for each in config["plimsoll:queues"].values():
        each["resources"]["gpu"] = {"quota": workspaces, "limit": workspaces}
    settings.write_text(yaml.safe_dump(stack, sort_keys=False))


def await_rest(loop: psutil.Process, pre_started: int) -> None:
    """Waits until the pre-started engines have been ready for a while, and no other runs."""
    deadline = time.monotonic() + WAIT_SECONDS
    rested = time.monotonic()
    while time.monotonic() < deadline:
        if loop.status() == psutil.STATUS_ZOMBIE:
            raise PlimsollError("The loop has ended.")
        ages = engine_ages(loop)
        if len(ages) != pre_started or any(age < 2.0 for age in ages):
            rested = time.monotonic()
        elif time.monotonic() - rested > 1.0 + (0.0 if pre_started else REST_SECONDS / 2):
            return
        time.sleep(0.1)
    raise PlimsollError(f"The loop does not come to rest in {WAIT_SECONDS:g} s.")


def workspace(connection: Connection, arrivals: Arrivals, name: str) -> float:
    """Seconds from the creation of a Workspace to its NodeClaim. Raises PlimsollError, with the conditions, if none
    appears."""
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
    started = time.monotonic()
    connection.request("POST", WORKSPACES, manifest)
    shown = arrivals.next(name)
    if shown is None:
        status = connection.request("GET", f"{WORKSPACES}/{name}").get("status", {})
        said = [f"{each['reason']}: {each['message']}" for each in status.get("conditions", ())]
        raise PlimsollError(f"Workspace {name} has no NodeClaim after {WAIT_SECONDS:g} s.", "\n  ".join(said) or None)
    return shown - started


def plain(connection: Connection, arrivals: Arrivals, name: str) -> float:
    """Seconds that a client needs that creates a NodeClaim itself."""
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
    connection.request("PATCH", f"{NODE_CLAIMS}/{name}", manifest, query=query, content_type=APPLY_PATCH)
    shown = arrivals.next(name)
    if shown is None:
        raise PlimsollError(f"No watch shows NodeClaim {name} after {WAIT_SECONDS:g} s.")
    return shown - started


def parts(log: Path, case: str) -> dict[str, float]:
    """Medians of the timings in the controller's log, for Plans that created NodeClaims."""
    timings = []
    for line in log.read_text().splitlines():
        with suppress(orjson.JSONDecodeError):
            entry = orjson.loads(line)
            if entry.get("event") == "delta applied" and any(case in each for each in entry.get("created", ())):
                timings += entry["timings"]
    if not timings:
        raise PlimsollError(f"The controller's log has no delta for a Workspace {case}-*.")
    return {key: statistics.median(each[key] for each in timings) for key in ("engine", "provider", "review")}


def spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50": statistics.median(ordered),
        "p95": ordered[round(0.95 * (len(ordered) - 1))],
        "most": ordered[-1],
    }


if __name__ == "__main__":
    run_benchmark(main)
