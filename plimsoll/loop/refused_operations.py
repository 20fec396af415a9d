"""Operations on single objects that the cluster refused: each is tried again after a pause of its own."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from plimsoll.apply import Failure, FailureKind
from plimsoll.model import Change, Deletion, ObjectKey, Plan, RefusedOperation
from plimsoll.model.api import WorkspaceRef

FIRST_PAUSE: Final = timedelta(seconds=2)
LONGEST_PAUSE: Final = timedelta(minutes=2)
"""The pause doubles with each failure in a row, up to this."""
_OF_THE_OBJECT: Final = frozenset(
    {
        FailureKind.CONFLICT,
        FailureKind.POLICY,
        FailureKind.REFUSED,
        FailureKind.NO_SUCH_KIND,
        FailureKind.NOT_OURS,
        FailureKind.OTHER,
    }
)
"""Failures that say something of the object. The others say something of the moment, and end by themselves."""


class _Tried(NamedTuple):
    operation: Change | Deletion
    failure: Failure
    pause: timedelta
    until: datetime


class RefusedOperations:
    """Those of the last Plan, and those that wait since earlier ones.

    It has one entry for each object that is refused now: what no Plan contains any more is forgotten, and what a Plan
    wants differently is tried at once. A restart forgets all of them, and each is tried once more. Demand has pauses of
    its own, in the statuses of GPUDemands.
    """

    def __init__(self) -> None:
        self._tried: dict[ObjectKey, _Tried] = {}

    def waiting(self, now: datetime) -> Mapping[ObjectKey, RefusedOperation]:
        """The operations that no Plan may contain yet."""
        return {
            key: RefusedOperation(tried.operation, tried.until)
            for key, tried in self._tried.items()
            # A clock that was set back since would make the pause longer.
            if tried.until - tried.pause <= now < tried.until
        }

    def failures(self, plan: Plan) -> dict[ObjectKey, Failure]:
        """Why the operations failed that the Plan leaves out."""
        return {key: self._tried[key].failure for key in plan.waiting if key in self._tried}

    def note(self, plan: Plan, failed: Mapping[ObjectKey, Failure], now: datetime) -> None:
        """Takes what became of a Plan."""
        kept = {key: self._tried[key] for key in plan.waiting if key in self._tried}
        operations: list[Change | Deletion] = [*plan.creations, *plan.updates, *plan.deletions]
        for operation in operations:
            failure = failed.get(operation.key)
            if failure is None or failure.kind not in _OF_THE_OBJECT or not isinstance(operation.owner, WorkspaceRef):
                continue
            before = self._tried.get(operation.key)
            again = before is not None and RefusedOperation(before.operation, before.until).blocks(operation)
            pause = min(before.pause * 2, LONGEST_PAUSE) if before is not None and again else FIRST_PAUSE
            kept[operation.key] = _Tried(operation, failure, pause, now + pause)
        self._tried = kept
