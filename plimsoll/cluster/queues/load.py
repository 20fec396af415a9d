"""QueueLoad: what pods use of a queue."""

from dataclasses import dataclass
from typing import Final

from plimsoll.cluster.queues.amount import NOTHING, Amount


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """What pods use of a queue."""

    allocated: Amount = NOTHING
    """Of bound pods."""
    non_preemptible: Amount = NOTHING
    """The part of `allocated` that KAI may not reclaim."""

    @classmethod
    def of(cls, amount: Amount, *, preemptible: bool) -> "QueueLoad":
        return cls(amount, NOTHING if preemptible else amount)

    def __add__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated + other.allocated, self.non_preemptible + other.non_preemptible)

    def __sub__(self, other: "QueueLoad") -> "QueueLoad":
        return QueueLoad(self.allocated - other.allocated, self.non_preemptible - other.non_preemptible)


NO_LOAD: Final = QueueLoad()
