"""Environments that are declared, and changes of them that a controller has seen."""

from contextlib import closing
from pathlib import Path
from typing import Any

from demo.stage import Stage, declare
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube, Manifest

API = "plimsoll.dev/v1alpha1"


def change_environment(cluster: Kube, name: str, **spec: Any) -> None:
    """Changes fields of the Environment, and waits as `await_seen`."""
    await_seen(cluster, cluster.patch(API, "Environment", name, {"spec": spec}))


def await_seen(cluster: Kube, changed: Manifest) -> None:
    """Waits until the running controller plans by the Environment: it may see an object that is created afterwards
    before it, as they come by different watches."""
    name, generation = changed["metadata"]["name"], changed["metadata"]["generation"]

    def seen() -> bool:
        status = (cluster.get(API, "Environment", name) or {}).get("status") or {}
        return bool(status.get("observedGeneration", 0) >= generation)

    await_condition(seen, 120, f"the controller has seen {changed['spec']}")


def declare_without_workspaces(sandbox: Sandbox, folder: Path) -> None:
    """The environment `sandbox-nap`, by `pulumi up`, and no Workspace."""
    declare(Stage.on(sandbox, folder), "sandbox-nap")
    with closing(Kube(sandbox.kubeconfig)) as cluster:
        cluster.delete(API, "Workspace", "chat", "inference")
