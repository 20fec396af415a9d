"""One stack's life, as values: which phase its update is in, and what may come next. No thread and no process.

           start              ready              release             confirmed
    IDLE ─────────▶ STARTING ────────▶ READY ───────────────▶ RUNNING ────────▶ WRITING ⟲ end: interrupt later
     ▲                  │                │                      │                  │
     │                  │ end:           │ end: call off,       │ end:             │
     │                  │ call off       │ abandon: kill        │ interrupt        │
     │                  ▼                ▼                      ▼                  │
     │                ENDING ◀───────────┴──────────────────────┘                  │
     │  ended           │                                                          │  ended
     └──────────────────┴──────────────────────────────────────────────────────────┘

An engine may end by itself in every phase that has one. `stop`, in any phase, does what `end` does there, and is for
good: the stack comes to rest in IDLE, and no engine is started any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Phase(Enum):
    """Of a stack's update; in all but IDLE there is one engine."""

    IDLE = auto()
    STARTING = auto()
    """The engine takes the stack's lock and its provider."""
    READY = auto()
    """Pre-started: its program waits, and nothing is registered."""
    RUNNING = auto()
    """The program was given its order."""
    WRITING = auto()
    """Every operation is confirmed: the engine, if left alone, writes its state and ends."""
    ENDING = auto()


class Event(Enum):
    START = auto()
    READY = auto()
    RELEASE = auto()
    CONFIRMED = auto()
    END = auto()
    """The update is not wanted any more."""
    ABANDON = auto()
    """Nor may it write the state, which others have changed under it."""
    STOP = auto()
    """The Lease is lost, or the writer stops."""
    ENDED = auto()


class Act(Enum):
    """What a transition asks for."""

    NOTHING = auto()
    CALL_OFF = auto()
    """The program ends with an error, after which the engine changes nothing."""
    INTERRUPT = auto()
    """The engine ends what it has begun and starts nothing more."""
    INTERRUPT_LATER = auto()
    """It is left a moment: one that is interrupted while it writes its state leaves its lock behind."""
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
class Life:
    phase: Phase = Phase.IDLE
    stopped: bool = False

    def on(self, event: Event) -> tuple["Life", Act] | None:
        """The life after an event, and what it asks for; None where the event has no place in it."""
        if event is Event.STOP:
            phase, act = TRANSITIONS.get((self.phase, Event.END), (self.phase, Act.NOTHING))
            return Life(phase, stopped=True), act
        step = TRANSITIONS.get((self.phase, event))
        if step is None or (event is Event.START and self.stopped):
            return None
        return Life(step[0], self.stopped), step[1]
