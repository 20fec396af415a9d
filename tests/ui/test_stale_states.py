"""A state that is not current is shown with a warning, by every page and command that follows the cluster."""

from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from plimsoll.cli.shared import snapshots
from plimsoll.cli.tables.top import Screen
from plimsoll.errors import PlimsollError
from plimsoll.model import Snapshot
from plimsoll.ui import Feed, create_app, serve
from tests.builders import a_snapshot
from tests.ui.test_requests import get

BROKEN = tuple(f"{kind}: the watch is broken" for kind in ("Node", "Pod", "Queue", "Workspace"))


class Observed:
    """An observer that answers with each state in turn, the last one again and again."""

    def __init__(self, *states: Snapshot | PlimsollError) -> None:
        self._states = list(states)

    def snapshot(self) -> Snapshot:
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if isinstance(state, PlimsollError):
            raise state
        return state

    def wait(self, *_: float, **__: float) -> bool:
        return True


def shown_by(*states: Snapshot | PlimsollError, rounds: int) -> list[Snapshot]:
    left = iter(range(rounds))
    ended: Callable[[], bool] = lambda: next(left, None) is None  # noqa: E731
    return list(snapshots(Observed(*states), ended))  # type: ignore[arg-type]


def test_a_state_that_cannot_be_read_is_shown_once_as_the_last_one_with_a_warning() -> None:
    first, error = a_snapshot(), PlimsollError("the cluster has 2 Environments")
    shown = shown_by(first, error, error, error, rounds=3)
    assert [len(each.warnings) for each in shown] == [0, 1]
    assert "the cluster has 2 Environments" in shown[1].warnings[0]
    assert shown[1].nodes is first.nodes
    assert [each.stale for each in shown] == [(), shown[1].warnings]


def test_another_reason_is_shown_and_the_warning_ends_with_the_error() -> None:
    first = a_snapshot()
    shown = shown_by(first, PlimsollError("one"), PlimsollError("two"), first, first, rounds=4)
    assert [len(each.warnings) for each in shown] == [0, 1, 1, 0]
    assert shown[3] is first


@pytest.mark.parametrize(
    "path",
    [
        "",
        "queues",
        "workspaces",
        "demand",
        "plan",
        "history",
        "new-nodes",
        "nodes/p5-1",
        "why/node/p5-1",
        "workspaces/assistants/assistant",
    ],
)
def test_every_page_shows_each_warning_of_the_state_once(example: Snapshot, path: str) -> None:
    feed = Feed(example.model_copy(update={"warnings": BROKEN, "stale": BROKEN}))
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        text = get(address, path).text
        feed.close()
    assert [text.count(each) for each in BROKEN] == [1, 1, 1, 1]


def test_top_shows_the_first_warnings_and_counts_the_others() -> None:
    console = Console(width=120, file=StringIO())
    with console.capture() as captured:
        console.print(Screen(whole=False).shown(a_snapshot().model_copy(update={"warnings": BROKEN})))
    lines = [each.rstrip() for each in captured.get().splitlines()]
    assert [each for each in lines if "broken" in each] == [f"warning: {each}" for each in BROKEN[:3]]
    assert "and 1 more" in lines


@pytest.mark.parametrize(
    ("stale", "followed", "state"),
    [((), True, "live"), (BROKEN, True, "last known state"), ((), False, "from files")],
)
def test_pages_are_live_only_while_they_show_the_present(stale: tuple[str, ...], followed: bool, state: str) -> None:
    feed = Feed(a_snapshot().model_copy(update={"stale": stale}), followed=followed)
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        text = get(address).text
        feed.close()
    assert f'data-state="{state}"' in text
