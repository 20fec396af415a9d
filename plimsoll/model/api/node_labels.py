"""Labels that a Workspace's selector gives to the nodes that are provisioned for it."""

from collections.abc import Iterable
from typing import Final

from plimsoll.labels import FORMER_KEYS, HOSTNAME, INSTANCE_TYPE

OWNED_DOMAINS: Final = (
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    "k8s.aws",
    "karpenter.sh",
    "karpenter.azure.com",
    "kaito.sh",
    "nvidia.com",
    "kai.scheduler",
    "run.ai",
    "volcano.sh",
    "tensor-fusion.ai",
)
"""Domains of Kubernetes, Karpenter, schedulers and NVIDIA: no setting lets a Workspace write these labels, nor those of
their subdomains. What runs on a node, and who may run there, is decided by them."""
CHOSEN: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    HOSTNAME,
    INSTANCE_TYPE,
    *FORMER_KEYS,
)
"""Labels that the provider writes: conditions on them choose a node, and nobody else writes them."""
CHOSEN_PREFIXES: Final = (
    "karpenter.sh/",
    "karpenter.k8s.aws/",
    "karpenter.azure.com/",
    "karpenter.kwok.sh/",
    "topology.k8s.aws/",
)

NODE_LABELS_REFUSED: Final = (
    "resource.labelSelector would set {keys} on provisioned nodes: the prefix of such a label must be in "
    "nodeLabelPrefixes of the Environment, and is never one of Kubernetes, Karpenter, schedulers or NVIDIA; use other "
    "labels, or remove them"
)


def is_chosen(key: str) -> bool:
    """Whether the provider writes the label."""
    return key in CHOSEN or key.startswith(CHOSEN_PREFIXES)


def refused_node_labels(keys: Iterable[str], prefixes: Iterable[str]) -> list[str]:
    """The keys of a selector that the Workspace may not set on its nodes, sorted.

    `prefixes` are those of the Environment: each the part before the slash, empty for keys without one.
    """
    allowed = frozenset(prefixes)
    return sorted(key for key in keys if not is_chosen(key) and not _may_set(key, allowed))


def is_owned(key: str) -> bool:
    """Whether the label is of Kubernetes, Karpenter, a scheduler or NVIDIA."""
    prefix = key.rpartition("/")[0]
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in OWNED_DOMAINS)


def _may_set(key: str, allowed: frozenset[str]) -> bool:
    return key.rpartition("/")[0] in allowed and not is_owned(key)
