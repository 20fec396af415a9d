"""NodePoolLabel: reads KAI's node pool from labels, and the queue that they name."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plimsoll.labels import QUEUE
from plimsoll.model.meta import NodeRequirement

PROJECT: Final = "project"
"""Label that KAI uses as the queue if there is no queue label."""
NODE_POOL: Final = "kai.scheduler/node-pool"
"""KAI's default of `spec.global.nodePoolLabelKey` of its Config."""


class NodePoolLabel(NamedTuple):
    """The label of nodes, queues, PodGroups and pods with the SchedulingShard that they belong to. Those without it are
    of the scheduler without a shard, the node pool ''."""

    key: str = NODE_POOL
    """Empty: KAI's schedulers see everything."""

    @classmethod
    def declared(cls, environment: Mapping[str, Any]) -> "NodePoolLabel":
        """From an Environment's spec as written in its manifest."""
        key = environment.get("nodePoolLabelKey")
        return cls(key) if isinstance(key, str) else cls()

    def of(self, labels: Mapping[str, str]) -> str:
        return labels.get(self.key, "")

    def requirement(self, node_pool: str) -> NodeRequirement:
        """What selects the nodes of a node pool."""
        return NodeRequirement(self.key, "In" if node_pool else "DoesNotExist", (node_pool,) if node_pool else ())

    def shown(self, node_pool: str) -> str:
        return f"{self.key}={node_pool}" if node_pool else f"no label {self.key}"

    def queue_in(self, labels: Mapping[str, str]) -> str:
        """The queue that the labels name; empty if they name none. KAI appends the node pool to the project."""
        project, node_pool = labels.get(PROJECT), self.of(labels)
        return labels.get(QUEUE) or (f"{project}-{node_pool}" if project and node_pool else project) or ""


NODE_POOL_LABEL: Final = NodePoolLabel()
