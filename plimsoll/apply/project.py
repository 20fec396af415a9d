"""The stacks of a user's project, with the backend, cluster and passphrase of the capacity stacks."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pulumi.automation as auto

from plimsoll.apply.engine import (
    PASSPHRASE_VARIABLE,
    Engine,
    check_passphrase,
    find_provider,
    find_pulumi,
    make_work_folder,
)
from plimsoll.apply.errors import engine_error
from plimsoll.apply.identity import cluster_identity
from plimsoll.apply.settings import ApplySettings
from plimsoll.kube import Connection, Kubeconfig, Objects, kind_of_type, parse_id
from plimsoll.yaml_text import write_yaml

_NO_CHANGE = frozenset({"same", "read", "refresh"})
"""Steps of the engine that change no object."""


@contextmanager
def project_environment(settings: ApplySettings, connection: Connection) -> Iterator[dict[str, str]]:
    """Context manager: environment variables of the CLI for the stacks of a user's project.

    Settings that are not given are those of the process. Raises EngineMissingError, ProviderMissingError,
    PassphraseError, or the errors of the cluster.
    """
    check_passphrase(settings)
    make_work_folder(settings)
    provider = find_provider(settings, find_pulumi(settings.pulumi)[0], lambda: cluster_identity(connection))
    # The CLI would take it instead of the file, also if it is empty.
    taken = os.environ.pop(PASSPHRASE_VARIABLE, None) if settings.passphrase_file else None
    try:
        yield {
            **provider.environment,
            **({"PULUMI_BACKEND_URL": settings.backend} if settings.backend else {}),
            **({"PULUMI_CONFIG_PASSPHRASE_FILE": str(settings.passphrase_file)} if settings.passphrase_file else {}),
            **({"KUBECONFIG": str(_kubeconfig(settings))} if settings.kubeconfig or settings.context else {}),
        }
    finally:
        if taken is not None:
            os.environ[PASSPHRASE_VARIABLE] = taken


def _kubeconfig(settings: ApplySettings) -> Path:
    """Path of a kubeconfig whose current context is that of the settings, because a project's stack may not name a
    context."""
    if settings.context is None:
        assert settings.kubeconfig is not None
        return settings.kubeconfig
    source = settings.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    read = Kubeconfig.read(str(source), settings.context)
    path = settings.work_folder / "project.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(write_yaml({**read.content, "current-context": read.context}))
    return path


class ProjectStack:
    """One stack of a project in a folder, with the variables of `project_environment`.

    Raises the ApplyError that matches the CLI's output, even if it is not about this stack.
    """

    def __init__(self, project: Path, name: str, variables: Mapping[str, str]) -> None:
        self.name = name
        self._stack: auto.Stack | None = None
        self._declared: list[tuple[str, str]] = []
        """Type and id of each object in its state."""
        try:
            given = {PASSPHRASE_VARIABLE: taken} if (taken := os.environ.get(PASSPHRASE_VARIABLE)) is not None else {}
            options = auto.LocalWorkspaceOptions(
                env_vars={**given, **variables},
                # The library's own leaves the CLI without readers at Ctrl-C, and so the stack locked.
                pulumi_command=Engine(*find_pulumi(None)),
            )
            self._stack = auto.select_stack(stack_name=name, work_dir=str(project), opts=options)
            self._declared = list(_objects(self._stack.export_stack()))
        except auto.StackNotFoundError:
            self._stack = None
        except auto.CommandError as error:
            raise engine_error(name, str(error)) from None

    @property
    def exists(self) -> bool:
        return self._stack is not None

    def destroy(self) -> None:
        """Deletes its objects, then the stack, but not its file, which has what the user declared. Does nothing if the
        stack does not exist."""
        if self._stack is None:
            return
        try:
            self._stack.destroy(color="never")
            self._stack.workspace.remove_stack(self.name, preserve_config=True)
        except auto.CommandError as error:
            raise engine_error(self.name, str(error)) from None

    def preview(self) -> list[tuple[str, str]]:
        """(operation, URN) of each operation of an update after a refresh. Nothing is written."""
        found: list[tuple[str, str]] = []

        def on_event(event: auto.EngineEvent) -> None:
            step = event.resource_pre_event
            if step is not None and str(step.metadata.op.value) not in _NO_CHANGE:
                found.append((str(step.metadata.op.value), step.metadata.urn))

        if self._stack is not None:
            try:
                self._stack.preview(refresh=True, on_event=on_event, color="never")
            except auto.CommandError as error:
                raise engine_error(self.name, str(error)) from None
        return found

    def left(self, cluster: Objects) -> list[str]:
        """The objects of its state, as it was when this object was created, that still exist in the cluster."""
        found = []
        for token, resource_id in self._declared:
            kind, (namespace, name) = kind_of_type(token), parse_id(resource_id)
            if cluster.get(kind, namespace, name) is not None:
                found.append(f"{kind.kind} {resource_id}")
        return found


def _objects(exported: auto.Deployment) -> Iterator[tuple[str, str]]:
    for record in (exported.deployment or {}).get("resources") or ():
        token = str(record.get("type") or "")
        is_object = token.startswith("kubernetes:") and not token.startswith("kubernetes:helm.sh")
        if record.get("custom") and is_object and record.get("id"):
            yield token, str(record["id"])
