"""Runs a Pulumi program with mocks in its own context, and returns what it declared."""

from collections.abc import Callable, Collection
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pulumi
from pulumi.output import Unknown
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2

from tests import golden

HIDDEN = "(not known yet)"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
GOLDEN = Path(__file__).parent / "golden"


class _Recorder(pulumi.runtime.Mocks):
    def __init__(self) -> None:
        self.resources: list[dict[str, Any]] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if not args.typ.startswith("plimsoll:"):
            self.resources.append({"type": args.typ, "name": args.name, "inputs": _whole(args.inputs)})
        return (f"{args.name}-id", args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return {}, []


def declared(
    program: Callable[[], Any], stack: str = "test", config: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """Type, name and inputs of each Kubernetes resource that the program declares, in order of type and name."""
    recorder = _Recorder()
    _run(program, recorder, MockMonitor(recorder), stack, config or {})
    return sorted(recorder.resources, key=lambda each: (each["type"], each["name"]))


def requests(
    program: Callable[[], Any], config: dict[str, str] | None = None, secret_keys: Collection[str] = ()
) -> dict[str, resource_pb2.RegisterResourceRequest]:
    """The registration requests of the engine, with options, by `type::name`; the type is the kind alone.

    `secret_keys` are those of `config` that contain a secret."""
    recorder = _Recorder()
    monitor = _Requests(recorder)
    _run(program, recorder, monitor, "test", config or {}, secret_keys)
    return monitor.requests


class _Requests(MockMonitor):
    def __init__(self, mocks: pulumi.runtime.Mocks) -> None:
        super().__init__(mocks)
        self.requests: dict[str, resource_pb2.RegisterResourceRequest] = {}

    def RegisterResource(self, request: resource_pb2.RegisterResourceRequest) -> Any:
        package = request.type.partition(":")[0]
        self.requests[f"{package}:{request.type.rpartition(':')[2]}::{request.name}"] = request
        register: Callable[[resource_pb2.RegisterResourceRequest], Any] = super().RegisterResource
        return register(request)


def _run(
    program: Callable[[], Any],
    recorder: _Recorder,
    monitor: MockMonitor,
    stack: str,
    config: dict[str, str],
    secret_keys: Collection[str] = (),
) -> None:
    def run() -> None:
        pulumi.runtime.set_mocks(recorder, project="plimsoll", stack=stack, preview=True, monitor=monitor)
        pulumi.runtime.set_all_config(config, list(secret_keys))
        test: Callable[[Callable[[], Any]], Callable[[], None]] = pulumi.runtime.test
        test(program)()

    # The settings of Pulumi are context variables: those of this run end with its context.
    copy_context().run(run)


def assert_golden(name: str, resources: list[dict[str, Any]]) -> None:
    """Compares with the golden file of that name. `PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/components` writes it."""
    golden.assert_golden(GOLDEN / f"{name}.yaml", resources)


def _whole(value: Any) -> Any:
    """Pulumi's protocol has no integers; the engine's providers convert whole numbers back."""
    if isinstance(value, Unknown):
        return HIDDEN
    if isinstance(value, dict):
        if _SIGNATURE in value:
            return _whole(value["value"])  # a secret
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def manifest(resources: list[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    """The inputs of the only resource of that kind; with `name`, of the one with this object or resource name."""

    def names(each: dict[str, Any]) -> tuple[Any, ...]:
        return (None, each["name"], (each["inputs"].get("metadata") or {}).get("name"))

    found: list[dict[str, Any]] = [
        each["inputs"] for each in resources if each["type"].endswith(f":{kind}") and name in names(each)
    ]
    assert len(found) == 1, f"{len(found)} of {kind} {name or ''}"
    return found[0]
