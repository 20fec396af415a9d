import fcntl
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plimsoll import home
from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import Folder, ProcessState, Sandbox, Settings, State
from plimsoll.sandbox.parts import Found, part
from tests.command import plimsoll


@pytest.fixture(autouse=True)
def sandbox_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("name", ["", "A", "a b", "../x", "-a", "a-", "a" * 41, "a/b"])
def test_a_name_that_would_not_be_one_folder_is_refused(name: str) -> None:
    with pytest.raises(PlimsollError, match="is not a valid name for a sandbox"):
        Sandbox.named(name)


def test_the_state_is_below_plimsoll_home_else_xdg_else_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert home.sandboxes() == tmp_path / "home" / "sandboxes"
    monkeypatch.delenv("PLIMSOLL_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert home.sandboxes() == tmp_path / "state" / "plimsoll" / "sandboxes"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home.sandboxes() == tmp_path / ".local" / "state" / "plimsoll" / "sandboxes"


def test_a_folder_that_cannot_be_written_is_named_with_what_to_set(sandbox_home: Path) -> None:
    sandbox_home.write_text("a file where the folder should be")

    with pytest.raises(PlimsollError, match=r"Cannot write .*\n.*PLIMSOLL_HOME"):
        Folder("one").create()


def test_a_full_disk_is_an_error_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10 * 1024**2})())

    with pytest.raises(PlimsollError, match="has 10 MiB of free disk; a sandbox needs 512"):
        Folder("one").create()

    assert not home.sandboxes().exists()


def test_a_sandbox_that_does_not_exist_is_not_up_and_down_does_nothing() -> None:
    sandbox = Sandbox.named("none")

    assert not sandbox.is_up()
    assert sandbox.down() is False
    with pytest.raises(PlimsollError, match="none is not running"):
        sandbox.environ()


def test_down_keeps_the_folder_of_plimsoll_home(sandbox_home: Path) -> None:
    sandbox_home.mkdir()
    folder = Folder("one")
    folder.create()

    assert Sandbox.named("one").down()

    assert list(sandbox_home.iterdir()) == []


def test_the_advice_on_an_ended_process_is_a_command_for_this_sandbox() -> None:
    folder = Folder("one")
    folder.create()
    (folder.logs / "etcd.log").write_text("out of space\n")
    folder.settings.write_text(Settings().model_dump_json())
    ended = ProcessState(name="etcd", pid=1, created=0, exit_code=2)
    folder.state.write_text(State(supervisor=1, server="https://127.0.0.1:1", processes=[ended]).model_dump_json())

    done = CliRunner().invoke(app, ["sandbox", "status", "--name", "one"])
    advised = re.search("etcd has ended with 2: see `plimsoll (.*)`", " ".join(done.stderr.split()))
    assert advised is not None, done.stderr

    log = plimsoll(*advised[1].split())
    assert (log.returncode, log.stdout) == (0, "out of space\n")


def test_up_waits_for_the_end_of_a_supervisor_whose_up_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken for a running sandbox, also while its `up` was still starting it."""
    sandbox = Sandbox.named("one")
    sandbox.folder.create()
    with sandbox.folder.supervisor_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        supervisor = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock.fileno()])

    def supervise(*_: object, **__: object) -> None:
        assert supervisor.returncode == 0

    monkeypatch.setattr("plimsoll.sandbox.sandbox.find_programs", lambda _: [])
    monkeypatch.setattr(time, "sleep", lambda _: supervisor.communicate())
    monkeypatch.setattr(Sandbox, "_prepare", lambda *_, **__: None)
    monkeypatch.setattr(Sandbox, "_supervise", supervise)

    assert sandbox.up() is True


def test_the_supervisor_finds_the_folder_of_a_relative_plimsoll_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in another folder than `up`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLIMSOLL_HOME", "home")
    folder, found = Folder("one").path, []

    def start(*_: object, cwd: str, env: dict[str, str] | None = None, **__: Any) -> None:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(os, "environ", env or os.environ)
        found.append(Folder("one").path)
        raise PlimsollError("not started")

    monkeypatch.setattr("plimsoll.sandbox.sandbox.find_programs", lambda _: [])
    monkeypatch.setattr(Sandbox, "_prepare", lambda *_, **__: None)
    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(PlimsollError, match="not started"):
        Sandbox.named("one").up()

    assert found == [folder]


@pytest.mark.parametrize("file", ["state.json", "settings.json"])
def test_a_damaged_file_is_named_and_the_sandbox_can_be_removed(file: str) -> None:
    """A power failure may leave it empty."""
    sandbox = Sandbox.named("one")
    sandbox.folder.create()
    damaged = sandbox.folder.path / file
    damaged.touch()

    with pytest.raises(PlimsollError, match=rf"{damaged} is damaged: .*\n.*sandbox down --name one"):
        (sandbox.state(), sandbox.settings())

    assert sandbox.down()
    assert not sandbox.folder.path.exists()


def test_files_of_a_newer_release_are_read() -> None:
    sandbox = Sandbox.named("one")
    sandbox.folder.create()
    sandbox.folder.state.write_text('{"supervisor": 1, "server": "https://127.0.0.1:1", "new": {}}')
    sandbox.folder.settings.write_text('{"trainer": true, "new": {}}')

    assert sandbox.state() == State(supervisor=1, server="https://127.0.0.1:1")
    assert sandbox.settings() == Settings(trainer=True)


def test_the_language_host_runs_with_a_python_in_a_folder_with_spaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "it's a folder" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    name = "pulumi-language-python"
    host = Found(part(name), name, "cache", tmp_path / "host" / name, "bin-python")
    pulumi = Found(part("pulumi"), "pulumi", "cache", tmp_path / "pulumi", "bin")
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr("plimsoll.sandbox.sandbox.find_programs", lambda _: [host, pulumi])
    monkeypatch.setattr(Sandbox, "_supervise", lambda *_, **__: None)
    sandbox = Sandbox.named("one")
    sandbox.up()

    script = sandbox.folder.bin("bin-python") / name
    done = subprocess.run([script, "an argument", "127.0.0.1:1"], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [str(script), "an argument", "127.0.0.1:1"]
    compile(script.read_text(), str(script), "exec")


def test_the_engine_finds_the_plugin_under_the_version_of_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its own version is; and none of an earlier start is left."""
    name = "pulumi-resource-kubernetes"
    plugin = Found(part("pulumi-kubernetes"), name, "cache", tmp_path / "part" / name, None)
    pulumi = Found(part("pulumi"), "pulumi", "cache", tmp_path / "pulumi", "bin")
    monkeypatch.setattr("plimsoll.sandbox.sandbox.find_programs", lambda _: [plugin, pulumi])
    monkeypatch.setattr(Sandbox, "_supervise", lambda *_, **__: None)
    sandbox = Sandbox.named("one")
    plugins = sandbox.folder.pulumi / "plugins"
    (plugins / "resource-kubernetes-v4.0.0").mkdir(parents=True)
    sandbox.up()

    (installed,) = plugins.iterdir()
    assert installed.name == f"resource-kubernetes-v{importlib.metadata.version('pulumi-kubernetes')}"
    assert (installed / name).readlink() == tmp_path / "part" / name


def test_a_sandbox_names_how_to_install_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    kai = Found(part("kai-scheduler"), "kai", "build", None, None)
    monkeypatch.setattr("plimsoll.sandbox.sandbox.find_programs", lambda _: [kai])
    with pytest.raises(PlimsollError, match=r"kai-scheduler\.\n.*sandbox install --kai`"):
        Sandbox.named("one").up(kai=True)


def test_another_port_for_a_running_sandbox_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox.named("one")
    sandbox.folder.create()
    apiserver = ProcessState(name="kube-apiserver", pid=1, created=0, port=6443)
    running = State(supervisor=1, ready=True, server="https://127.0.0.1:6443", processes=[apiserver])
    sandbox.folder.state.write_text(running.model_dump_json())
    sandbox.folder.settings.write_text(Settings().model_dump_json())
    monkeypatch.setattr("plimsoll.sandbox.sandbox.find_programs", lambda _: [])

    with sandbox.folder.supervisor_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sandbox.up() is False
        assert sandbox.up(port=6443) is False
        with pytest.raises(PlimsollError, match=r"runs on port 6443\.\n.*sandbox down --name one"):
            sandbox.up(port=7443)


def test_all_sandboxes_are_listed_by_name(sandbox_home: Path) -> None:
    empty = CliRunner().invoke(app, ["sandbox", "list"])
    for name in ("two", "one", "Not_a_name"):
        (sandbox_home / "sandboxes" / name).mkdir(parents=True)
    (sandbox_home / "sandboxes" / "file").touch()

    listed = CliRunner().invoke(app, ["sandbox", "list", "--output", "json"])

    assert (empty.exit_code, empty.stdout) == (0, "There is no sandbox.\n")
    assert [(each["name"], each["up"]) for each in json.loads(listed.stdout)] == [("one", False), ("two", False)]
