"""KAI's API: Queue, PodGroup, Topology, SchedulingShard, GPU shares and reservations."""

from plimsoll.model.kai.node_pool_label import NODE_POOL, NODE_POOL_LABEL, PROJECT, NodePoolLabel
from plimsoll.model.kai.pod_group import (
    MOST_DEPTH,
    POD_GROUP_NAME,
    SUB_GROUP_NAME,
    PodGroup,
    SubGroup,
    TopologyConstraint,
    group_key,
)
from plimsoll.model.kai.queue import UNLIMITED, Queue, QueueName, QueueResource, QueueResources, QueueSpec
from plimsoll.model.kai.reservation import (
    APP,
    FORMER_NAMESPACE,
    NAMESPACE,
    NAMESPACES,
    RESERVATION_APP,
    ReservationSettings,
)
from plimsoll.model.kai.scheduling_shard import SchedulingShard
from plimsoll.model.kai.share import (
    CONTAINER_PREFIXES,
    GPU_FRACTION,
    GPU_FRACTION_CONTAINER,
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_SHARE,
    MAX_DEVICES,
    MPS,
    SHARE_ANNOTATIONS,
    GPUShare,
    is_share_annotation,
    shareable_memory_mib,
)
from plimsoll.model.kai.topology import Topology

__all__ = [
    "APP",
    "CONTAINER_PREFIXES",
    "FORMER_NAMESPACE",
    "GPU_FRACTION",
    "GPU_FRACTION_CONTAINER",
    "GPU_FRACTION_DEVICES",
    "GPU_MEMORY_SHARE",
    "MAX_DEVICES",
    "MOST_DEPTH",
    "MPS",
    "NAMESPACE",
    "NAMESPACES",
    "NODE_POOL",
    "NODE_POOL_LABEL",
    "POD_GROUP_NAME",
    "PROJECT",
    "RESERVATION_APP",
    "SHARE_ANNOTATIONS",
    "SUB_GROUP_NAME",
    "UNLIMITED",
    "GPUShare",
    "NodePoolLabel",
    "PodGroup",
    "Queue",
    "QueueName",
    "QueueResource",
    "QueueResources",
    "QueueSpec",
    "ReservationSettings",
    "SchedulingShard",
    "SubGroup",
    "Topology",
    "TopologyConstraint",
    "group_key",
    "is_share_annotation",
    "shareable_memory_mib",
]
