"""Reads what planning needs of the manifests of pods."""

from plimsoll.observe.pods.plain_pods import PlainPods
from plimsoll.observe.pods.pod_manifests import is_plain, read_pod, trimmed_pod

__all__ = [
    "PlainPods",
    "is_plain",
    "read_pod",
    "trimmed_pod",
]
