"""What a cluster runs: nodes, pods, workloads, DaemonSets and autoscalers."""

from plimsoll.model.cluster.autoscaler import Autoscaler
from plimsoll.model.cluster.daemon_set import DaemonSet
from plimsoll.model.cluster.device import AMD_GPU, NVIDIA, VENDOR_RESOURCES, Device, Division
from plimsoll.model.cluster.disruption_budget import PodDisruptionBudget
from plimsoll.model.cluster.evidence import Evidence
from plimsoll.model.cluster.figures import (
    LARGEST,
    MIB_PER_GIB,
    InvalidFigureError,
    check_count,
    check_figure,
    product_words,
)
from plimsoll.model.cluster.host_load import IDLE, HostLoad
from plimsoll.model.cluster.instance_type import InstanceType
from plimsoll.model.cluster.list_price import ListPrice
from plimsoll.model.cluster.node import UNHEALTHY, Node
from plimsoll.model.cluster.plain_pod import Neighbour, PlainPod, PodLoad, requests_devices
from plimsoll.model.cluster.pod import Pod
from plimsoll.model.cluster.priority_class import PriorityClass
from plimsoll.model.cluster.share_pod import CONFIG_MAP, NVIDIA_VISIBLE_DEVICES, SharePod, config_map_names, obstacle_of
from plimsoll.model.cluster.storage import (
    DISK_DRIVERS,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeClaim,
    read_claims,
)
from plimsoll.model.cluster.tenant_namespace import (
    CLAIMS,
    CLASS_DEVICES,
    Namespace,
    ResourceQuota,
    amounts_of_claim,
    part_of_pods,
)
from plimsoll.model.cluster.workload import SERVICE, Workload

__all__ = [
    "AMD_GPU",
    "CLAIMS",
    "CLASS_DEVICES",
    "CONFIG_MAP",
    "DISK_DRIVERS",
    "IDLE",
    "LARGEST",
    "MIB_PER_GIB",
    "NVIDIA",
    "NVIDIA_VISIBLE_DEVICES",
    "SERVICE",
    "UNHEALTHY",
    "VENDOR_RESOURCES",
    "Autoscaler",
    "DaemonSet",
    "Device",
    "Division",
    "Evidence",
    "HostLoad",
    "InstanceType",
    "InvalidFigureError",
    "ListPrice",
    "Namespace",
    "Neighbour",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PlainPod",
    "Pod",
    "PodDisruptionBudget",
    "PodLoad",
    "PriorityClass",
    "ResourceQuota",
    "SharePod",
    "StorageClass",
    "VolumeClaim",
    "Workload",
    "amounts_of_claim",
    "check_count",
    "check_figure",
    "config_map_names",
    "obstacle_of",
    "part_of_pods",
    "product_words",
    "read_claims",
    "requests_devices",
]
