"""The cluster to a Snapshot: list+watch of the few kinds that capacity is planned on."""

from plimsoll.observe.health import NotSyncedError
from plimsoll.observe.observer import Observer

__all__ = ["NotSyncedError", "Observer"]
