"""Environments that are declared, and changes of them that a controller has seen."""

from contextlib import closing
from pathlib import Path
from typing import Any

from demo.stage import Stage, declare
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube

API = "plimsoll.dev/v1alpha1"


def change_environment(cluster: Kube, name: str, **spec: Any) -> None:
    """Changes fields of the Environment, and waits until the running controller plans by them: it may see an object
    that is created afterwards before the change, as they come by different watches."""
    changed = cluster.patch(API, "Environment", name, {"spec": spec})
    generation = changed["metadata"]["generation"]

    def seen() -> bool:
        status = (cluster.get(API, "Environment", name) or {}).get("status") or {}
        return bool(status.get("observedGeneration", 0) >= generation)

    await_condition(seen, 60, f"the controller has seen {spec}")


def declare_without_workspaces(sandbox: Sandbox, folder: Path) -> None:
    """The environment `sandbox-nap`, by `pulumi up`, and no Workspace."""
    declare(Stage.on(sandbox, folder), "sandbox-nap")
    with closing(Kube(sandbox.kubeconfig)) as cluster:
        cluster.delete(API, "Workspace", "chat", "inference")
