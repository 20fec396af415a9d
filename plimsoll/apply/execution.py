"""Applies one Plan: its parts concurrently on the stacks, and operations with temporary failures again."""

from collections.abc import Callable
from typing import Final

import tenacity

from plimsoll.apply.delta import Outcome, assign, only
from plimsoll.apply.errors import RETRYABLE, Failure, LeaseLostError, UpdateInterruptedError
from plimsoll.apply.lease import Lease
from plimsoll.apply.stacks import Stacks
from plimsoll.errors import PlimsollError
from plimsoll.model import ObjectKey, Plan

_MOST_TRIES: Final = 3
"""Maximum number of attempts. A further one repeats what failed, if a part of it may succeed now."""


class Execution:
    """Applies one Plan. `created` is called with each object when its creation is confirmed, on a thread of its stack.
    `room` is the number of objects that a stack takes."""

    def __init__(self, stacks: Stacks, room: int, lease: Lease, created: Callable[[ObjectKey], None]) -> None:
        self._stacks = stacks
        self._room = room
        self._lease = lease
        self._created = created
        self._errors: list[PlimsollError] = []
        """Errors of the last attempt."""

    def run(self, plan: Plan) -> Outcome:
        """Applies the Plan. Raises the first error of a stack if nothing was done at all, or if the update was
        interrupted."""
        outcomes: list[Outcome] = []

        def attempt() -> Outcome:
            outcomes.append(self._try(only(plan, outcomes[-1].failed) if outcomes else plan))
            return outcomes[-1]

        tenacity.Retrying(
            retry=tenacity.retry_if_result(self._should_retry),
            stop=tenacity.stop_after_attempt(_MOST_TRIES),
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
        self._lease.require()
        states = {shard.name: shard.state for shard in self._stacks}
        parts = assign(plan, states, self._stacks.ready(), self._room)
        futures = {name: self._stacks[name].apply(part, self._created) for name, part in parts.items()}
        self._stacks.begun()
        outcomes = []
        for name, future in futures.items():
            try:
                outcomes.append(future.result())
            except PlimsollError as error:
                self._errors.append(error)
                outcomes.append(Outcome.failing(parts[name].keys, Failure.of(error)))
        self._stacks.arrange()
        return Outcome.merged(outcomes)

    def _should_retry(self, outcome: Outcome) -> bool:
        return self._lease.usable and any(failure.kind in RETRYABLE for failure in outcome.failed.values())
