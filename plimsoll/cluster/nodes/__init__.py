"""Which existing nodes Workspaces can use: what they offer, selectors, taints."""

from plimsoll.cluster.nodes.host_amounts import (
    CPU,
    DISK,
    MEMORY,
    Amounts,
    amounts_of,
    lacking,
    most_of,
    said,
    short_of_host,
)
from plimsoll.cluster.nodes.index import IndexedNodes, NodeIndex, gpu_devices, index_of
from plimsoll.cluster.nodes.owners import SEVERAL, NodeOwner, node_owners, owner_in, owner_labels
from plimsoll.cluster.nodes.pod_gpus import PodDevices, Unusable, pod_devices
from plimsoll.cluster.nodes.refusals import (
    GpuRequest,
    invalid_labels,
    none_matches,
    none_usable,
    not_uniform,
    undiscovered,
)
from plimsoll.cluster.nodes.tolerance import (
    Tolerance,
    Tolerances,
    may_be_spot,
    own_tolerations,
    short_of_devices,
    tolerations,
    why_unusable,
)

__all__ = [
    "CPU",
    "DISK",
    "MEMORY",
    "SEVERAL",
    "Amounts",
    "GpuRequest",
    "IndexedNodes",
    "NodeIndex",
    "NodeOwner",
    "PodDevices",
    "Tolerance",
    "Tolerances",
    "Unusable",
    "amounts_of",
    "gpu_devices",
    "index_of",
    "invalid_labels",
    "lacking",
    "may_be_spot",
    "most_of",
    "node_owners",
    "none_matches",
    "none_usable",
    "not_uniform",
    "own_tolerations",
    "owner_in",
    "owner_labels",
    "pod_devices",
    "said",
    "short_of_devices",
    "short_of_host",
    "tolerations",
    "undiscovered",
    "why_unusable",
]
