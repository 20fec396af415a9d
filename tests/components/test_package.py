"""The component package: what a program in another language sees of the components."""

import json
import subprocess
import sys
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from plimsoll.components import PACKAGED

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
