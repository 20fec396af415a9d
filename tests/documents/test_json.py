"""`--output json` of every command is one JSON document and nothing else."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from plimsoll.cli import app
from tests.command import plimsoll
from tests.documents.cluster import cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = "--kubeconfig config"
STATES = "--passphrase-file passphrase --backend file://{folder}"

COMMANDS = {
    "plan": (f"-f {EXAMPLES}/byo", 2),
    "run": (f"--once {CLUSTER} {STATES} --work-folder work", 0),
    "estimate": ("phi-4 --instance-type Standard_NC24ads_A100_v4", 0),
    "presets": ("", 0),
    "prices": ("--from prices.csv", 0),
    "demand": (f"-f {EXAMPLES}/demand", 2),
    "status": (CLUSTER, 0),
    "savings": (f"-f {EXAMPLES}/cluster", 0),
    "drift": (f"{CLUSTER} {STATES}", 0),
    "why workspace": (f"llama -n research -f {EXAMPLES}/byo", 0),
    "why node-profile": (f"l4/g6.xlarge -f {EXAMPLES}/demand", 0),
    "diff": (f"{EXAMPLES}/demand --against {EXAMPLES}/cluster", 0),
    "audit": (f"-f {EXAMPLES}/demand", 0),
    "why pod": (f"team-a/train-0 -f {EXAMPLES}/demand", 2),
    "why node": (f"g6-1 -f {EXAMPLES}/cluster", 0),
    "why demand": (f"default-queue-nvidia-a100-sxm4-40gb-4ba3fabed3 -f {EXAMPLES}/demand", 2),
    "why queue": (f"default-queue -f {EXAMPLES}/demand", 2),
    "why namespace": (f"team-a -f {EXAMPLES}/demand", 2),
    "catalog list": ("--cloud gcp", 0),
    "catalog check": ("--aws-region eu-west-1", 0),
    "queues": (f"-f {EXAMPLES}/cluster", 0),
    "queues check": (f"-f {EXAMPLES}/cluster", 0),
    "import kaito": ("kaito.yaml", 0),
    "import kai": (f"--to-claims --consumable-shares 4 {EXAMPLES}/demand", 2),
    "policy check": (f"{EXAMPLES}/byo", 0),
    "policy list": ("", 0),
    "gpus": (f"-f {EXAMPLES}/cluster", 0),
    "sandbox install": ("--parts etcd", 0),
    "sandbox list": ("", 0),
    "sandbox status": ("", 1),
}
"""By command: arguments that make it print its document, and the exit code, which is not 0 where the document says that
something is refused, or not there."""

_FILES = {
    "passphrase": "secret",
    "prices.csv": "name,price_per_hour\nStandard_NC24ads_A100_v4,3.67\n",
    "kaito.yaml": yaml.safe_dump(
        {
            "apiVersion": "kaito.sh/v1beta1",
            "kind": "Workspace",
            "metadata": {"name": "phi"},
            "resource": {"instanceType": "Standard_NC24ads_A100_v4", "labelSelector": {"matchLabels": {"a": "b"}}},
            "inference": {"preset": {"name": "phi-4"}},
        }
    ),
}
_PROGRAMS = {"pulumi": "v3.259.0", "etcd": "etcd Version: 3.6.4"}
"""What is on PATH, and what it prints as its version."""


@pytest.fixture
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of a command, in a folder with what it reads, beside a cluster."""
    monkeypatch.chdir(tmp_path)
    for name, content in _FILES.items():
        Path(name).write_text(content)
    for name, version in _PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
    with cluster(tmp_path / "config"):
        yield {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}


@contextmanager
def aws() -> Iterator[dict[str, str]]:
    """The variables by which a command asks moto's server instead of AWS."""
    from moto.server import ThreadedMotoServer  # half a second, which other tests need not wait for

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        secrets = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        yield {"AWS_ENDPOINT_URL": f"http://{host}:{port}", **secrets}
    finally:
        server.stop()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_output_is_one_document(command: str, tmp_path: Path, variables: dict[str, str]) -> None:
    arguments, code = COMMANDS[command]
    words = f"{command} {arguments.format(folder=tmp_path)} --output json".split()
    with ExitStack() as stack:
        endpoint = stack.enter_context(aws()) if command == "catalog check" else {}
        done = plimsoll(*words, variables=variables | endpoint)
    assert isinstance(json.loads(done.stdout), dict | list), done.stderr
    assert (done.returncode, "error:" in done.stderr) == (code, False), done.stderr


def test_every_command_with_such_an_output_is_run() -> None:
    assert set(with_json(typer.main.get_command(app), "")) == set(COMMANDS)


def with_json(command: Any, name: str) -> Iterator[str]:
    """The commands in it whose option --output has the choice json, by the names that a user writes."""
    context = typer.Context(command)
    if re.search(r"--output\s+[a-z|]*\bjson\b", command.get_help(context)):
        yield name
    for each in getattr(command, "list_commands", lambda _: [])(context):
        yield from with_json(command.get_command(context, each), f"{name} {each}".strip())
