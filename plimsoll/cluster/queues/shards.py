"""KAI's shards: each scheduler sees only the nodes, queues and PodGroups of its node pool."""

from plimsoll.cluster.nodes import index_of
from plimsoll.model import Snapshot


def is_sharded(snapshot: Snapshot) -> bool:
    """Whether a queue, a NodePool or a node belongs to a node pool of KAI."""
    key = snapshot.environment.spec.node_pool_label_key
    return (
        any(key in each.labels for each in snapshot.queues)
        or any(key in each.template_labels for each in snapshot.node_pools)
        or bool(index_of(snapshot.nodes).by_label(key))
    )
