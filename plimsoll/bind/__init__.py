"""The share binder: `plimsoll bind` binds share pods in clusters without KAI. Latency matters, so it writes directly to
the apiserver instead of by stack updates. All of its state is in the cluster."""

from plimsoll.bind.binder import ShareBinder
from plimsoll.bind.cluster_cache import ClusterCache
from plimsoll.bind.config_maps import ForeignConfigMapError, write_config_maps
from plimsoll.bind.kai import KaiBinderError, groups_of_bind_requests, refuse_beside_kai
from plimsoll.bind.pods import pods_of
from plimsoll.bind.settings import read_settings
from plimsoll.bind.step_writer import StepWriter

__all__ = [
    "ClusterCache",
    "ForeignConfigMapError",
    "KaiBinderError",
    "ShareBinder",
    "StepWriter",
    "groups_of_bind_requests",
    "pods_of",
    "read_settings",
    "refuse_beside_kai",
    "write_config_maps",
]
