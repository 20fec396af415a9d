"""Queue: KAI's scheduling queue."""

import pulumi

from plimsoll.components.args import QueueArgs
from plimsoll.components.declaring import Component, ObjectType, known, name_of, uid_of
from plimsoll.labels import QUEUE
from plimsoll.model.kai import QueueSpec


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
            labels=self.given("labels"),
            others=("labels", "write_all_amounts"),
        )
        self.queue_name = name_of(self.queue, args.get("name"))
        self.uid = uid_of(self.queue)
        self.pod_labels = self.queue_name.apply(lambda known: {QUEUE: known})
        self.register_outputs({"queueName": self.queue_name, "uid": self.uid, "podLabels": self.pod_labels})
