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
    """The current Snapshot, then one for each change."""
    import structlog

    log = structlog.get_logger(__name__)
    latest = observer.snapshot()
    yield latest
    while not ended():
        observer.wait(IDLE_SECONDS, MAXIMUM_SECONDS, timeout=QUIET_SECONDS)
        try:
            snapshot = observer.snapshot()
        except PlimsollError as error:  # until somebody corrects it, the last state stays
            log.warning("cannot read the state of the cluster: the last one stays", error=error.message)
            observer.wait(IDLE_SECONDS, MAXIMUM_SECONDS, timeout=30.0)
            continue
        if snapshot is not latest:
            latest = snapshot
            yield snapshot
