"""How the Pods of a TrainJob start together: `podGroupPolicy` of Kubeflow Trainer's runtimes."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from plimsoll.model.kai import QueueName
from plimsoll.model.meta import Declared


class KaiScheduler(Declared):
    """KAI Scheduler, which creates the PodGroup itself and needs only the queue."""

    queue: QueueName
    """A leaf queue."""


class Coscheduling(Declared):
    """The coscheduling plugin of Kubernetes' scheduler-plugins; passed to Trainer unchanged."""

    schedule_timeout_seconds: Annotated[int, Field(ge=0)] | None = None


class Volcano(Declared):
    """The Volcano scheduler; passed to Trainer unchanged."""

    network_topology: dict[str, Any] | None = None


class PodGroupPolicy(Declared):
    """Exactly one of the three schedulers."""

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
