"""A loop serves one Environment, and neither another one nor another of its name."""

from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.loop import EnvironmentChangedError, require_same, require_served
from plimsoll.model.api import Environment

SERVED = Environment(name="prod", uid="uid-1")
OTHERS = [Environment(name="prod", uid="uid-2"), Environment(name="staging", uid="uid-1"), Environment.default()]


def observing(answer: Environment | PlimsollError) -> Any:
    def snapshot() -> SimpleNamespace:
        if isinstance(answer, PlimsollError):
            raise answer
        return SimpleNamespace(environment=answer)

    return SimpleNamespace(snapshot=snapshot)


@pytest.mark.parametrize("found", OTHERS, ids=["replaced", "renamed", "deleted"])
def test_another_environment_ends_the_loop_and_the_wait_of_a_standby(found: Environment) -> None:
    with pytest.raises(EnvironmentChangedError, match="'prod' was deleted"):
        require_same(SERVED, found)
    with pytest.raises(EnvironmentChangedError, match="'prod' was deleted"):
        require_served(SERVED, observing(found))


def test_a_standby_waits_on_where_the_environment_is_the_same_or_cannot_be_read() -> None:
    require_served(SERVED, observing(SERVED))
    require_served(SERVED, observing(PlimsollError("the CRDs are of a newer release")))
