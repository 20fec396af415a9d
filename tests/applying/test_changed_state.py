"""Another process changes a stack's state while an update is pre-started: its engine is killed, as one that is called
off would write the state that it has read. A state that changes again and again is an error."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from plimsoll.apply import EngineKilledError, Outcome, StateChangedError, UpdateFailedError
from plimsoll.apply.delta import Part
from plimsoll.apply.engine import EngineEvent, Program, urn_of
from plimsoll.apply.stacks import Shard
from plimsoll.model import ObjectKey
from tests.applying.states import STACK, FakeCluster, a_claim, a_state, change, live
from tests.applying.test_states import FakeStack, a_shard, names

CLAIM = a_claim("new")
OLD, THEIRS = live(a_claim("old")), live(a_claim("theirs"))


class FakeEngine:
    """An engine that another thread can kill."""

    pid = None
    ended_by_signal = False

    def __init__(self) -> None:
        self.killed = threading.Event()
        self.kills = 0

    def kill(self) -> None:
        self.kills += 1
        self.killed.set()

    def interrupt(self) -> None:
        raise AssertionError("it was called off, or killed")


class RunningStack(FakeStack):
    """Its engine reads the state when it starts, and writes what it knows when its program ends. A killed one writes
    nothing."""

    def __init__(self, cluster: FakeCluster, *objects: dict[str, Any], new: bool = False) -> None:
        """`new`: the stack does not exist yet."""
        super().__init__(None if new else a_state(*objects))
        self._cluster = cluster
        self.engine: Any = FakeEngine()
        self.starts = 0
        self.on_look: Callable[[], None] = lambda: None
        """Called before it is looked whether the state was changed."""
        self._writes = 0

    def write(self, *objects: dict[str, Any]) -> None:
        """Another process, or the engine, writes a state of these objects."""
        self._writes += 1
        self.state = a_state(*objects, tag=f"written-{self._writes}")

    def update(self, program: Program, on_event: Callable[[EngineEvent], None], _: tuple[Path, ...]) -> None:
        self.starts += 1
        self.engine.killed.clear()
        assert self.state is not None
        known = [each["outputs"] for each in self.state.deployment.get("resources", ()) if "outputs" in each]
        program._on_ready()
        called_off = program._registrations.exception(30)
        if self.engine.killed.is_set():
            raise EngineKilledError("killed")
        made = [] if called_off else program._registrations.result().first
        for each in made:
            obj = live(dict(each.inputs))
            self._cluster.objects[ObjectKey.of(obj)] = obj
            event = {"metadata": {"urn": urn_of(STACK, each), "op": "create", "new": {"outputs": obj}}}
            on_event({"resOutputsEvent": event})
            known.append(obj)
        self.write(*known)
        if called_off:
            raise UpdateFailedError("called off")

    def tag(self, stack: str) -> str | None:
        self.on_look()
        return super().tag(stack)

    def check_room(self) -> None:
        """There is room."""


def applied(shard: Shard) -> Outcome:
    outcome = shard.apply(Part([change(CLAIM)]), lambda _: None).result(30)
    shard.call_off().result(30)
    return outcome


def test_the_plan_is_applied_to_the_state_as_it_is_now(tmp_path: Path) -> None:
    cluster = FakeCluster(OLD, THEIRS)
    stack = RunningStack(cluster, OLD)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        shard.pre_start().result(30)
        stack.write(OLD, THEIRS)
        assert applied(shard).created == (ObjectKey.of(CLAIM),)
        assert (stack.engine.kills, stack.starts) == (1, 2)
        assert names(shard.state) == {"old", "theirs", "new"}


def test_a_change_is_kept_where_the_plan_shows_that_the_state_is_incomplete(tmp_path: Path) -> None:
    """The other process created the Plan's object, too, which would be adopted into the state as it was."""
    made = live(CLAIM)
    cluster = FakeCluster(OLD, THEIRS, made)
    stack = RunningStack(cluster, OLD)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        shard.pre_start().result(30)
        stack.write(OLD, THEIRS, made)
        applied(shard)
        assert stack.engine.kills == 1
        assert names(shard.state) == {"old", "theirs", "new"}


def test_the_first_object_of_a_new_stack_may_be_adopted(tmp_path: Path) -> None:
    """Only the first update writes the stack's provider, which is in the record of each object."""
    cluster = FakeCluster(live(CLAIM))
    stack = RunningStack(cluster, new=True)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        shard.pre_start().result(30)
        assert applied(shard).created == (ObjectKey.of(CLAIM),)
        assert names(shard.state) == {"new"}


def test_a_state_that_changes_whenever_it_is_read_is_an_error_and_nothing_is_created(tmp_path: Path) -> None:
    cluster = FakeCluster(OLD, THEIRS)
    stack = RunningStack(cluster, OLD)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        stack.on_look = lambda: stack.write(OLD, THEIRS)
        with pytest.raises(StateChangedError, match=STACK):
            shard.apply(Part([change(CLAIM)]), lambda _: None).result(30)
        assert stack.engine.kills == stack.starts > 1
        assert stack.state is not None
        assert names(stack.state) == {"old", "theirs"}


def test_an_update_that_is_not_needed_is_killed_too(tmp_path: Path) -> None:
    cluster = FakeCluster(OLD, THEIRS)
    stack = RunningStack(cluster, OLD)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        shard.pre_start().result(30)
        shard.call_off().result(30)
        assert stack.engine.kills == 0, "nobody changed the state"
        shard.pre_start().result(30)
        stack.write(OLD, THEIRS)
        shard.call_off().result(30)
        assert stack.engine.kills == 1
        assert stack.state is not None
        assert names(stack.state) == {"old", "theirs"}


def test_objects_that_others_deleted_leave_the_state_as_it_is_now(tmp_path: Path) -> None:
    gone = live(a_claim("gone"))
    cluster = FakeCluster(OLD, THEIRS, gone)
    stack = RunningStack(cluster, OLD, gone)
    with closing(a_shard(stack, cluster, tmp_path)) as shard:
        shard.pre_start().result(30)
        del cluster.objects[ObjectKey.of(gone)]
        stack.write(OLD, THEIRS, gone)
        shard.forget_missing({"uid-old", "uid-theirs"})
        shard.call_off().result(30)
        assert stack.engine.kills == 1
        assert names(shard.state) == {"old", "theirs"}
