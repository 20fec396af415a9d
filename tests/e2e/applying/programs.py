"""Small Pulumi programs with objects of Kubernetes, and their effects on the cluster."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation._stack import StackInitMode

Program = Callable[[], None]


class _Stack(automation.Stack):
    """Counts changes by the engine's events. The base class starts pulumi three more times after an update: for its
    history and its outputs, with and without secrets."""

    _changes: automation.OpMap

    def counted(self, event: automation.EngineEvent) -> None:
        if event.summary_event is not None:
            self._changes = event.summary_event.resource_changes

    def outputs(self) -> automation.OutputMap:
        return {}

    def info(self, show_secrets: bool = True) -> automation.UpdateSummary:
        return automation.UpdateSummary(
            "update", datetime.now(UTC), "", {}, {}, "succeeded", resource_changes=self._changes
        )


@cache
def _pulumi() -> automation.PulumiCommand:
    """To know its version, it is started."""
    return automation.PulumiCommand()


class Deployment:
    """A stack whose program can be exchanged between updates."""

    def __init__(self, folder: Path, environment: dict[str, str], config: dict[str, str] | None = None) -> None:
        self._program: Program = lambda: None
        folder.mkdir(parents=True, exist_ok=True)
        self.state = folder / "state"
        self.state.mkdir()
        workspace = automation.LocalWorkspace(
            work_dir=str(folder),
            program=self._run,
            env_vars=environment | {"PULUMI_BACKEND_URL": f"file://{self.state}"},
            project_settings=automation.ProjectSettings("programs", "python", main=str(Path.cwd())),
            pulumi_command=_pulumi(),
        )
        self.stack = _Stack(f"s-{uuid.uuid4().hex[:6]}", workspace, StackInitMode.CREATE)
        for key, value in (config or {}).items():
            self.stack.set_config(key, automation.ConfigValue(value))

    def _run(self) -> None:
        self._program()

    def up(self, program: Program | None = None) -> dict[str, int]:
        """Runs the update; how many resources it created, updated, replaced, deleted or left the `same`."""
        self._program = program or self._program
        return _counted(self.stack.up(on_event=self.stack.counted).summary.resource_changes)

    def preview(self, program: Program | None = None) -> dict[str, int]:
        self._program = program or self._program
        return _counted(self.stack.preview(on_event=self.stack.counted).change_summary)

    def refresh(self) -> dict[str, int]:
        return _counted(self.stack.refresh(on_event=self.stack.counted).summary.resource_changes)

    def destroy(self) -> dict[str, int]:
        return _counted(self.stack.destroy(on_event=self.stack.counted).summary.resource_changes)

    def outputs(self) -> dict[str, Any]:
        stack = self.stack
        return {key: output.value for key, output in stack.workspace.stack_outputs(stack.name).items()}

    def kept(self) -> str:
        """The complete state as stored on disk."""
        return "".join(path.read_text() for path in self.state.rglob("*.json"))

    def resource(self, name: str) -> dict[str, Any]:
        """A resource of the state, by its logical name."""
        exported = self.stack.export_stack().deployment or {}
        found: dict[str, Any] = next(r for r in exported["resources"] if r["urn"].endswith(f"::{name}"))
        return found


def _counted(changes: Any) -> dict[str, int]:
    return {getattr(key, "value", str(key)): count for key, count in (changes or {}).items()}


@contextmanager
def deployment(folder: Path, environment: dict[str, str], config: dict[str, str] | None = None) -> Iterator[Deployment]:
    """A deployment that is destroyed at the end."""
    made = Deployment(folder, environment, config)
    try:
        yield made
    finally:
        made.destroy()


def unawaited(name: str, namespace: str | None = None, **annotations: str) -> dict[str, Any]:
    """Metadata of an object that no update waits for, so that no node has to run it."""
    metadata: dict[str, Any] = {"name": name, "annotations": {"pulumi.com/skipAwait": "true", **annotations}}
    return metadata | ({"namespace": namespace} if namespace else {})


def pod_template(image: str = "registry.k8s.io/pause:3.10", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "1000m"}}}],
            "schedulerName": "nobody",
        },
    }


def definition(group: str, kind: str) -> Program:
    """A namespaced CustomResourceDefinition that keeps every field."""

    def program() -> None:
        from pulumi_kubernetes.apiextensions import v1

        plural = f"{kind.lower()}s"
        v1.CustomResourceDefinition(
            f"{kind}-definition",
            metadata={"name": f"{plural}.{group}"},
            spec={
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "open_apiv3_schema": {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
                        },
                    }
                ],
            },
        )

    return program


def together(*programs: Program) -> Program:
    def program() -> None:
        for one in programs:
            one()

    return program
