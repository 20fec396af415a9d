"""Queue: KAI's scheduling queue."""

from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.components.declaration import checked, child_of, fields_of, metadata
from plimsoll.model.kai import QueueSpec


class QueueResourceArgs(TypedDict, total=False):
    """Amounts of one resource; -1 means unlimited."""

    quota: pulumi.Input[float]
    over_quota_weight: pulumi.Input[float]
    limit: pulumi.Input[float]


class QueueResourcesArgs(TypedDict, total=False):
    """GPU devices, CPU millicores, memory in MB of 10^6 bytes."""

    gpu: pulumi.Input[QueueResourceArgs]
    cpu: pulumi.Input[QueueResourceArgs]
    memory: pulumi.Input[QueueResourceArgs]


class QueueArgs(TypedDict, total=False):
    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    display_name: pulumi.Input[str]
    parent_queue: pulumi.Input[str]
    priority: pulumi.Input[int]
    resources: pulumi.Input[QueueResourcesArgs]
    preempt_min_runtime: pulumi.Input[str]
    reclaim_min_runtime: pulumi.Input[str]


class Queue(pulumi.ComponentResource):
    """A Queue (scheduling.run.ai/v2) with every amount written out: KAI takes an absent one for nothing.

    Raises InvalidObjectError where an argument does not fit.
    """

    queue_name: pulumi.Output[str]

    def __init__(self, name: str, args: QueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plimsoll:index:Queue", name, {}, opts)
        object_name = args.get("name", name)
        queue = CustomResource(
            name,
            api_version="scheduling.run.ai/v2",
            kind="Queue",
            metadata=metadata(object_name, skip_await=True),
            spec=checked(QueueSpec, "Queue", name, fields_of(args, "name"), _spec),
            opts=child_of(self),
        )
        self.queue_name = queue.metadata["name"]
        self.register_outputs({"queue_name": self.queue_name})


def _spec(spec: QueueSpec) -> dict[str, Any]:
    return spec.complete_manifest()
