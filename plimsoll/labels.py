"""Keys of labels, annotations and resources, and the syntax of label values."""

import hashlib
import re
from functools import lru_cache
from typing import Final

GROUP: Final = "plimsoll.dev"
API_VERSION: Final = f"{GROUP}/v1alpha1"
SCHEMA: Final = f"{GROUP}/schema"
"""Label of Plimsoll's CustomResourceDefinitions: the version of their fields, a number."""
SCHEMA_VERSION: Final = 1
"""Current version. It is increased when older releases cannot read the objects."""

WORKSPACE: Final = f"{GROUP}/workspace"
WORKSPACE_NAMESPACE: Final = f"{GROUP}/workspace-namespace"
WORKSPACE_UID: Final = f"{GROUP}/workspace-uid"
DEMAND: Final = f"{GROUP}/demand"
"""Name of the GPUDemand for which the object requests capacity."""
REQUEST: Final = f"{GROUP}/request"
"""Label of a node: the trigger pod for which it was launched, if that pod requests no GPUs."""
OWNER_NAMESPACE: Final = f"{GROUP}/owner-namespace"
OWNER_QUEUE: Final = f"{GROUP}/owner-queue"
"""Labels of a NodeClaim and its node: namespace and KAI queue of the pods or the Workspace that they are for."""
HEADROOM: Final = f"{GROUP}/headroom"
"""Name of the Environment's headroom that the object requests."""
ENVIRONMENT: Final = f"{GROUP}/environment"
SHARD: Final = f"{GROUP}/shard"
"""The capacity stack that owns the object; set once, when the object is created."""
SPEC_HASH: Final = f"{GROUP}/spec-hash"
"""Annotation: hash of what the plan declared, so that a change is seen without a comparison of fields."""
GIVEN_UP: Final = f"{GROUP}/given-up-rollout"
"""Annotation of a Deployment: hash of the pod template whose rollout made no progress until its deadline."""
MOVED: Final = f"{GROUP}/moved-from"
"""Annotation of a Deployment and its pods: hash of the NodeClaims from whose nodes they moved last to existing ones."""
CAPACITY_FINALIZER: Final = f"{GROUP}/capacity"
"""Finalizer: keeps a deleted Workspace until the objects that were created for it are deleted."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
SHARE_BINDER: Final = "plimsoll-bind"
"""Value of that label on objects that the share binder creates."""

HOSTNAME: Final = "kubernetes.io/hostname"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""Label of every namespace: its name."""
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
NODEPOOL: Final = "karpenter.sh/nodepool"
ZONE: Final = "topology.kubernetes.io/zone"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
OS: Final = "kubernetes.io/os"
FORMER_KEYS: Final = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}
"""Former keys of nodes' labels. Nodes have both, and to Karpenter a condition on one is a condition on the other."""
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
QUEUE: Final = "kai.scheduler/queue"

LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
"""Annotation of a LeaderWorkerSet's pod: the number of pods in its group, its leader among them."""
TENSOR_FUSION_REQUESTS: Final = ("tensor-fusion.ai/tflops-request", "tensor-fusion.ai/vram-request")
"""Annotations with a pod's original request, before its conversion to a share of a GPU."""

GPU_RESOURCE: Final = "nvidia.com/gpu"
SHARED_GPU_RESOURCE: Final = f"{GPU_RESOURCE}.shared"
"""The extended resource of NVIDIA's device plugin for GPUs that it shares by time-slicing or MPS, and renames."""
GPU_PRODUCT: Final = "nvidia.com/gpu.product"
GPU_COUNT: Final = "nvidia.com/gpu.count"
GPU_MEMORY: Final = "nvidia.com/gpu.memory"
"""MiB of one GPU, as GPU Feature Discovery writes it."""
GPU_PRESENT: Final = "nvidia.com/gpu.present"
GPU_TIMESTAMP: Final = "nvidia.com/gfd.timestamp"
"""Changes at every run of GPU Feature Discovery; ignored in planning."""
MIG_CONFIG: Final = "nvidia.com/mig.config"
"""Label by which NVIDIA's MIG manager divides a node's GPUs: the name of a configuration."""
MIG_PREFIX: Final = "nvidia.com/mig-"
"""Of the labels and extended resources of MIG devices; a profile such as `1g.10gb` follows."""
DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of the resources that each stand for a claim of devices of one DeviceClass (KEP-5004)."""

GPU_GROUP: Final = "runai-gpu-group"
"""Label of a share pod and of the reservation of its GPU: the group's name."""
GPU_GROUP_PREFIX: Final = f"{GPU_GROUP}/"
"""Labels of a pod with shares of several GPUs: the prefix and a group's name, for each; the value is the name."""
RESERVED_GPU: Final = "run.ai/reserve_for_gpu_index"
"""Annotation of a reservation: the UUID of its GPU (the key is KAI's and says index)."""
UNKNOWN_GPU: Final = "-1"
"""Value for a UUID that was not reported in time."""
SELECTED_NODE: Final = "plimsoll.dev/selected-node"
"""Annotation of a share pod that is about to be bound, as `node/uid`: the node where its groups' reservations are or
will be, and the pod's UID, so that the annotation has no effect on a copy of the pod."""
VISIBLE_DEVICES: Final = "plimsoll.dev/visible-devices"
"""Annotation of a bound share pod: the UUIDs of its GPUs, separated by commas, in the order of its groups' names."""
GPU_PORTION: Final = "plimsoll.dev/gpu-portion"
"""Annotation of a bound share pod: its part of each GPU, such as `0.5`."""

FIELD_MANAGER: Final = "plimsoll"

KEY_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY_PREFIX: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
LABEL_VALUE: Final = f"(?:{KEY_NAME})?"
"""Patterns of the whole of a label key's name and prefix, and of a label's value."""
_VALUE = re.compile(LABEL_VALUE)
_KEY_NAME = re.compile(KEY_NAME)
_KEY_PREFIX = re.compile(KEY_PREFIX)


def is_label_value(value: str) -> bool:
    """Whether `value` may stand as a label's value: at most 63 characters, see the Kubernetes label syntax."""
    return _VALUE.fullmatch(value) is not None


def is_label_key(key: str) -> bool:
    """Whether `key` is a label key: an optional DNS prefix of at most 253 characters, a slash, a name of at most 63."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _KEY_PREFIX.fullmatch(prefix)):
        return False
    return _KEY_NAME.fullmatch(name) is not None


@lru_cache(maxsize=16_384)
def is_device(resource: str) -> bool:
    """Whether a resource is an extended one, as devices are: it has a domain other than kubernetes.io, or stands for a
    claim of devices."""
    domain, slash, _ = resource.partition("/")
    return (bool(slash) and not domain.endswith("kubernetes.io")) or resource.startswith(DEVICE_CLASS_PREFIX)


def is_part_of_gpu(resource: str) -> bool:
    """Whether a resource is, by the names of NVIDIA's device plugin, one of devices that are parts of GPUs."""
    return resource == SHARED_GPU_RESOURCE or resource.startswith(MIG_PREFIX)


@lru_cache(maxsize=16_384)
def as_label_value(name: str) -> str:
    """`name` as a label's value: itself where it fits, else its head and 10 hex digits of its SHA-256.

    Object names may have 253 characters, label values 63. Two names never share a value but by collision of the hash.
    """
    if is_label_value(name):
        return name
    return f"{name[:52].rstrip('-._')}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"
