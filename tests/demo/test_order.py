"""What the demo prints while parts build, and how it ends if they cannot be built.

The compiler is a script that waits until the test lets it continue. A run of the demo itself tests its steps.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import pytest

from demo import introduction
from demo.introduction import DEMAND, PLAN, Explained
from demo.stage import PROJECT
from plimsoll.sandbox.parts import part_names
from tests.interrupts import hearing_interrupts

_PATIENCE_SECONDS = 120

pytestmark = pytest.mark.xdist_group("demo")
"""In one process, what several tests look at runs once."""


@dataclass
class Running:
    """A running demo, with the folder in which its compiler records what it did."""

    process: "subprocess.Popen[str]"
    folder: Path

    def read_until(self, words: str) -> str:
        """Reads the output up to the line that contains `words`."""
        assert self.process.stdout is not None
        message = ""
        for line in self.process.stdout:
            message += line
            if words in line:
                return message
        raise AssertionError(f"{words!r} was never said:\n{message}")

    def await_compiler(self) -> None:
        (self.folder / "began").read_text()

    def compilers(self) -> list[int]:
        """The process ids of all compilers that ran."""
        return [int(file.name.removeprefix("compiler-")) for file in self.folder.glob("compiler-*")]


@contextmanager
def running(tmp_path: Path) -> Iterator[Running]:
    """A demo without any part. Its compiler waits for the test and then fails for lack of a network."""
    path, gate = tmp_path / "path", tmp_path / "gate"
    path.mkdir()
    os.mkfifo(gate)
    os.mkfifo(tmp_path / "began")
    go = path / "go"
    go.write_text(
        f"""#!/bin/sh
case $1 in
version) echo 'go version go1.99.0 linux/amd64' ;;
env) echo {tmp_path}; echo {tmp_path} ;;
*)
    : > {tmp_path}/compiler-$$
    echo > {tmp_path}/began
    : < {gate}
    echo 'dial tcp: lookup proxy.golang.org: no such host' >&2
    exit 1 ;;
esac
"""
    )
    go.chmod(0o755)
    environ = {
        "PATH": f"{path}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "COLUMNS": "240",
        **{key: value for key, value in os.environ.items() if key.startswith("LC_") or key == "LANG"},
    }
    process = subprocess.Popen(
        hearing_interrupts("import runpy; runpy.run_module('demo', run_name='__main__')"),
        cwd=PROJECT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # Killed it would leave its compilers.
    watchdog = threading.Timer(_PATIENCE_SECONDS, process.terminate)
    watchdog.start()
    try:
        yield Running(process, tmp_path)
    finally:
        watchdog.cancel()
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as it:
        yield it


@dataclass(frozen=True)
class Failed:
    """What a demo printed until it had explained two commands, and after its compiler failed."""

    explained: str
    still_ran: bool
    rest: str
    code: int
    compilers: list[int]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Failed:
    with running(tmp_path_factory.mktemp("failed")) as demo:
        explained = demo.read_until(DEMAND.words[-1][1])
        demo.await_compiler()
        still_ran = demo.process.poll() is None
        (demo.folder / "gate").write_text("")
        rest = demo.process.communicate()[0]
        return Failed(explained, still_ran, rest, demo.process.returncode, demo.compilers())


def test_two_commands_are_explained_while_parts_build(failed: Failed) -> None:
    message = failed.explained

    assert message.index(introduction.WHAT[:40]) < message.index("Building kubernetes")
    assert message.index("Building kubernetes") < message.index("$ plimsoll plan") < message.index("$ plimsoll demand")
    assert failed.still_ran


def test_only_needed_parts_are_built_and_those_of_the_first_half_first(failed: Failed) -> None:
    listed, said, _ = failed.explained.replace("\n", " ").partition("the next run continues it")
    assert said
    built = re.findall(r"Building (.*?):", listed)[0].split(", ")

    assert built == [*part_names(karpenter=False, lws=False), "karpenter"]
    assert {"kubernetes", "etcd", "kwok", "pulumi"} < set(built)


def test_a_build_that_fails_ends_the_demo_with_the_part_its_command_and_what_to_do(failed: Failed) -> None:
    message = failed.rest
    assert failed.code == 1
    assert re.search(r"error: The part \w+ could not be built: `go build .*ended with 1", message)
    assert "no such host" in message
    assert "The whole log: " in message
    assert "GOPROXY" in message
    assert "`make demo`" in message
    assert "Traceback" not in message
    assert failed.compilers
    assert not [pid for pid in failed.compilers if psutil.pid_exists(pid)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_builds(demo: Running, number: signal.Signals) -> None:
    demo.read_until("$ plimsoll plan")
    demo.await_compiler()

    demo.process.send_signal(number)

    message = demo.process.communicate()[0]
    assert demo.process.returncode == 130
    assert "Interrupted. Nothing is left running" in message
    assert "Traceback" not in message
    assert not [pid for pid in demo.compilers() if psutil.pid_exists(pid)]
    assert not list(demo.folder.rglob(".build-*"))


def test_without_go_the_demo_says_so_at_once(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=PROJECT, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert "Go is not on PATH" in done.stderr
    assert "Traceback" not in done.stderr


lines = cache(introduction.lines)


@pytest.mark.parametrize("explained", [PLAN, DEMAND], ids=["plan", "demand"])
@pytest.mark.parametrize("width", [60, 120])
def test_each_term_is_explained_before_the_line_that_uses_it(explained: Explained, width: int) -> None:
    reported = lines(explained, width)

    assert reported[0] == (explained.about, True)
    for pattern, words in explained.words:
        following = reported[reported.index((words, True)) + 1]
        assert not following[1]
        assert re.match(pattern, following[0])


def test_the_verdicts_of_the_plan_are_all_explained() -> None:
    reported = lines(PLAN, 120)
    verdicts = [at for at, (text, _) in enumerate(reported) if re.match(r"(accepted|refused) ", text)]

    assert len(verdicts) > 1
    assert all(reported[at - 1][1] for at in verdicts)
