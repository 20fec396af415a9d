"""Which stacks a writer works on, and when it pre-starts updates on them."""

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.apply import ApplySettings
from plimsoll.apply.delta import Reviewer
from plimsoll.apply.stacks import Stacks
from plimsoll.apply.state import State
from tests.applying.states import CLUSTER, FakeCluster, FakeLease


class FakeShard:
    """Every pre-start fails."""

    idle = True
    has_pre_started = False
    rank = 2

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.empty(name)
        self.backing_off = False
        self.recovered = 0
        self.pre_starts = 0

    def recover(self) -> "Future[None]":
        self.recovered += 1
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def pre_start(self) -> None:
        self.pre_starts += 1
        self.backing_off = True

    def forget_missing(self, _: object) -> None:
        """There is nothing to forget."""


@pytest.fixture
def names() -> list[str]:
    """Names of the stacks in the backend."""
    return []


@pytest.fixture
def stacks(names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = "plimsoll.apply.stacks.stacks"
    monkeypatch.setattr(f"{module}.find_pulumi", lambda _: (Path("pulumi"), None))
    monkeypatch.setattr(f"{module}.open_provider", lambda *_: SimpleNamespace(environment={}))
    backend = SimpleNamespace(make=lambda: None, stacks=lambda _: list(names))
    monkeypatch.setattr(f"{module}.open_backend", lambda *_, **__: backend)
    monkeypatch.setattr(f"{module}.CapacityStack", lambda name, *_: name)
    monkeypatch.setattr(f"{module}.Shard", lambda name, **_: FakeShard(name))
    settings = ApplySettings(environment="test", work_folder=tmp_path, shards=1, secrets_provider="awskms://k")
    lease: Any = FakeLease()
    made = Stacks(settings, Reviewer(FakeCluster()), lease, lambda: CLUSTER, lambda: None)
    made.open()
    return made


def test_stacks_that_another_writer_creates_before_the_takeover_are_recovered(stacks: Any, names: list[str]) -> None:
    """As one with more shards, while this writer is its standby."""
    assert [shard.name for shard in stacks] == ["capacity-test-0"]
    names += ["capacity-test-0", "capacity-test-1", "capacity-other-0"]
    stacks.recover()
    assert {shard.name: shard.recovered for shard in stacks} == {"capacity-test-0": 1, "capacity-test-1": 1}
    assert stacks.ready() == ["capacity-test-0"], "only the stacks in the settings take new objects"


def test_a_failed_pre_start_is_repeated_after_its_back_off_although_nothing_happens(stacks: Any) -> None:
    stacks.arrange()
    shard = stacks["capacity-test-0"]
    stacks.forget_missing(set())
    assert shard.pre_starts == 1
    shard.backing_off = False
    stacks.forget_missing(set())
    assert shard.pre_starts == 2
