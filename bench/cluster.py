"""A sandbox for measurements of the controller: the foundation's kinds and permissions, and the apiserver's count of
requests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import yaml
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.components import CONTROLLER, CONTROLLER_FOR_DEMAND, CONTROLLER_IN_ITS_NAMESPACE, NAMESPACE
from plimsoll.components.specs import definitions
from plimsoll.errors import PlimsollError
from plimsoll.kube import APPLY_PATCH, Connection, RequestError
from plimsoll.labels import API_VERSION
from plimsoll.model.api import TRIGGER_NAMESPACE
from plimsoll.sandbox import IDENTITIES
from plimsoll.sandbox.parts import part

CLI = [sys.executable, "-c", "from plimsoll.cli import main; main()"]
OURS = f"/apis/{API_VERSION}"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
DISPATCHED = "apiserver_flowcontrol_dispatched_requests_total"
SERVED_SECONDS = 60.0
SETTLE_SECONDS = 900.0
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
SCHEMAS = {
    "bench-lease": {**EVERYTHING, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]},
    "bench-watches": {**EVERYTHING, "verbs": ["watch"]},
    "bench-events": {**EVERYTHING, "apiGroups": ["events.k8s.io"], "resources": ["events"]},
    "bench-status": {**EVERYTHING, "resources": ["workspaces/status", "environments/status", "gpudemands/status"]},
    "bench-reads": {**EVERYTHING, "verbs": ["get", "list"]},
    "bench-writes": EVERYTHING,
}
"""FlowSchemas for the controller's requests; the first that matches counts."""


def install(connection: Connection, environment: dict[str, Any], name: str = "bench") -> None:
    """Installs the definitions, the controller's permissions, an Environment with that name and spec, and FlowSchemas
    that classify requests."""
    for definition in definitions():
        apply(connection, CRDS, definition)
    rbac, user = "rbac.authorization.k8s.io", IDENTITIES["controller"].user
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "plimsoll"}}
    rules = [*CONTROLLER, *CONTROLLER_IN_ITS_NAMESPACE, *CONTROLLER_FOR_DEMAND]
    apply(connection, f"/apis/{rbac}/v1/clusterroles", {**role, "rules": rules})
    binding = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "plimsoll"}}
    subject = {"apiGroup": rbac, "kind": "User", "name": user}
    role_ref = {"apiGroup": rbac, "kind": "ClusterRole", "name": "plimsoll"}
    apply(
        connection,
        f"/apis/{rbac}/v1/clusterrolebindings",
        {**binding, "subjects": [subject], "roleRef": role_ref},
    )
    for each in (NAMESPACE, TRIGGER_NAMESPACE):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}}
        apply(connection, "/api/v1/namespaces", namespace)
    declared = {"apiVersion": API_VERSION, "kind": "Environment", "metadata": {"name": name}, "spec": environment}
    apply(connection, f"{OURS}/environments", declared)
    for precedence, (schema, rule) in enumerate(SCHEMAS.items(), 90):
        path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
        apply(connection, path, _flow_schema(schema, precedence, rule, user))


def define_karpenter(connection: Connection) -> None:
    """Installs Karpenter's kinds without Karpenter. Raises PlimsollError if its part is not installed."""
    definitions = sorted((part("karpenter").cached / "crds/karpenter").glob("*.yaml"))
    if not definitions:
        raise PlimsollError("Karpenter's CRDs are not installed.", "Run `plimsoll sandbox install` first.")
    for path in definitions:
        apply(connection, CRDS, yaml.safe_load(path.read_text()))
    _await_served(lambda: connection.request("GET", NODE_CLAIMS, query={"limit": "1"}))


def _flow_schema(name: str, precedence: int, rule: dict[str, Any], user: str) -> dict[str, Any]:
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
    """A kind may be served only a moment after its definition exists."""
    address, query = f"{path}/{manifest['metadata']['name']}", {"fieldManager": "bench", "force": "true"}
    _await_served(lambda: connection.request("PATCH", address, manifest, query=query, content_type=APPLY_PATCH))


def _await_served(request: Callable[[], object]) -> None:
    """Repeats a request until its kind is served, for at most SERVED_SECONDS."""
    deadline = time.monotonic() + SERVED_SECONDS
    while True:
        try:
            request()
            return
        except RequestError as error:
            if error.code != 404 or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def requests(connection: Connection) -> dict[str, int]:
    """Requests of the controller so far, by FlowSchema. Reading the metrics does not count."""
    made = dict.fromkeys(SCHEMAS, 0)
    with connection.stream("/metrics", query={}, read_timeout=30.0, accept="text/plain") as response:
        lines = response.read().decode().splitlines()
    # To parse all metrics of an apiserver takes a second of CPU.
    ours = [line for line in lines if line.startswith(DISPATCHED)]
    for family in text_string_to_metric_families("\n".join([*ours, ""])):
        for sample in family.samples:
            if sample.labels["flow_schema"] in made:
                made[sample.labels["flow_schema"]] += int(sample.value)
    return made


def busy(made: dict[str, int]) -> int:
    """Requests without watches and those of the Lease."""
    return sum(number for name, number in made.items() if name not in ("bench-lease", "bench-watches"))


def settle(connection: Connection, loop: psutil.Process, seconds: float) -> dict[str, int]:
    """Waits until the controller has made no request for this many seconds.

    Raises PlimsollError if it has ended, or is not idle within SETTLE_SECONDS.
    """
    last, began = requests(connection), time.monotonic()
    since = began
    while time.monotonic() - since < seconds:
        if loop.status() == psutil.STATUS_ZOMBIE:
            raise PlimsollError("The loop has ended.", "See its log.")
        if time.monotonic() - began > SETTLE_SECONDS:
            raise PlimsollError(f"The loop does not come to rest in {SETTLE_SECONDS:g} s.", "See its log.")
        time.sleep(0.5)
        made = requests(connection)
        if busy(made) != busy(last) or not busy(made):
            last, since = made, time.monotonic()
    return last


def run_command(folder: Path, *options: str) -> list[str]:
    """The command line of `plimsoll run`, with its state below the folder."""
    passphrase, backend = folder / "passphrase", folder / "state"
    passphrase.write_text("bench")
    backend.mkdir(exist_ok=True)
    where = ["--passphrase-file", str(passphrase), "--backend", backend.as_uri(), "--work-folder", str(folder / "w")]
    return [*CLI, "run", *where, *options]


@contextmanager
def a_loop(command: list[str], environment: Mapping[str, str], log: Path | None = None) -> Iterator[psutil.Process]:
    """Context manager: runs the command, with its log on standard error or in a file."""
    with (
        Path(os.devnull if log is None else log).open("wb") as file,
        subprocess.Popen(command, env=environment, stdout=sys.stderr, stderr=file if log else None) as process,
    ):
        try:
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def cpu_seconds(loop: psutil.Process) -> float:
    """CPU seconds of the controller and its engines, including engines that have ended."""
    return sum(loop.cpu_times()[:4]) + sum(map(own_cpu_seconds, loop.children(recursive=True)))


def own_cpu_seconds(process: psutil.Process) -> float:
    """CPU seconds without those of child processes; 0 after its end, because its parent counts it then."""
    try:
        return sum(process.cpu_times()[:2])
    except psutil.NoSuchProcess:
        return 0.0


def mib(process: psutil.Process) -> int:
    """Resident memory in MiB; 0 after its end."""
    try:
        return round(process.memory_info().rss / 2**20)
    except psutil.NoSuchProcess:
        return 0


def engine_ages(loop: psutil.Process) -> list[float]:
    """Seconds since the start of each engine that the controller runs now."""
    ages = []
    for each in loop.children():
        with suppress(psutil.NoSuchProcess):
            if "pulumi" in each.name() and each.status() != psutil.STATUS_ZOMBIE:
                ages.append(time.time() - each.create_time())
    return ages
