"""CPU and memory of the controller's processes while its engines start and end."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import psutil
import pytest

from bench.cluster import cpu_seconds, engine_ages, mib, own_cpu_seconds


@dataclass
class Process:
    """A process as psutil shows it. Every call on a process that has `ended` raises NoSuchProcess."""

    called: str = "pulumi"
    ended: bool = False
    state: str = psutil.STATUS_SLEEPING
    below: list["Process"] = field(default_factory=list)

    def children(self, recursive: bool = False) -> list["Process"]:
        return self.below

    def name(self) -> str:
        return self._found(self.called)

    def status(self) -> str:
        return self._found(self.state)

    def create_time(self) -> float:
        if self.ended:
            raise psutil.NoSuchProcess(1)
        return time.time() - 5

    def cpu_times(self) -> tuple[float, ...]:
        if self.ended:
            raise psutil.NoSuchProcess(1)
        return (1.0, 2.0, 4.0, 8.0, 0.0)

    def memory_info(self) -> None:
        raise psutil.ZombieProcess(1)

    def _found(self, value: str) -> str:
        if self.ended:
            raise psutil.NoSuchProcess(1)
        return value


def seen(process: Process) -> psutil.Process:
    return cast(psutil.Process, process)


def test_engines_that_end_during_a_measurement_do_not_count() -> None:
    loop = Process("python", below=[Process(), Process(ended=True), Process("git")])

    assert [round(age) for age in engine_ages(seen(loop))] == [5]


def test_an_engine_that_ends_between_two_measurements_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(process: Process) -> str:
        process.ended = True
        return "pulumi"

    monkeypatch.setattr(Process, "name", name)

    assert engine_ages(seen(Process(below=[Process()]))) == []


def test_an_engine_that_has_ended_and_was_not_waited_for_does_not_count() -> None:
    assert engine_ages(seen(Process(below=[Process(state=psutil.STATUS_ZOMBIE)]))) == []


def test_seconds_are_those_of_the_loop_its_ended_children_and_the_others() -> None:
    ended = Process(ended=True)

    assert own_cpu_seconds(seen(ended)) == 0.0
    assert cpu_seconds(seen(Process(below=[Process(), ended]))) == 15.0 + 3.0


def test_memory_of_an_ended_process_is_none() -> None:
    assert mib(seen(Process())) == 0


@pytest.fixture(autouse=True)
def real_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No second passes between the start of a process and its measurement."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    yield
