"""The language host's request for a plugin that the engine names only in the new field."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from pulumi.runtime.proto import language_pb2

from plimsoll.apply.engine import is_running
from plimsoll.language_host import Forwarding, with_program
from tests.awaiting import await_condition


def asked(kind: str, program: str = "", arguments: Sequence[str] = ("127.0.0.1:1",)) -> language_pb2.RunPluginRequest:
    info = language_pb2.ProgramInfo(root_directory="/pack", program_directory="/pack", entry_point=".")
    request = language_pb2.RunPluginRequest(
        pwd="/project", program=program, args=arguments, env=["A=b"], kind=kind, info=info
    )
    made: language_pb2.RunPluginRequest = language_pb2.RunPluginRequest.FromString(
        with_program(request.SerializeToString())
    )
    return made


def test_a_policy_pack_is_run_by_the_sdk_in_its_own_folder() -> None:
    message = asked("analyzer")
    command = [message.program, *message.args]
    assert command == ["-u", "-m", "pulumi.policy", "127.0.0.1:1", "."]
    assert message.pwd == "/pack"
    assert list(message.env) == ["A=b"]


def test_another_plugin_is_run_as_a_program_of_its_folder() -> None:
    message = asked("resource")
    assert [message.program, *message.args] == [".", "127.0.0.1:1"]
    assert message.pwd == "/pack"


def test_a_program_that_the_engine_names_is_left_as_it_is() -> None:
    message = asked("analyzer", program="/elsewhere")
    assert [message.program, *message.args] == ["/elsewhere", "127.0.0.1:1"]
    assert message.pwd == "/project"


@pytest.mark.parametrize("disabled", [True, False])
def test_the_host_lists_required_plugins_only_if_the_engine_installs_them(
    disabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", str(disabled).lower())
    with grpc.insecure_channel("127.0.0.1:1") as channel:
        forwarding = Forwarding(channel)
        for method, forwarded in (("GetRequiredPlugins", not disabled), ("GetRequiredPackages", True), ("Run", True)):
            asked = SimpleNamespace(method=f"/pulumirpc.LanguageRuntime/{method}")
            assert (forwarding.service(asked) is not None) == forwarded


def test_the_host_ends_with_its_parent_process(tmp_path: Path) -> None:
    host = tmp_path / "host"
    host.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    host.chmod(0o755)
    program = f"from plimsoll.language_host import main; main({str(host)!r})"
    before = subprocess.Popen([sys.executable, "-c", program])
    pid = int(await_condition(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 120))
    before.kill()
    before.wait()
    await_condition(lambda: not is_running(pid), message="the host has ended")
