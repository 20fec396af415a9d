"""GPU requests of pods, and where the pods run."""

from plimsoll.cluster.pods.changes import PodChanges, pod_changes, value_changes
from plimsoll.cluster.pods.competing import competing_warnings, is_competing
from plimsoll.cluster.pods.gate import device_resources_of, gated, recently_ungated
from plimsoll.cluster.pods.gpu_models import may_name, tflops_milli
from plimsoll.cluster.pods.group_labels import gpu_groups, is_reservation, node_of, selected_node
from plimsoll.cluster.pods.indexed import IndexedPods, bound_pods, marked_pods
from plimsoll.cluster.pods.shares import (
    ASSUMED_MILLI,
    GpuKind,
    KindSizes,
    PodShare,
    ShareRefusal,
    is_of_model,
    read_share,
    read_shares,
    size_by_kind,
)
from plimsoll.cluster.pods.undeclared import check_declared
from plimsoll.cluster.pods.unreadable import UnreadableShareError
from plimsoll.cluster.pods.usage import NodeUsage, Owner, PodPlaces, nodes_in_use, owner_of

__all__ = [
    "ASSUMED_MILLI",
    "GpuKind",
    "IndexedPods",
    "KindSizes",
    "NodeUsage",
    "Owner",
    "PodChanges",
    "PodPlaces",
    "PodShare",
    "ShareRefusal",
    "UnreadableShareError",
    "bound_pods",
    "check_declared",
    "competing_warnings",
    "device_resources_of",
    "gated",
    "gpu_groups",
    "is_competing",
    "is_of_model",
    "is_reservation",
    "marked_pods",
    "may_name",
    "node_of",
    "nodes_in_use",
    "owner_of",
    "pod_changes",
    "read_share",
    "read_shares",
    "recently_ungated",
    "selected_node",
    "size_by_kind",
    "tflops_milli",
    "value_changes",
]
