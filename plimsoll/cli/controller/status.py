"""The state of the controller, as its health endpoints report it."""

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

STUCK_SECONDS: Final = 900.0
"""A controller that has begun no round for so long is stuck: a round takes minutes at most, and one begins at least
every 30 s."""


class ControllerState(StrEnum):
    SYNCING = "Syncing"
    """The watches are not synced yet."""
    STARTING = "Starting"
    """The watches are synced, and the controller takes the Lease and recovers the stacks."""
    NO_ENVIRONMENT = "NoEnvironment"
    """The watches are synced, and the cluster has no Environment."""
    STANDBY = "Standby"
    """The watches are synced, and another controller holds the Lease."""
    ACTIVE = "Active"
    """This controller holds the Lease."""
    STOPPING = "Stopping"


class ControllerStatus:
    """Written by the controller's thread, read by those of the server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._state = ControllerState.SYNCING
        self._environment = ""
        self._holder = ""
        self._stopping = False
        self._silent: Callable[[], tuple[str, ...]] = tuple
        self._beat = clock()

    def beat(self) -> None:
        """Records that a round begins, or that the controller is still waiting."""
        with self._lock:
            self._beat = self._clock()

    def become(self, state: ControllerState, environment: str = "", holder: str = "") -> None:
        """`holder` is who holds the Lease, as far as it is known."""
        with self._lock:
            self._state, self._environment, self._holder = state, environment, holder
            self._beat = self._clock()

    def stop(self) -> None:
        """From now on the state is STOPPING. Takes no lock: a handler of a signal may call it."""
        self._stopping = True

    def watches(self, silent: Callable[[], tuple[str, ...]]) -> None:
        """`silent` returns the kinds whose watch is silent for too long: what is known of them may be old."""
        self._silent = silent

    @property
    def state(self) -> ControllerState:
        return ControllerState.STOPPING if self._stopping else self._state

    @property
    def alive(self) -> bool:
        """Whether a round began, or the controller waited, within STUCK_SECONDS."""
        with self._lock:
            return self._clock() - self._beat < STUCK_SECONDS

    @property
    def ready(self) -> bool:
        """Whether the watches are synced and none is silent, and the controller works, waits for the Lease, or for an
        Environment."""
        return self.state not in (ControllerState.SYNCING, ControllerState.STOPPING) and not self._silent()

    def as_json(self) -> dict[str, object]:
        with self._lock:
            return {
                "state": self.state.value,
                "environment": self._environment,
                "leaseHolder": self._holder,
                "secondsSinceRound": round(self._clock() - self._beat, 1),
                "silentWatches": list(self._silent()),
            }
