"""The state machine of one stack's update: for any order of events there is at most one engine, and a stop is final."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from plimsoll.apply.stacks import TRANSITIONS, Act, Event, Phase, UpdateState

ENGINE_SAYS = (Event.READY, Event.CONFIRMED, Event.ENDED)
"""Events of an engine, valid only while there is one. One that is called off may have become ready just before."""


class Stack(RuleBasedStateMachine):
    """Events from the stack's own thread, from the engine, and from the Lease."""

    def __init__(self) -> None:
        super().__init__()
        self.life = UpdateState()
        self.engines = 0
        self.released = False
        self.called_off = False
        self.stopped = False

    def on(self, event: Event) -> Act | None:
        step = self.life.on(event)
        if step is None:
            return None
        self.life, act = step
        return act

    @rule()
    def start(self) -> None:
        before = self.life.phase
        if self.on(Event.START) is not None:
            assert not self.stopped, "nothing is begun once the Lease is lost"
            assert before is Phase.IDLE
            self.engines += 1
            self.released = self.called_off = False

    @rule()
    def release(self) -> None:
        if self.on(Event.RELEASE) is not None:
            assert not self.called_off, "a program is released once, or never"
            assert not self.stopped
            self.released = True

    @rule(event=st.sampled_from([Event.END, Event.ABANDON, Event.STOP]))
    def unwanted(self, event: Event) -> None:
        self.stopped |= event is Event.STOP
        before = self.life.phase
        act = self.on(event)
        self.called_off |= act in (Act.CALL_OFF, Act.KILL)
        assert not (act in (Act.CALL_OFF, Act.KILL) and self.released), "what was begun is finished"
        assert (act is Act.INTERRUPT_LATER) is (before is Phase.WRITING and act is not None)

    @rule()
    def lose(self) -> None:
        self.stopped = self.called_off = True
        assert self.on(Event.LOSE) is Act.KILL, "whatever it does"
        self.released = False

    @precondition(lambda self: self.engines)
    @rule(event=st.sampled_from(ENGINE_SAYS))
    def engine_says(self, event: Event) -> None:
        if event is Event.CONFIRMED and not self.released:
            return
        self.on(event)
        if event is Event.ENDED:
            self.engines -= 1

    @invariant()
    def one_engine_and_only_in_a_phase_that_has_one(self) -> None:
        assert self.engines == (self.life.phase is not Phase.IDLE)

    @invariant()
    def only_what_was_released_runs(self) -> None:
        if self.life.phase in (Phase.RUNNING, Phase.WRITING):
            assert self.released and not self.called_off
        if self.life.phase in (Phase.STARTING, Phase.READY):
            assert not self.released and not self.stopped

    @invariant()
    def a_stop_is_remembered(self) -> None:
        assert self.life.stopped is self.stopped


TestUpdateState = Stack.TestCase
TestUpdateState.settings = settings(max_examples=200, stateful_step_count=30)


def test_every_phase_with_an_engine_ends_with_it_and_every_phase_is_reached() -> None:
    reached = {Phase.IDLE}
    while more := {to for (phase, _), (to, _) in TRANSITIONS.items() if phase in reached} - reached:
        reached |= more
    assert reached == set(Phase)
    for phase in set(Phase) - {Phase.IDLE}:
        assert TRANSITIONS[phase, Event.ENDED][0] is Phase.IDLE


def test_after_a_stop_the_stack_is_idle_and_starts_nothing() -> None:
    for phase in Phase:
        step = UpdateState(phase).on(Event.STOP)
        assert step is not None
        life, act = step
        if phase is not Phase.IDLE:
            assert act is not Act.NOTHING or phase is Phase.ENDING
            ended = life.on(Event.ENDED)
            assert ended is not None
            life = ended[0]
        assert life == UpdateState(Phase.IDLE, stopped=True)
        assert life.on(Event.START) is None
