"""The state of one stack's update: its phase, and what may come next. No thread and no process.

           start              ready              release             confirmed
    IDLE ─────────▶ STARTING ────────▶ READY ───────────────▶ RUNNING ────────▶ WRITING ⟲ end: interrupt later
     ▲                  │                │                      │                  │
     │                  │ end:           │ end: call off,       │ end:             │
     │                  │ call off       │ abandon: kill        │ interrupt        │
     │                  ▼                ▼                      ▼                  │
     │                ENDING ◀───────────┴──────────────────────┘                  │
     │  ended           │                                                          │  ended
     └──────────────────┴──────────────────────────────────────────────────────────┘

An engine may end by itself in every phase that has one. `stop` acts as `end` in any phase, and is final: the stack
reaches IDLE, and no further engine is started.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Phase(Enum):
    """The phase of a stack's update. There is one engine in all phases but IDLE."""

    IDLE = auto()
    STARTING = auto()
    """The engine acquires the stack's lock and starts its provider."""
    READY = auto()
    """Pre-started: its program waits, and nothing is registered."""
    RUNNING = auto()
    """The program is executing its order."""
    WRITING = auto()
    """Every operation is confirmed. The engine writes its state and ends."""
    ENDING = auto()


class Event(Enum):
    START = auto()
    READY = auto()
    RELEASE = auto()
    CONFIRMED = auto()
    END = auto()
    """The update is no longer needed."""
    ABANDON = auto()
    """The update must not write the state either, because another process has changed it."""
    STOP = auto()
    """The Lease is lost, or the writer stops."""
    ENDED = auto()


class Act(Enum):
    """The action of a transition."""

    NOTHING = auto()
    CALL_OFF = auto()
    """Ends the program with an error, after which the engine changes nothing."""
    INTERRUPT = auto()
    """Interrupts the engine: it finishes its current operations and starts no others."""
    INTERRUPT_LATER = auto()
    """Interrupts the engine after a short time: an engine that is interrupted while it writes its state leaves its lock
    behind."""
    KILL = auto()


TRANSITIONS: Final[Mapping[tuple[Phase, Event], tuple[Phase, Act]]] = {
    (Phase.IDLE, Event.START): (Phase.STARTING, Act.NOTHING),
    (Phase.STARTING, Event.READY): (Phase.READY, Act.NOTHING),
    (Phase.STARTING, Event.END): (Phase.ENDING, Act.CALL_OFF),
    (Phase.READY, Event.RELEASE): (Phase.RUNNING, Act.NOTHING),
    (Phase.READY, Event.END): (Phase.ENDING, Act.CALL_OFF),
    (Phase.READY, Event.ABANDON): (Phase.ENDING, Act.KILL),
    (Phase.RUNNING, Event.CONFIRMED): (Phase.WRITING, Act.NOTHING),
    (Phase.RUNNING, Event.END): (Phase.ENDING, Act.INTERRUPT),
    (Phase.WRITING, Event.END): (Phase.WRITING, Act.INTERRUPT_LATER),
    **{(phase, Event.ENDED): (Phase.IDLE, Act.NOTHING) for phase in Phase if phase is not Phase.IDLE},
}


@dataclass(frozen=True)
class UpdateState:
    phase: Phase = Phase.IDLE
    stopped: bool = False

    def on(self, event: Event) -> tuple["UpdateState", Act] | None:
        """The state after an event, with the action; None if the event is not valid in this phase."""
        if event is Event.STOP:
            phase, act = TRANSITIONS.get((self.phase, Event.END), (self.phase, Act.NOTHING))
            return UpdateState(phase, stopped=True), act
        step = TRANSITIONS.get((self.phase, event))
        if step is None or (event is Event.START and self.stopped):
            return None
        return UpdateState(step[0], self.stopped), step[1]
