"""Engine processes: an interrupt is reported by the writer that sent it, and plugins end with their engine."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from pulumi.automation import CommandResult
from pulumi.automation.errors import CommandError
from pulumi.runtime.proto import language_pb2, language_pb2_grpc
from semver import VersionInfo

from plimsoll.apply import ApplyError, UpdateFailedError, UpdateInterruptedError
from plimsoll.apply.engine import HOLDER, CapacityStack, Engine, end_orphans, end_session, find_pulumi, is_running
from tests.awaiting import await_condition

HERE = socket.gethostname()
DEAD = 2**22 - 1

PLUGIN = """
import os, signal, sys, time
os.setpgid(0, 0)
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
"""
"""A plugin as the engine starts it: in a process group of its own, without the engine's output. It does not look
whether its engine is there, as a real one does not for minutes."""

ENGINE = f"""#!{sys.executable}
import os, signal, subprocess, sys, time
def interrupted(*_):
    sys.stderr.write("error: context canceled\\n")
    sys.exit(1)
signal.signal(signal.SIGINT, interrupted)
behaviour, told = sys.argv[2:4]
kind = "stubborn" if behaviour == "stubborn" else "ready"
plugin = subprocess.Popen([sys.executable, "-c", {PLUGIN!r}, told, kind], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
while not os.path.exists(told) or not open(told).read():
    time.sleep(0.01)
if behaviour == "fails":
    sys.exit("error: something went wrong")
if behaviour == "stays":
    time.sleep(600)
"""
"""An engine that leaves its plugin: it ends at once (whatever the plugin is), fails, or stays until it is interrupted,
when it says nothing that tells so."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "pulumi"
    path.write_text(ENGINE)
    path.chmod(0o755)
    return path


@pytest.fixture
def engine(program: Path) -> Iterator[Engine]:
    made = Engine(program, VersionInfo(3, 259, 0))
    yield made
    made.kill()


def plugin_of(reported: Path) -> int:
    """The process id of the engine's plugin, once it runs."""
    return int(await_condition(lambda: reported.exists() and reported.read_text(), message="the plugin runs"))


@pytest.fixture
def reported(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "plugin"
    yield path
    if path.exists() and is_running(pid := int(path.read_text())):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("behaviour", ["ends", "stubborn"])
def test_a_plugin_ends_with_its_engine(engine: Engine, reported: Path, behaviour: str) -> None:
    engine.run([behaviour, str(reported)], str(reported.parent), {})
    assert not is_running(plugin_of(reported))


def test_a_plugin_ends_with_an_engine_that_is_killed(engine: Engine, reported: Path) -> None:
    ended: list[BaseException] = []

    def run() -> None:
        try:
            engine.run(["stays", str(reported)], str(reported.parent), {})
        except CommandError as error:
            ended.append(error)

    running = threading.Thread(target=run)
    running.start()
    plugin = plugin_of(reported)
    assert os.getpgid(plugin) == plugin, "a signal to the engine's process group does not reach it"
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)
    running.join()
    assert len(ended) == 1
    assert not is_running(plugin)
    assert not engine.interrupted, "somebody else killed it"
    assert engine.ended_by_signal
    with pytest.raises(CommandError):
        engine.run(["fails", str(reported)], str(reported.parent), {})
    assert engine.ended_by_signal, "it may have failed at the lock that the first one left"
    engine.run(["ready", str(reported)], str(reported.parent), {})
    assert not engine.ended_by_signal


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT is KeyboardInterrupt, as in a terminal; processes of a parallel test run ignore it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_engine_before_the_caller(engine: Engine, reported: Path) -> None:
    """An engine that runs on alone loses its output, is killed at the next line, and leaves its lock."""
    pids: list[int] = []

    def interrupt() -> None:
        plugin_of(reported)
        pids.append(engine.pid or 0)
        os.kill(os.getpid(), signal.SIGINT)

    terminal = threading.Thread(target=interrupt)
    terminal.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(["stays", str(reported)], str(reported.parent), {})
    terminal.join()
    assert not is_running(pids[0])
    assert not is_running(plugin_of(reported))
    assert engine.interrupted


def test_processes_of_another_engine_are_left_alone(
    engine: Engine, program: Path, reported: Path, tmp_path: Path
) -> None:
    other = subprocess.Popen([str(program), "x", "stays", str(reported)], start_new_session=True)
    try:
        plugin = plugin_of(reported)
        engine.run(["ends", str(tmp_path / "mine")], str(tmp_path), {})
        end_session(other.pid)
        assert other.poll() is None
        assert is_running(plugin)
    finally:
        other.kill()
        other.wait()
    end_session(other.pid)
    assert not is_running(plugin)


def run_to_its_error(stack: CapacityStack) -> ApplyError:
    with pytest.raises((UpdateFailedError, UpdateInterruptedError)) as caught:
        stack.break_lock()
    return caught.value


def a_stack(engine: Engine, tmp_path: Path, *command: str) -> CapacityStack:
    """A stack whose CLI gets `command` before its own arguments."""
    made = CapacityStack("capacity-test-0", tmp_path / "work", engine, {}, "passphrase")
    run = engine.run
    made.engine.run = lambda args, *rest, **more: run([*command, *args], *rest, **more)  # type: ignore[method-assign]
    return made


def test_an_interrupted_command_raises_update_interrupted_whatever_the_engine_prints(
    engine: Engine, reported: Path, tmp_path: Path
) -> None:
    stack = a_stack(engine, tmp_path, "stays", str(reported))

    def interrupt() -> None:
        plugin_of(reported)
        engine.interrupt()

    writer = threading.Thread(target=interrupt)
    writer.start()
    error = run_to_its_error(stack)
    writer.join()
    assert isinstance(error, UpdateInterruptedError)
    assert "capacity-test-0" in error.message


def test_the_command_after_an_interrupt_is_not_interrupted(engine: Engine, reported: Path, tmp_path: Path) -> None:
    engine._interrupted = True
    assert isinstance(run_to_its_error(a_stack(engine, tmp_path, "fails", str(reported))), UpdateFailedError)


class Asking(Engine):
    """Asks the language host of its command for packages, as the real engine does before it deletes objects."""

    answered = False

    def run(self, args: list[str], *_: Any, **__: Any) -> CommandResult:
        (address,) = (arg.removeprefix("--client=") for arg in args if arg.startswith("--client="))
        with grpc.insecure_channel(address) as channel:
            host = language_pb2_grpc.LanguageRuntimeStub(channel)
            packages = host.GetRequiredPackages(language_pb2.GetRequiredPackagesRequest(), timeout=10)
        self.answered = list(packages.packages) == []
        return CommandResult("", "", 0)


def test_objects_are_deleted_without_starting_the_language_host_of_python(program: Path, tmp_path: Path) -> None:
    engine = Asking(program, VersionInfo(3, 259, 0))
    CapacityStack("capacity-test-0", tmp_path / "work", engine, {}, "passphrase").destroy_resources()
    assert engine.answered


@pytest.mark.parametrize(
    ("writer", "home", "ended"),
    [
        (f"{HERE}_{DEAD}_ab", "engine-home", True),
        (f"{HERE}_{os.getpid()}_ab", "engine-home", False),
        (f"{HERE}_{DEAD}_ab", "another", False),
        ("", "engine-home", False),
    ],
    ids=["a dead writer's", "a living writer's", "of another work folder", "nobody's"],
)
def test_plugins_of_a_killed_writer_are_ended(
    program: Path, reported: Path, tmp_path: Path, writer: str, home: str, ended: bool
) -> None:
    variables = {"PULUMI_HOME": str(tmp_path / home), **({HOLDER: writer} if writer else {})}
    engine = subprocess.Popen([str(program), "x", "stays", str(reported)], start_new_session=True, env=variables)
    plugin = plugin_of(reported)
    end_orphans(tmp_path / "engine-home")
    assert is_running(plugin), "its engine lives, and ends it"
    engine.kill()
    engine.wait()
    await_condition(lambda: psutil.Process(plugin).ppid() != engine.pid, message="an orphan")
    end_orphans(tmp_path / "engine-home")
    assert is_running(plugin) is not ended


def test_ctrl_c_does_not_reach_the_process_that_reports_the_version(tmp_path: Path) -> None:
    """A terminal sends it to every process of the foreground, and the writer reports that it is stopping."""
    told, pulumi = tmp_path / "session", tmp_path / "pulumi"
    pulumi.write_text(f"#!/bin/sh\ncut -d' ' -f6 /proc/$$/stat > {told}\necho v3.300.0\n")
    pulumi.chmod(0o700)
    assert find_pulumi(pulumi) == (pulumi, VersionInfo(3, 300, 0))
    assert int(told.read_text()) != os.getsid(0)
