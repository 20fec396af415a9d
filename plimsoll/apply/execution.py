"""The execution of one delta: its parts side by side on the shards, what failed in passing once more."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import tenacity

from plimsoll.apply.delta import assign, only
from plimsoll.apply.errors import (
    RETRYABLE,
    BackendUnreachableError,
    ClusterUnreachableError,
    Failure,
    FailureKind,
    LeaseLostError,
    StateChangedError,
    UpdateInterruptedError,
)
from plimsoll.apply.outcome import Outcome
from plimsoll.apply.roster import Roster
from plimsoll.model.errors import PlimsollError
from plimsoll.model.plan import ObjectKey, Plan

_TRIES: Final = 3


class Execution:
    """Of one Plan. `gate` raises where nothing may be begun any more; `created` is told of each object as soon as its
    creation is confirmed, on a thread of its shard. `room` is how many objects a shard takes."""

    def __init__(
        self, shards: Roster, *, room: int, gate: Callable[[], None], created: Callable[[ObjectKey], None]
    ) -> None:
        self._shards = shards
        self._room = room
        self._gate = gate
        self._created = created
        self._errors: list[PlimsollError] = []
        """Of the last try."""

    def run(self, plan: Plan) -> Outcome:
        """Raises the first error of a shard where nothing was done at all, or where the delta was interrupted."""
        outcomes: list[Outcome] = []

        def attempt() -> Outcome:
            outcomes.append(self._try(only(plan, outcomes[-1].failed) if outcomes else plan))
            return outcomes[-1]

        tenacity.Retrying(
            retry=tenacity.retry_if_result(self._worth_another),
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=tenacity.wait_exponential_jitter(multiplier=0.5, max=5.0),
            retry_error_callback=lambda _: None,
        )(attempt)
        outcome = Outcome.merged(outcomes)
        interrupted = [error for error in self._errors if isinstance(error, LeaseLostError | UpdateInterruptedError)]
        if interrupted:
            raise interrupted[0]
        if self._errors and not (outcome.created or outcome.updated or outcome.deleted or outcome.forgotten):
            raise self._errors[0]
        return outcome

    def _try(self, plan: Plan) -> Outcome:
        self._errors = []
        self._gate()
        states = {shard.name: shard.state for shard in self._shards}
        parts = assign(plan, states, self._shards.ready(), self._room)
        futures = {name: self._shards[name].apply(part, self._created) for name, part in parts.items()}
        self._shards.begun()
        outcomes = []
        for name, future in futures.items():
            try:
                outcomes.append(future.result())
            except PlimsollError as error:
                self._errors.append(error)
                failure = _failure_of(error)
                outcomes.append(Outcome(failed=MappingProxyType(dict.fromkeys(parts[name].keys, failure))))
        self._shards.arrange()
        return Outcome.merged(outcomes)

    def _worth_another(self, outcome: Outcome) -> bool:
        try:
            self._gate()
        except PlimsollError:
            return False
        return any(failure.kind in RETRYABLE for failure in outcome.failed.values())


def _failure_of(error: PlimsollError) -> Failure:
    kind = FailureKind.NOT_STARTED
    if isinstance(error, ClusterUnreachableError | BackendUnreachableError):
        kind = FailureKind.UNREACHABLE
    elif isinstance(error, StateChangedError):
        kind = FailureKind.CONFLICT
    return Failure(kind, error.message)
