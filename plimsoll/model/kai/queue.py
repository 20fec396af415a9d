"""KAI's Queue (scheduling.run.ai/v2, cluster-scoped), and its name."""

import re
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, field_validator, model_validator

from plimsoll.model.meta import Declared, ObservedObject, parse_duration

_DNS_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


def _checked(name: str) -> str:
    if len(name) > 63 or not _DNS_NAME.fullmatch(name):
        raise ValueError("is not a queue name: at most 63 of a-z 0-9 - ., the first and the last a letter or a digit")
    return name


QueueName = Annotated[str, AfterValidator(_checked)]
"""A DNS name that is short enough for a label."""


UNLIMITED = -1


class QueueResource(Declared):
    """One resource of a queue. The unit is the resource's: GPU devices, CPU millicores, memory MB (10^6 bytes).

    -1 means unlimited; a quota of 0 guarantees nothing; a limit of 0 admits nothing.
    """

    quota: float = 0
    over_quota_weight: float = 1
    limit: float = UNLIMITED

    @field_validator("quota", "limit")
    @classmethod
    def _amount(cls, amount: float) -> float:
        if amount < 0 and amount != UNLIMITED:
            raise ValueError("must be at least 0, or -1 for unlimited")
        return amount

    @field_validator("over_quota_weight")
    @classmethod
    def _weight(cls, weight: float) -> float:
        if weight < 0:
            raise ValueError("must be at least 0")
        return weight

    @model_validator(mode="after")
    def _limit_covers_quota(self) -> "QueueResource":
        if self.limit != UNLIMITED and (self.quota == UNLIMITED or self.quota > self.limit):
            raise ValueError(f"limit {self.limit:g} is below quota {self.quota:g}")
        return self


class QueueResources(Declared):
    """GPU devices, CPU millicores, memory in MB of 10^6 bytes."""

    gpu: QueueResource = QueueResource()
    """GPU devices; a fraction is allowed."""
    cpu: QueueResource = QueueResource()
    """Millicores."""
    memory: QueueResource = QueueResource()
    """MB of 10^6 bytes."""


class QueueSpec(Declared):
    """Quotas, limits and priority of a queue: its `spec`, as KAI v0.17 reads it."""

    display_name: str | None = None
    parent_queue: str | None = None
    priority: int | None = None
    """Higher is served first; KAI's default is 100."""
    resources: QueueResources = QueueResources()
    preempt_min_runtime: str | None = None
    """A duration such as `10m`, before which work of this queue is not preempted."""
    reclaim_min_runtime: str | None = None
    """A duration such as `10m`, before which work of this queue is not reclaimed."""

    @field_validator("preempt_min_runtime", "reclaim_min_runtime")
    @classmethod
    def _duration(cls, text: str | None) -> str | None:
        if text is not None and parse_duration(text) < 0:
            raise ValueError("must be at least 0")
        return text


class Queue(ObservedObject):
    """A Queue of the cluster or of a file, with unvalidated fields; checks read it."""

    spec: dict[str, Any] = Field(default_factory=dict)
    status: dict[str, Any] = Field(default_factory=dict)

    @property
    def parent(self) -> str:
        return str(self.spec.get("parentQueue") or "")
