"""A Plan on several stacks has one outcome, or raises one error."""

import math
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
import tenacity

from plimsoll.apply import (
    Execution,
    FailureKind,
    LeaseLostError,
    StateChangedError,
    UpdateFailedError,
    UpdateInterruptedError,
)
from plimsoll.apply.delta import Outcome
from plimsoll.apply.state import State
from plimsoll.errors import PlimsollError
from plimsoll.model import Plan
from tests.applying.states import FakeLease, a_claim, change

MANY = Plan(creations=tuple(change(a_claim(f"c-{number}", workspace=f"w-{number}")) for number in range(250)))
"""So many creations that they are divided over two stacks."""


class FakeShard:
    """Fails with its error; with `failures`, that many times."""

    def __init__(self, name: str, error: PlimsollError | None, failures: float = math.inf) -> None:
        self.name = name
        self.state = State.empty(name)
        self.tries = 0
        self._error = error
        self._failures = failures

    def apply(self, part: Any, _: Any) -> "Future[Outcome]":
        future: Future[Outcome] = Future()
        self.tries += 1
        if self._error is not None and self.tries <= self._failures:
            future.set_exception(self._error)
        else:
            future.set_result(Outcome(created=tuple(part.keys)))
        return future


class FakeStacks:
    def __init__(self, *errors: PlimsollError | None, failures: float = math.inf) -> None:
        self._shards = {f"s-{at}": FakeShard(f"s-{at}", error, failures) for at, error in enumerate(errors)}

    def __iter__(self) -> Iterator[FakeShard]:
        return iter(self._shards.values())

    def __getitem__(self, name: str) -> FakeShard:
        return self._shards[name]

    def ready(self) -> list[str]:
        return list(self._shards)

    def begun(self) -> None:
        """Does nothing."""

    arrange = begun


def run(*errors: PlimsollError | None) -> Outcome:
    return run_on(FakeStacks(*errors))


def run_on(stacks: Any, plan: Plan = MANY) -> Outcome:
    lease: Any = FakeLease()
    return Execution(stacks, 150, lease, lambda _: None).run(plan)


def test_the_parts_of_all_stacks_are_one_outcome() -> None:
    assert len(run(None, None).created) == 250


def test_a_failed_stack_does_not_hide_the_operations_of_another() -> None:
    outcome = run(None, UpdateFailedError("broken"))
    assert {failure.kind for failure in outcome.failed.values()} == {FailureKind.NOT_STARTED}
    assert len(outcome.created) + len(outcome.failed) == 250
    assert not set(outcome.created) & outcome.failed.keys()


def test_where_nothing_was_done_the_first_error_is_raised() -> None:
    with pytest.raises(UpdateFailedError, match="first"):
        run(UpdateFailedError("first"), UpdateFailedError("second"))


@pytest.mark.parametrize("error", [UpdateInterruptedError("the writer is stopping"), LeaseLostError("lost")])
def test_an_interrupted_plan_raises_an_error_even_if_a_part_of_it_was_done(error: PlimsollError) -> None:
    with pytest.raises(type(error)):
        run(None, error)


CHANGED = StateChangedError("its state changes while it is read")


def test_what_was_not_applied_because_the_state_changed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.wait_exponential_jitter", lambda **_: tenacity.wait_none())
    stacks = FakeStacks(None, CHANGED, failures=1)
    outcome = run_on(stacks)
    assert (len(outcome.created), outcome.failed) == (250, {})
    assert sum(shard.tries for shard in stacks) == 3, "only what failed is repeated"


def test_a_state_that_keeps_changing_is_an_error_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.wait_exponential_jitter", lambda **_: tenacity.wait_none())
    stacks = FakeStacks(CHANGED)
    with pytest.raises(StateChangedError, match="changes while"):
        run_on(stacks)
    assert [shard.tries for shard in stacks] == [3]
