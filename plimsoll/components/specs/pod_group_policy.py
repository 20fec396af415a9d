"""How the Pods of a TrainJob start together: `podGroupPolicy` of Kubeflow Trainer's runtimes."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from plimsoll.model.kai import QueueName
from plimsoll.model.meta import Declared


class KaiScheduler(Declared):
    """KAI Scheduler, which makes the PodGroup itself: it needs nothing but the queue."""

    queue: QueueName
    """A leaf queue."""


class Coscheduling(Declared):
    """The coscheduling plugin of Kubernetes' scheduler-plugins, handed to Trainer as it is."""

    schedule_timeout_seconds: Annotated[int, Field(ge=0)] | None = None


class Volcano(Declared):
    """The Volcano scheduler, handed to Trainer as it is."""

    network_topology: dict[str, Any] | None = None


class PodGroupPolicy(Declared):
    """One of the three."""

    kai_scheduler: KaiScheduler | None = None
    coscheduling: Coscheduling | None = None
    volcano: Volcano | None = None

    @model_validator(mode="after")
    def _one(self) -> "PodGroupPolicy":
        fields = type(self).model_fields
        given = [fields[name].alias or name for name in fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"{' and '.join(given)} exclude each other: keep one"
                if given
                else "needs kaiScheduler, coscheduling or volcano"
            )
        return self
