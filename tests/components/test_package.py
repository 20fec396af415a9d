"""The component package, as programs in other languages use it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from plimsoll.apply.engine import is_running
from plimsoll.components import PACKAGED
from plimsoll.model.meta import Declared
from tests.awaiting import await_condition

ENTRY = Path(__file__).resolve().parents[2] / "components"


def test_the_schema_has_every_component_of_the_package() -> None:
    command = [sys.executable, str(ENTRY), "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            port = int(host.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                answer = provider_pb2_grpc.ResourceProviderStub(channel).GetSchema(provider_pb2.GetSchemaRequest())
        finally:
            host.kill()
    schema = json.loads(answer.schema)
    committed = json.loads((ENTRY / "schema.json").read_text())
    assert schema == committed, "python components/schema.py > components/schema.json writes it anew"
    assert schema["name"] == "plimsoll"
    assert set(schema["resources"]) == {f"plimsoll:index:{each.__name__}" for each in PACKAGED}
    assert all(each["isComponent"] for each in schema["resources"].values())
    assert not any(name.endswith("Args") for name in schema["types"]), "generators add it"


def test_properties_are_spelled_as_in_the_custom_resources() -> None:
    """Only the case may differ: the SDK derives gpuMemoryGib from Python's name of the argument."""
    schema = json.loads((ENTRY / "schema.json").read_text())
    names = {name for each in schema["types"].values() for name in each["properties"]}
    names |= {name for each in schema["resources"].values() for name in (*each["inputProperties"], *each["properties"])}
    models = set(subclasses(Declared))
    aliases = {field.alias or name for each in models for name, field in each.model_fields.items()}
    assert {"gpuMemoryGiB", "sizeGiB", "nodeClassRef", "overheadGib"} <= names & aliases
    by_letters = {alias.lower(): alias for alias in aliases}
    assert {name: by_letters[name.lower()] for name in names - aliases if name.lower() in by_letters} == {}


def subclasses(of: type[Declared]) -> Iterator[type[Declared]]:
    for each in of.__subclasses__():
        yield each
        yield from subclasses(each)


def test_the_plugin_ends_with_its_parent_process() -> None:
    """For example with the language host, which the engine may kill before its plugins have ended."""
    starting = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.read()"
    plugin = [sys.executable, str(ENTRY), "127.0.0.1:1"]
    command = [sys.executable, "-c", starting, *plugin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        plugin_id = int(host.stdout.readline())
        assert host.stdout.readline().strip().isdigit(), "the plugin serves, and has printed its port"
        host.kill()
    await_condition(lambda: not is_running(plugin_id), message="the plugin has ended")
