"""The life of one stack's update, as a state machine: its phase, and what may come next. No thread and no process.

An arrow has an event, and after the slash what it does to the program or the engine:

            start             ready              release              confirmed
    IDLE ───────────▶ STARTING ───────▶ READY ──────────────▶ RUNNING ──────────▶ WRITING ──╮ end / interrupt later
     ▲                   │                │                      │                 │   ▲    │
     │                   │ end / call off │ end / call off,      │ end / interrupt │   ╰────╯
     │                   │                │ abandon / kill       │                 │
     │                   ▼                ▼                      ▼                 │
     │                ENDING ◀────────────┴──────────────────────╯                 │
     │                   │ ended                                                   │ ended
     ╰───────────────────┴─────────────────────────────────────────────────────────╯

Not drawn: `ended` leads to IDLE from STARTING, READY and RUNNING, too, because an engine may end by itself in every
phase. `stop` acts as `end` in any phase, and `lose` kills the engine in any phase. Both are final: the stack reaches
IDLE, and no further engine is started.
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
    """Pre-started: its program waits, and has registered no object."""
    RUNNING = auto()
    """The program registers its resources, and the engine changes objects."""
    WRITING = auto()
    """Every operation is confirmed. The engine writes its state and ends."""
    ENDING = auto()
    """The engine has not ended yet, but its program was called off, or it was interrupted or killed."""


class Event(Enum):
    """What happens to an update. The writer causes START, RELEASE, END, ABANDON, STOP and LOSE; the engine all
    others."""

    START = auto()
    READY = auto()
    """The program waits."""
    RELEASE = auto()
    """The program gets its resources."""
    CONFIRMED = auto()
    """Every operation is confirmed."""
    END = auto()
    """The update is no longer needed, or the engine started an unplanned operation."""
    ABANDON = auto()
    """The update must not write the state either, because another process has changed it."""
    STOP = auto()
    """The writer stops, and still holds the Lease."""
    LOSE = auto()
    """The Lease is lost: another writer may be at work, so the engine must change neither objects nor the state."""
    ENDED = auto()
    """The engine has ended, for any reason."""


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
    """The phase of a stack's update, and whether a STOP or LOSE forbids further ones."""

    phase: Phase = Phase.IDLE
    stopped: bool = False

    def on(self, event: Event) -> tuple["UpdateState", Act] | None:
        """The state after an event, with the action; None if the event is not valid in this phase."""
        if event is Event.LOSE:
            return UpdateState(Phase.IDLE if self.phase is Phase.IDLE else Phase.ENDING, stopped=True), Act.KILL
        if event is Event.STOP:
            phase, act = TRANSITIONS.get((self.phase, Event.END), (self.phase, Act.NOTHING))
            return UpdateState(phase, stopped=True), act
        step = TRANSITIONS.get((self.phase, event))
        if step is None or (event is Event.START and self.stopped):
            return None
        return UpdateState(step[0], self.stopped), step[1]
