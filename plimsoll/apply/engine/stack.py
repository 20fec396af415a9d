"""CapacityStack: the commands of a stack. The Automation API's own class runs further ones, such as `stack select`,
which writes files that all stacks share."""

import json
from collections.abc import Callable, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any, Final

import grpc
import orjson
import yaml
from google.protobuf import empty_pb2
from pulumi.automation import LocalWorkspace, ProjectRuntimeInfo, ProjectSettings
from pulumi.automation.errors import CommandError
from pulumi.runtime.proto import events_pb2_grpc, language_pb2_grpc

from plimsoll.apply.engine.language import InlineLanguage, LanguageHost
from plimsoll.apply.engine.process import Engine
from plimsoll.apply.engine.program import Program
from plimsoll.apply.engine.progress import EngineEvent
from plimsoll.apply.errors import engine_error, interrupted_error, unwritable
from plimsoll.apply.settings import PROJECT
from plimsoll.same_user import SameUser

_LOOPBACK: Final = "127.0.0.1"
_UNLIMITED: Final = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
"""Options of a gRPC server without limits on the size of messages."""


class CapacityStack:
    """A stack in a work folder of its own. Creating the object starts nothing.

    Errors of the CLI are raised as types of `plimsoll.apply.errors`.
    """

    def __init__(
        self, name: str, work_dir: Path, engine: Engine, environment: Mapping[str, str], secrets_provider: str
    ) -> None:
        self.name = name
        self.engine = engine
        self._work_dir = work_dir
        try:
            work_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._workspace = LocalWorkspace(
                work_dir=str(work_dir),
                env_vars=dict(environment),
                secrets_provider=secrets_provider,
                project_settings=ProjectSettings(name=PROJECT, runtime=ProjectRuntimeInfo("python")),
                pulumi_command=engine,
            )
        except OSError as error:
            raise unwritable(error, work_dir) from None

    def init(self) -> None:
        """Runs `pulumi stack init`; the stack must not exist. A settings file with the salt of an earlier stack is
        removed."""
        (self._work_dir / f"Pulumi.{self.name}.yaml").unlink(missing_ok=True)
        self._command(["stack", "init", self.name, "--secrets-provider", self._secrets_provider, "--no-select"])

    def remember_secrets(self, secrets: Mapping[str, str]) -> None:
        """Writes the stack's settings file again, because another host may have created the stack."""
        path = self._work_dir / f"Pulumi.{self.name}.yaml"
        text = yaml.safe_dump(dict(secrets))
        try:
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
        except OSError as error:
            raise unwritable(error, path) from None

    def update(self, program: Program, on_event: Callable[[EngineEvent], None], policy_packs: tuple[Path, ...]) -> None:
        """Runs `pulumi up` with an inline program to its end.

        `on_event` is called on a thread of the event log's server, for each event except debug messages.
        """
        language = InlineLanguage(program)
        server, port = _server(language)
        events_pb2_grpc.add_EventsServicer_to_server(_Events(on_event), server)
        server.start()
        args = ["up", "--yes", "--skip-preview", "--suppress-outputs", "--suppress-progress", "--continue-on-error"]
        args += ["--color", "never", "--exec-kind", "auto.inline"]
        args += [f"--client={_LOOPBACK}:{port}", "--event-log", f"tcp://{_LOOPBACK}:{port}"]
        for pack in policy_packs:
            args += ["--policy-pack", str(pack)]
        try:
            self._command([*args, "--stack", self.name])
        finally:
            language.end()
            server.stop(grace=5.0).wait()

    def replace_state(self, deployment: Mapping[str, Any]) -> None:
        """Runs `pulumi stack import`: replaces the state by a deployment (format version 3)."""
        path = self._work_dir / f"{self.name}.import.json"
        try:
            path.write_text(json.dumps({"version": 3, "deployment": deployment}))
            self._command(["stack", "import", "--file", str(path), "--stack", self.name])
        except OSError as error:
            raise unwritable(error, path) from None
        finally:
            path.unlink(missing_ok=True)

    def break_lock(self) -> None:
        """Runs `pulumi cancel`: removes the lock of any holder. The caller must have verified that the holder has
        ended."""
        self._command(["cancel", "--yes", "--stack", self.name])

    def destroy_resources(self) -> None:
        """Runs `pulumi destroy`: removes every resource from the state, in one process, without a program. Objects that
        are retained stay as they are."""
        server, port = _server(LanguageHost())
        server.start()
        args = ["destroy", "--yes", "--skip-preview", "--suppress-progress", "--continue-on-error", "--color", "never"]
        try:
            self._command([*args, f"--client={_LOOPBACK}:{port}", "--stack", self.name])
        finally:
            server.stop(grace=5.0).wait()

    def remove(self) -> None:
        """Runs `pulumi stack rm`; the stack must be empty."""
        self._command(["stack", "rm", "--yes", self.name])

    def export(self) -> bytes:
        """The output of `pulumi stack export`."""
        return self._command(["stack", "export", "--stack", self.name]).encode()

    def list_names(self) -> list[str]:
        """The names of the project's stacks, by `pulumi stack ls`."""
        return [str(each["name"]) for each in json.loads(self._command(["stack", "ls", "--json"]))]

    @property
    def _secrets_provider(self) -> str:
        return self._workspace.secrets_provider or "passphrase"

    def _command(self, args: list[str]) -> str:
        try:
            return self.engine.run(args, self._workspace.work_dir, self._workspace.env_vars).stdout
        except CommandError as error:
            if self.engine.interrupted:
                raise interrupted_error(self.name) from None
            raise engine_error(self.name, str(error)) from None


def _server(language: LanguageHost) -> tuple[grpc.Server, int]:
    """A server of the language host, not started, and its port on the loopback interface."""
    pool = futures.ThreadPoolExecutor(max_workers=8)
    guard = SameUser()
    server = grpc.server(pool, options=_UNLIMITED, interceptors=(guard,))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(language, server)
    guard.port = server.add_insecure_port(f"{_LOOPBACK}:0")
    return server, guard.port


class _Events(events_pb2_grpc.EventsServicer):
    def __init__(self, on_event: Callable[[EngineEvent], None]) -> None:
        self._on_event = on_event

    def StreamEvents(self, request_iterator: Any, context: Any) -> Any:  # noqa: N802
        for request in request_iterator:
            event = orjson.loads(request.event)
            if event.get("diagnosticEvent", {}).get("severity") != "debug":
                self._on_event(event)
        return empty_pb2.Empty()
