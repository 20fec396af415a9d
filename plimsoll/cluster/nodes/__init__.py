"""What nodes offer: GFD labels, MIG, selectors, taints."""

from plimsoll.cluster.nodes.gpu_labels import (
    GPU_REPLICAS,
    MIG_CONFIG,
    SHARED_PRODUCT,
    GpuLabels,
    InvalidGpuLabel,
    parse_gpu_labels,
)
from plimsoll.cluster.nodes.gpu_offer import Offer, Offers, Unusable
from plimsoll.cluster.nodes.index import IndexedNodes, NodeIndex, gpu_devices, index_of
from plimsoll.cluster.nodes.mig import (
    ALL_DISABLED,
    label_form,
    mig_gpus,
    mig_slice,
    parse_mig_labels,
    single_profile,
)
from plimsoll.cluster.nodes.refusals import GpuRequest, invalid_labels, none_matches, none_usable, not_uniform
from plimsoll.cluster.nodes.tolerance import (
    Tolerance,
    Tolerances,
    may_be_spot,
    short_of_devices,
    tolerations,
    why_unusable,
)

__all__ = [
    "ALL_DISABLED",
    "GPU_REPLICAS",
    "MIG_CONFIG",
    "SHARED_PRODUCT",
    "GpuLabels",
    "GpuRequest",
    "IndexedNodes",
    "InvalidGpuLabel",
    "NodeIndex",
    "Offer",
    "Offers",
    "Tolerance",
    "Tolerances",
    "Unusable",
    "gpu_devices",
    "index_of",
    "invalid_labels",
    "label_form",
    "may_be_spot",
    "mig_gpus",
    "mig_slice",
    "none_matches",
    "none_usable",
    "not_uniform",
    "parse_gpu_labels",
    "parse_mig_labels",
    "short_of_devices",
    "single_profile",
    "tolerations",
    "why_unusable",
]
