"""Queue: KAI's scheduling queue."""

from typing import TypedDict

import pulumi

from plimsoll.components.declaring import Component, ObjectArgs, ObjectType, known, name_of, uid_of
from plimsoll.labels import QUEUE
from plimsoll.model.kai import QueueSpec


class QueueResourceArgs(TypedDict, total=False):
    """Amounts of one resource; -1 means unlimited."""

    quota: pulumi.Input[float]
    over_quota_weight: pulumi.Input[float]
    limit: pulumi.Input[float]


class QueueResourcesArgs(TypedDict, total=False):
    """GPU devices, CPU millicores, memory in MB of 10^6 bytes."""

    gpu: pulumi.Input[QueueResourceArgs]
    """GPU devices; a fraction is allowed."""
    cpu: pulumi.Input[QueueResourceArgs]
    """Millicores."""
    memory: pulumi.Input[QueueResourceArgs]
    """MB of 10^6 bytes."""


class QueueArgs(ObjectArgs, total=False):
    """Quotas, limits and priority of a queue."""

    write_all_amounts: bool
    """Whether amounts that are not set are written with their defaults; absent: true. KAI reads an absent amount as 0.
    Set false for an imported Queue that must not change."""
    display_name: pulumi.Input[str]
    parent_queue: pulumi.Input[str]
    priority: pulumi.Input[int]
    """Queues with a higher priority are served first; KAI's default is 100."""
    resources: pulumi.Input[QueueResourcesArgs]
    preempt_min_runtime: pulumi.Input[str]
    """A duration such as `10m`, before which work of this queue is not preempted."""
    reclaim_min_runtime: pulumi.Input[str]
    """A duration such as `10m`, before which work of this queue is not reclaimed."""


class Queue(Component):
    """A Queue (scheduling.run.ai/v2) with every amount written, because KAI reads an absent amount as 0.

    `queue` is the object. Raises InvalidArgumentError if an argument is invalid.
    """

    queue_name: pulumi.Output[str]
    """Name of the object: `parent_queue` of another, `queue` of a Workspace."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""
    pod_labels: pulumi.Output[dict[str, str]]
    """The label that puts a pod into the queue."""

    def __init__(self, name: str, args: QueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Queue", name, args, opts)
        known("Queue", name, args, "write_all_amounts")
        self.queue = self._object(
            ObjectType("scheduling.run.ai/v2", "Queue"),
            QueueSpec,
            QueueSpec.complete_manifest if self.given("write_all_amounts", True) else QueueSpec.manifest,
            others=("write_all_amounts",),
        )
        self.queue_name = name_of(self.queue, args.get("name"))
        self.uid = uid_of(self.queue)
        self.pod_labels = self.queue_name.apply(lambda known: {QUEUE: known})
        self.register_outputs({"queueName": self.queue_name, "uid": self.uid, "podLabels": self.pod_labels})
