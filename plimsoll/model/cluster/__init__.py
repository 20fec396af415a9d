"""What a cluster runs: nodes, pods, workloads, DaemonSets and autoscalers."""

from plimsoll.model.cluster.autoscaler import Autoscaler
from plimsoll.model.cluster.daemon_set import DaemonSet
from plimsoll.model.cluster.host_load import IDLE, HostLoad
from plimsoll.model.cluster.instance_type import InstanceType
from plimsoll.model.cluster.node import Node
from plimsoll.model.cluster.node_gpus import (
    LARGEST,
    MIB_PER_GIB,
    InvalidFigureError,
    NodeGpus,
    check_figure,
    product_words,
)
from plimsoll.model.cluster.plain_pod import PlainPod, PodLoad, requests_devices
from plimsoll.model.cluster.pod import Pod
from plimsoll.model.cluster.priority_class import PriorityClass
from plimsoll.model.cluster.share_pod import CONFIG_MAP, NVIDIA_VISIBLE_DEVICES, SharePod, config_map_names, obstacle_of
from plimsoll.model.cluster.workload import SERVICE, Workload

__all__ = [
    "CONFIG_MAP",
    "IDLE",
    "LARGEST",
    "MIB_PER_GIB",
    "NVIDIA_VISIBLE_DEVICES",
    "SERVICE",
    "Autoscaler",
    "DaemonSet",
    "HostLoad",
    "InstanceType",
    "InvalidFigureError",
    "Node",
    "NodeGpus",
    "PlainPod",
    "Pod",
    "PodLoad",
    "PriorityClass",
    "SharePod",
    "Workload",
    "check_figure",
    "config_map_names",
    "obstacle_of",
    "product_words",
    "requests_devices",
]
