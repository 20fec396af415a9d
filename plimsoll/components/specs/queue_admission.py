"""QueueAdmissionSpec: which queues TrainJobs may name."""

from typing import Literal

from plimsoll.model.kai import QueueName
from plimsoll.model.meta import Declared


class QueueAdmissionSpec(Declared):
    """The declared queues, and what happens to a TrainJob that names another queue."""

    leaves: tuple[QueueName, ...] = ()
    """Leaf queues."""
    parents: tuple[QueueName, ...] = ()
    """Queues with child queues, which pods cannot use."""
    action: Literal["deny", "audit"] = "deny"
    """What happens to a TrainJob that names another queue: it is refused, or a warning and an audit annotation are
    written."""
