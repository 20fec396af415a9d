"""The queue and the node pool that KAI reads from labels."""

from collections.abc import Mapping
from typing import Final

from plimsoll.labels import QUEUE

PROJECT: Final = "project"
"""Label that KAI uses as the queue if there is no queue label."""
NODE_POOL: Final = "kai.scheduler/node-pool"
"""Label of nodes, queues, PodGroups and pods: the SchedulingShard that they belong to. Those without it are of the
scheduler without a shard. KAI also appends it to the project."""


def queue_in(labels: Mapping[str, str]) -> str:
    """The queue that the labels name; empty if they name none."""
    project, node_pool = labels.get(PROJECT), labels.get(NODE_POOL)
    return labels.get(QUEUE) or (f"{project}-{node_pool}" if project and node_pool else project) or ""
