"""GPU requests of pods, and where the pods run."""

from plimsoll.cluster.pods.competing import competing_warnings, is_competing
from plimsoll.cluster.pods.device_names import DeviceUse, device_name, known_devices, may_be_accelerator
from plimsoll.cluster.pods.draining import with_blocking_pods
from plimsoll.cluster.pods.gate import device_resources_of, gated, recently_ungated, released
from plimsoll.cluster.pods.gpu_models import may_name, tflops_milli
from plimsoll.cluster.pods.group_labels import gpu_groups, is_reservation, node_of, selected_node
from plimsoll.cluster.pods.indexed import (
    IndexedPods,
    PodChanges,
    bound_pods,
    marked_pods,
    pod_changes,
    ruled_pods,
    value_changes,
)
from plimsoll.cluster.pods.request import KnownParts, PodRequest, read_request
from plimsoll.cluster.pods.shares import (
    ASSUMED_MILLI,
    KindSizes,
    PodShare,
    ShareRefusal,
    is_of_model,
    read_shares,
    size_by_kind,
)
from plimsoll.cluster.pods.unreadable import RequestRefusal
from plimsoll.cluster.pods.usage import (
    NodeUsage,
    Owner,
    PodPlaces,
    nodes_in_use,
    own_pods,
    with_waiting_pods,
    workspace_key,
)
from plimsoll.cluster.pods.waiting import is_ours, passed_over_warnings, waits

__all__ = [
    "ASSUMED_MILLI",
    "DeviceUse",
    "IndexedPods",
    "KindSizes",
    "KnownParts",
    "NodeUsage",
    "Owner",
    "PodChanges",
    "PodPlaces",
    "PodRequest",
    "PodShare",
    "RequestRefusal",
    "ShareRefusal",
    "bound_pods",
    "competing_warnings",
    "device_name",
    "device_resources_of",
    "gated",
    "gpu_groups",
    "is_competing",
    "is_of_model",
    "is_ours",
    "is_reservation",
    "known_devices",
    "marked_pods",
    "may_be_accelerator",
    "may_name",
    "node_of",
    "nodes_in_use",
    "own_pods",
    "passed_over_warnings",
    "pod_changes",
    "read_request",
    "read_shares",
    "recently_ungated",
    "released",
    "ruled_pods",
    "selected_node",
    "size_by_kind",
    "tflops_milli",
    "value_changes",
    "waits",
    "with_blocking_pods",
    "with_waiting_pods",
    "workspace_key",
]
