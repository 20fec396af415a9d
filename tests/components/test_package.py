"""The component package: what a program in another language sees of the components."""

import json
import subprocess
import sys
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from plimsoll.apply.engine import is_running
from plimsoll.components import PACKAGED
from tests.awaiting import await_condition

ENTRY = Path(__file__).resolve().parents[2] / "components"


def test_its_schema_has_every_packaged_component() -> None:
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


def test_the_plugin_ends_with_what_has_started_it() -> None:
    """As the language host, which the engine may kill before its plugins have ended."""
    starting = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.read()"
    plugin = [sys.executable, str(ENTRY), "127.0.0.1:1"]
    command = [sys.executable, "-c", starting, *plugin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        plugin_id = int(host.stdout.readline())
        assert host.stdout.readline().strip().isdigit(), "the plugin serves, and has printed its port"
        host.kill()
    await_condition(lambda: not is_running(plugin_id), message="the plugin has ended")
