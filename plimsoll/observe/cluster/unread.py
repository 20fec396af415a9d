"""What a reader that goes on without kinds does not see of a cluster, by the kinds that its account may not list."""

from collections.abc import Collection
from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.observe.cluster.kinds import Kind

_SEEN_BY: Final = {
    ("Node",): "nodes, their GPUs, what they cost and what is idle",
    ("Pod",): "what uses GPUs, what waits for them and what is idle",
    ("Environment",): "the settings of an Environment, whose defaults are used",
    ("Workspace", "Deployment", "StatefulSet", "LeaderWorkerSet", "Service", "HorizontalPodAutoscaler"): "Workspaces",
    ("NodeClaim",): "nodes that are requested and did not come, and who asked for nodes",
    (
        "NodePool",
        "NodeOverlay",
        "EC2NodeClass",
        "AKSNodeClass",
        "NodeProfile",
    ): "nodes that NodePools could provide, with what they have",
    ("Event", "Event on requested capacity"): "what autoscalers say of requested nodes",
    ("DaemonSet",): "what DaemonSets take of new nodes",
    ("Namespace",): "Pod Security of namespaces",
    ("PodDisruptionBudget",): "what keeps nodes from being drained",
    ("ResourceQuota",): "what ResourceQuotas allow",
    ("PersistentVolumeClaim", "PersistentVolume", "StorageClass"): "where pods with volumes may run",
    ("Queue",): "queues and their quotas",
    ("PodGroup", "Topology"): "gangs, and the levels that they require",
    ("SchedulingShard",): "node pools of KAI",
    ("GPUDemand",): "what was requested for pods before",
    ("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"): "devices that pods get by claims",
    ("PodTemplate", "CapacityBuffer", "ProvisioningRequest"): "capacity that is requested",
}
SEEN_BY: Final = {name: text for names, text in _SEEN_BY.items() for name in names}
"""What is not judged without a kind, by its name."""


def without(kind: Kind[Any], unread: Collection[str]) -> str:
    """The warning that the account may not list the kind, where `unread` are the names of all such kinds so far.

    Raises PlimsollError if neither nodes nor pods may be listed: nothing is left to judge.
    """
    if {"Node", "Pod"} <= set(unread):
        raise PlimsollError(
            "the account may list neither nodes nor pods: nothing is left to judge",
            "grant get and list on nodes and pods, such as by a ClusterRole that a ClusterRoleBinding grants",
        )
    maybe = ", if the cluster has it" if kind.definition is not None else ""
    return (
        f"{kind.name}: the account may not list it; not judged: {SEEN_BY[kind.name]}; grant get and list on "
        f"{kind.path.rpartition('/')[2]}{maybe}"
    )
