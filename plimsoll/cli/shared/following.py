"""Follows a cluster for commands that show it live."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from plimsoll.errors import PlimsollError

if TYPE_CHECKING:
    from plimsoll.model import Snapshot
    from plimsoll.observe.cluster import Observer

IDLE_SECONDS: Final = 0.02
"""A change is shown once nothing has followed it for this long."""
MAXIMUM_SECONDS: Final = 0.5
"""A stream of changes is shown after at most this long."""
QUIET_SECONDS: Final = 0.25
"""Changes that wake no controller, such as those of a status, are shown after at most this long. Only what the watches
have delivered is looked at; the cluster is not asked."""


def snapshots(observer: "Observer", ended: Callable[[], bool] = lambda: False) -> "Iterator[Snapshot]":
    """The current Snapshot, then one for each change. While the state cannot be read, such as with a second
    Environment, the last Snapshot with a warning that says why."""
    latest = shown = observer.snapshot()
    yield shown
    while not ended():
        observer.wait(IDLE_SECONDS, MAXIMUM_SECONDS, timeout=QUIET_SECONDS)
        try:
            snapshot = latest = observer.snapshot()
        except PlimsollError as error:
            warning = f"the state of the cluster cannot be read, and the last known state is shown: {error.message}"
            if shown.warnings[:1] == (warning,):
                continue
            snapshot = latest.model_copy(
                update={"warnings": (warning, *latest.warnings), "stale": (warning, *latest.stale)}
            )
        if snapshot is not shown:
            shown = snapshot
            yield shown
