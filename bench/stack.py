"""The size of a stack: an update of one object in a stack of 5,000, beside a small one in the same run.

    python -m bench.stack [--resources 5000] [--beside 100] [--times 5] [--output json]

The stacks are filled with NodeClaims that nothing launches, in a folder. `create` and `delete` are the seconds until
one more object is confirmed and until one is, by a pre-started update, which has read the state already; `next` those
from then until the state is written and the next update waits. `cpu` is the CPU time of both together: of this process,
of the engine that applied it, and of its plugin. By default a stack gets no new objects from 150 on, as long as another
has room: this is what a stack costs that was filled in spite of that.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console
from rich.table import Table

from bench.cluster import define_karpenter
from bench.command import run_benchmark
from bench.reaction import spread
from plimsoll import labels
from plimsoll.apply import Applier, ApplySettings, LeaseSettings
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.model import Change, Deletion, ObjectKey, Plan
from plimsoll.model.api import WorkspaceRef
from plimsoll.sandbox import Sandbox

OWNER = WorkspaceRef(namespace="default", name="bench", uid="uid-bench")
WAIT_SECONDS = 300.0
AT_ONCE = 500
"""Objects that one update creates while a stack is filled."""
err = Console(stderr=True)


def main(
    resources: Annotated[int, typer.Option(min=1, help="objects of the large stack")] = 5_000,
    beside: Annotated[int, typer.Option(min=1, help="objects of the small stack")] = 100,
    times: Annotated[int, typer.Option(min=1, help="creations, and deletions, in each")] = 5,
    output: Output = Format.TEXT,
) -> None:
    """The time of an update by the size of its stack."""
    sandbox = Sandbox.named(f"stack-{os.getpid()}")
    sandbox.up(karpenter=False, lws=False, stop_with_caller=True)
    try:
        with tempfile.TemporaryDirectory() as folder, closing(Connection.open(sandbox.kubeconfig)) as connection:
            define_karpenter(connection)
            small, large = (_measured(sandbox, connection, Path(folder), size, times) for size in (beside, resources))
    finally:
        sandbox.down()
    ratios = {name: round(large[name]["p50"] / small[name]["p50"], 2) for name in ("create", "delete", "next")}
    if output is Format.JSON:
        print_json({"small": small, "large": large, "ratios": ratios})
        return
    table = Table("seconds, p50", f"{beside:,}", f"{resources:,}", "ratio", box=None)
    for name, ratio in ratios.items():
        table.add_row(name, f"{small[name]['p50']:.2f}", f"{large[name]['p50']:.2f}", f"{ratio:g}")
    for name in ("controller", "engine", "plugin"):
        seconds = [each["cpu"][name]["p50"] for each in (small, large)]
        table.add_row(f"CPU of the {name}", *(f"{each:.2f}" for each in seconds))
    Console().print(table)
    Console().print(f"filling, seconds for 1,000 objects: {small['fill']:g} and {large['fill']:g}")


def _measured(sandbox: Sandbox, connection: Connection, folder: Path, size: int, times: int) -> dict[str, Any]:
    """Seconds of the updates of a stack of that size."""
    with Applier(_settings(sandbox, folder / str(size), size), connection) as writer:
        writer.start()
        began = time.monotonic()
        for first in range(0, size, AT_ONCE):
            err.print(f"stack of {size}: {first} objects", style="dim")
            _apply(writer, _creating(f"s{size}", range(first, min(size, first + AT_ONCE))))
        filled = time.monotonic() - began
        found: dict[str, list[float]] = {"create": [], "delete": [], "next": []}
        cpu: dict[str, list[float]] = {"controller": [], "engine": [], "plugin": []}
        for number in range(size, size + times):
            plan = _creating(f"s{size}", [number])
            for name in ("create", "delete"):
                _await_pre_started(writer)
                plan = plan if name == "create" else _deleting(writer, plan)
                used = CpuTimes(writer)
                began = time.monotonic()
                _apply(writer, plan)
                found[name].append(time.monotonic() - began)
                began = time.monotonic()
                _await_pre_started(writer, used.look)
                found["next"].append(time.monotonic() - began)
                for process, seconds in used.taken().items():
                    cpu[process].append(seconds)
        times_of = {name: spread(seconds) for name, seconds in found.items()}
        return {"fill": round(1000 * filled / size, 1), **times_of, "cpu": {key: spread(cpu[key]) for key in cpu}}


class CpuTimes:
    """CPU seconds of this process, of the engine of the pre-started update and of its plugin, as long as these run."""

    def __init__(self, writer: Applier) -> None:
        (pid,) = writer.engines
        engine = psutil.Process(pid)
        self._processes = {"engine": [engine], "plugin": engine.children(recursive=True)}
        self._before = {name: self._seconds(name) for name in self._processes}
        self._last = dict(self._before)
        self._own = time.process_time()

    def look(self) -> None:
        """To be called until the engine has ended: what it took is not known afterwards."""
        for name in self._processes:
            with suppress(psutil.Error):
                self._last[name] = self._seconds(name)

    def taken(self) -> dict[str, float]:
        others = {name: self._last[name] - self._before[name] for name in self._processes}
        return {"controller": time.process_time() - self._own, **others}

    def _seconds(self, name: str) -> float:
        return sum(sum(each.cpu_times()[:2]) for each in self._processes[name])


def _apply(writer: Applier, plan: Plan) -> None:
    outcome = writer.apply(plan)
    if outcome.failed:
        raise PlimsollError(f"An operation failed: {next(iter(outcome.failed.values()))}.")


def _await_pre_started(writer: Applier, meanwhile: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not writer.pre_started:
        meanwhile()
        if time.monotonic() > deadline:
            raise PlimsollError(f"No update is pre-started after {WAIT_SECONDS:g} s.")
        time.sleep(0.02)


def _settings(sandbox: Sandbox, folder: Path, size: int) -> ApplySettings:
    folder.mkdir()
    (folder / "passphrase").write_text("bench")
    pulumi = shutil.which("pulumi", path=sandbox.environ()["PATH"])
    return ApplySettings(
        environment=f"of-{size}",
        work_folder=folder / "work",
        passphrase_file=folder / "passphrase",
        shards=1,
        objects_per_shard=10**6,
        kubeconfig=sandbox.kubeconfig,
        pulumi=Path(pulumi) if pulumi else None,
        pulumi_home=Path(sandbox.environ()["PULUMI_HOME"]),
        lease=LeaseSettings(namespace="kube-system", name=f"bench-{size}"),
    )


def _creating(prefix: str, numbers: Any) -> Plan:
    return Plan(
        creations=tuple(
            Change(manifest=_claim(f"{prefix}-{number}"), owner=OWNER, reason="bench") for number in numbers
        )
    )


def _deleting(writer: Applier, created: Plan) -> Plan:
    (change,) = created.creations
    key = ObjectKey.of(change.manifest)
    uid = next(each.uid for each in writer.resources() if each.key == key)
    return Plan(deletions=(Deletion(key=key, uid=uid, owner=OWNER, reason="bench"),))


def _claim(name: str) -> dict[str, Any]:
    owned = {
        labels.WORKSPACE: OWNER.name,
        labels.WORKSPACE_NAMESPACE: OWNER.namespace,
        labels.WORKSPACE_UID: OWNER.uid,
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": owned},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["p4d.24xlarge"]}],
            "resources": {"requests": {labels.GPU_RESOURCE: "8"}},
        },
    }


if __name__ == "__main__":
    run_benchmark(main)
