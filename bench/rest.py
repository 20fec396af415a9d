"""What the loop costs at rest: requests other than watches and the Lease, CPU, memory.

    python -m bench.rest [--nodes 1213] [--nodes-from CSV] [--seconds 60] [--only observer] [--output json]

A sandbox of its own gets the nodes, the kinds and rights of the foundation, an Environment and ten Workspaces; then
`plimsoll run` works as the controller's account, and once it has settled it is left alone. Requests are the
apiserver's own count: its flow control sorts those of that account into three schemas. `--only observer` runs the
watches, validation and status alone, without engines; `--command` runs something else.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from components.access import CONTROLLER, CONTROLLER_IN_ITS_NAMESPACE, NAMESPACE
from plimsoll.connection import APPLY_PATCH, Connection, RequestError
from plimsoll.model.crd import definitions
from plimsoll.model.labels import API_VERSION
from plimsoll.sandbox import Sandbox, node_list, nodes
from plimsoll.sandbox.identities import IDENTITIES

OPENB = Path(__file__).parents[2] / "shared" / "data" / "openb" / "openb_node_list_gpu_node.csv"
CLI = [sys.executable, "-c", "from plimsoll.cli import main; main()"]
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
            for path, manifest in foundation():
                apply(connection, path, manifest)
        yield sandbox
    finally:
        sandbox.down()


def foundation() -> Iterator[tuple[str, dict[str, Any]]]:
    """Definitions, the controller's rights, an Environment, Workspaces, and the schemas that sort requests."""
    for definition in definitions():
        yield "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition
    rbac, user = "rbac.authorization.k8s.io", IDENTITIES["controller"].user
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "plimsoll"}}
    rules = [*CONTROLLER, *CONTROLLER_IN_ITS_NAMESPACE]
    yield f"/apis/{rbac}/v1/clusterroles", {**role, "rules": rules}
    binding = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "plimsoll"}}
    subject = {"apiGroup": rbac, "kind": "User", "name": user}
    role_ref = {"apiGroup": rbac, "kind": "ClusterRole", "name": "plimsoll"}
    yield f"/apis/{rbac}/v1/clusterrolebindings", {**binding, "subjects": [subject], "roleRef": role_ref}
    yield "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    ours = f"/apis/{API_VERSION}"
    environment = {"apiVersion": API_VERSION, "kind": "Environment", "metadata": {"name": "rest"}, "spec": {}}
    yield f"{ours}/environments", environment
    for number in range(WORKSPACES):
        metadata = {"name": f"ws-{number}", "namespace": "default"}
        selector = {"matchLabels": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}}
        workspace = {"apiVersion": API_VERSION, "kind": "Workspace", "metadata": metadata}
        yield f"{ours}/namespaces/default/workspaces", {**workspace, "spec": {"resource": {"labelSelector": selector}}}
    for precedence, (name, rule) in enumerate(SCHEMAS.items(), 90):
        yield "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", flow_schema(name, precedence, rule, user)


EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
SCHEMAS = {
    "rest-lease": {**EVERYTHING, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]},
    "rest-watches": {**EVERYTHING, "verbs": ["watch"]},
    "rest-other": EVERYTHING,
}


def flow_schema(name: str, precedence: int, rule: dict[str, Any], user: str) -> dict[str, Any]:
    urls = {"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]} if rule is EVERYTHING else {}
    subject = {"kind": "User", "user": {"name": user}}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": "workload-high"},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [subject], "resourceRules": [rule], **urls}],
        },
    }


def apply(connection: Connection, path: str, manifest: dict[str, Any]) -> None:
    """A kind may be served a moment after its definition is there."""
    address = f"{path}/{manifest['metadata']['name']}"
    for attempt in range(50):
        try:
            connection.request(
                "PATCH", address, manifest, query={"fieldManager": "bench", "force": "true"}, content_type=APPLY_PATCH
            )
            return
        except RequestError as error:
            if error.code != 404 or attempt == 49:
                raise
            time.sleep(0.1)


def command_of(arguments: argparse.Namespace, folder: Path) -> list[str]:
    if arguments.command:
        return shlex.split(arguments.command)
    if arguments.only == "observer":
        return [sys.executable, "-m", "bench.rest", "--as-observer"]
    passphrase, backend = folder / "passphrase", folder / "state"
    passphrase.write_text("rest")
    backend.mkdir()
    options = ["--passphrase-file", str(passphrase), "--backend", backend.as_uri(), "--work-folder", str(folder / "w")]
    return [*CLI, "run", "--provider", "attached", *options]


@contextmanager
def a_loop(command: list[str], environment: dict[str, str]) -> Iterator[psutil.Process]:
    with subprocess.Popen(command, env=environment, stdout=sys.stderr) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def observe() -> None:
    """The loop without the applier."""
    from datetime import UTC, datetime

    from plimsoll.cli.watching import open_observer
    from plimsoll.model.plan import Plan
    from plimsoll.plan.validating import validate
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
        settle(connection, loop)
        err.print(f"at rest for {seconds:g} s", style="dim")
        engines = loop.children(recursive=True)
        before, loop_cpu = requests(connection), cpu_seconds([loop])
        engine_cpu = cpu_seconds(engines)
        time.sleep(seconds)
        after = requests(connection)
        made = {name.removeprefix("rest-"): after[name] - before[name] for name in SCHEMAS}
        return {
            "nodes": len(connection.request("GET", "/api/v1/nodes", timeout=60)["items"]),
            "seconds": seconds,
            "otherRequests": made["other"],
            "watchRequests": made["watches"],
            "leaseRequests": made["lease"],
            "requestsUntilRest": before["rest-other"],
            "loopCpuSeconds": round(cpu_seconds([loop]) - loop_cpu, 3),
            "enginesCpuSeconds": round(cpu_seconds(engines) - engine_cpu, 3),
            "loopMiB": mib(loop),
            "engineMiB": max((mib(each) for each in engines), default=0),
            "engines": {f"{each.pid} {each.name()}": mib(each) for each in engines},
        }


def settle(connection: Connection, loop: psutil.Process) -> None:
    """Returns once the loop has made no request for a while. Raises SystemExit where it has ended."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < SETTLE_SECONDS:
        if loop.status() == psutil.STATUS_ZOMBIE:
            raise SystemExit("the loop has ended: see above")
        made = requests(connection)["rest-other"]
        if made != last or not made:
            last, since = made, time.monotonic()
        time.sleep(1.0)


def requests(connection: Connection) -> dict[str, int]:
    """What the apiserver took from the loop so far, by schema."""
    made = dict.fromkeys(SCHEMAS, 0)
    with connection.stream("/metrics", query={}, read_timeout=30.0, accept="text/plain") as response:
        text = response.read().decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if (
                sample.name == "apiserver_flowcontrol_dispatched_requests_total"
                and sample.labels["flow_schema"] in made
            ):
                made[sample.labels["flow_schema"]] += int(sample.value)
    return made


def cpu_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes if each.is_running())


def mib(process: psutil.Process) -> int:
    return round(process.memory_info().rss / 2**20) if process.is_running() else 0


if __name__ == "__main__":
    main()
