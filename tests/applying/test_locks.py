"""Stack locks of ended processes are broken; locks of running processes are not."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from plimsoll.apply import LockedError, LockHolder
from plimsoll.apply.engine import HOLDER
from plimsoll.apply.stacks import break_stale
from tests.awaiting import await_condition

HERE = socket.gethostname()
DEAD = 2**22 - 1


class FakeStack:
    name = "capacity-test-0"

    def __init__(self) -> None:
        self.broken = 0

    def break_lock(self) -> None:
        self.broken += 1


def attempt(*holders: LockHolder, expired: tuple[str, ...] = ()) -> bool:
    """Whether the lock was broken."""
    stack: Any = FakeStack()
    try:
        break_stale(stack, holders, "here_1_a", expired)
    except LockedError:
        assert stack.broken == 0
        return False
    assert stack.broken == 1
    return True


def held(host: str = HERE, pid: int = DEAD) -> LockHolder:
    return LockHolder("root", host, pid, "2026-01-01T00:00:00Z")


def test_the_lock_of_an_ended_process_of_this_host_is_broken() -> None:
    assert attempt(held())


def test_the_lock_of_a_reused_process_id_is_broken() -> None:
    assert attempt(held(pid=os.getpid()))


def test_the_lock_of_another_host_is_kept_until_its_lease_has_expired() -> None:
    assert not attempt(held("elsewhere"))
    assert not attempt(held("elsewhere"), expired=("other_1_x",))
    assert attempt(held("elsewhere"), expired=("other_1_x", "elsewhere_77_ab"))


def test_one_running_holder_keeps_the_lock() -> None:
    assert not attempt(held(), held("elsewhere"))


def test_a_lock_without_a_known_holder_is_kept() -> None:
    assert not attempt(expired=("elsewhere_77_ab",))


@pytest.fixture
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that looks like an engine of the writer that the test names."""
    program = tmp_path / "pulumi"
    program.symlink_to("/bin/sleep")
    environment = {HOLDER: request.param} if request.param else {}
    process = subprocess.Popen([str(program), "60"], env=environment, start_new_session=True)
    # The kernel lets go of the caller a moment before the new program's arguments and environment can be read.
    await_condition(lambda: psutil.Process(process.pid).cmdline(), message="the program has started")
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("engine", [f"{HERE}_{DEAD}_ab"], indirect=True)
def test_the_engine_of_an_ended_writer_is_ended(engine: "subprocess.Popen[bytes]") -> None:
    assert attempt(held(pid=engine.pid))
    assert not psutil.pid_exists(engine.pid) or psutil.Process(engine.pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    "engine",
    ["", f"{HERE}_{os.getpid()}_ab", "here_1_a"],
    ids=["of nobody", "of this process", "of another host"],
    indirect=True,
)
def test_a_running_engine_of_another_writer_is_not_ended(engine: "subprocess.Popen[bytes]") -> None:
    assert not attempt(held(pid=engine.pid))
    assert engine.poll() is None
