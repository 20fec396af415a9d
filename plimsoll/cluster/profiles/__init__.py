"""What a node offers, there or not: its labels, devices and resources, and which pods can run on it."""

from plimsoll.cluster.profiles.claimed import shared_gpus, taken_gpus
from plimsoll.cluster.profiles.discovery import Discovery, discovery_of, is_gpu, read_discovery
from plimsoll.cluster.profiles.finding import DiscrepancyReason, Finding
from plimsoll.cluster.profiles.gpu_labels import (
    DISCOVERED,
    GPU_REPLICAS,
    MIG_CONFIG_STATE,
    InvalidGpuLabel,
    undivided,
)
from plimsoll.cluster.profiles.label_conditions import all_met
from plimsoll.cluster.profiles.learning import HOST, lasting, learned_of, least_amounts
from plimsoll.cluster.profiles.mig import ALL_DISABLED, label_form, mig_gpus, mig_slice, slice_mib
from plimsoll.cluster.profiles.profile import CHOSEN_BY_PROVIDER, NodeProfile, Said, Source
from plimsoll.cluster.profiles.unmet import unmet_conditions
from plimsoll.cluster.profiles.vendors import PRODUCT_LABELS, parts_of, vendor_product

__all__ = [
    "ALL_DISABLED",
    "CHOSEN_BY_PROVIDER",
    "DISCOVERED",
    "GPU_REPLICAS",
    "HOST",
    "MIG_CONFIG_STATE",
    "PRODUCT_LABELS",
    "Discovery",
    "DiscrepancyReason",
    "Finding",
    "InvalidGpuLabel",
    "NodeProfile",
    "Said",
    "Source",
    "all_met",
    "discovery_of",
    "is_gpu",
    "label_form",
    "lasting",
    "learned_of",
    "least_amounts",
    "mig_gpus",
    "mig_slice",
    "parts_of",
    "read_discovery",
    "shared_gpus",
    "slice_mib",
    "taken_gpus",
    "undivided",
    "unmet_conditions",
    "vendor_product",
]
