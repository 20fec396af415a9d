"""The Environment that a loop serves. Its stacks are named after it, so another Environment needs another writer."""

from plimsoll.errors import PlimsollError
from plimsoll.model.api import Environment
from plimsoll.observe.cluster import Observer


class EnvironmentChangedError(PlimsollError):
    """The cluster's Environment is not the one that the loop was started for."""


def require_same(served: Environment | None, found: Environment) -> None:
    """Raises EnvironmentChangedError where the Environment was removed, replaced or given another name."""
    if served is None or (served.name, served.uid) == (found.name, found.uid):
        return
    now = f"the Environment {found.name!r} exists instead" if found.uid else "the cluster has no Environment"
    raise EnvironmentChangedError(f"the Environment {served.name!r} was deleted: {now}")


def require_served(served: Environment, observer: Observer) -> None:
    """As `require_same`, for a standby and the cluster as it is now. What cannot be read passes: an upgrade's newer
    CRDs, for example, are for the active controller to report."""
    try:
        found = observer.snapshot().environment
    except PlimsollError:
        return
    require_same(served, found)
