"""The share binder: `plimsoll bind` binds share pods in clusters without KAI. Latency matters, so it writes directly to
the apiserver instead of by stack updates. All of its state is in the cluster."""

from plimsoll.bind.binder import ShareBinder
from plimsoll.bind.cluster import Cluster
from plimsoll.bind.handing import ForeignConfigMapError, hand_over
from plimsoll.bind.kai import KaiBinderError, groups_of_bind_requests, refuse_beside_kai
from plimsoll.bind.pods import pods_of
from plimsoll.bind.writing import Writing

__all__ = [
    "Cluster",
    "ForeignConfigMapError",
    "KaiBinderError",
    "ShareBinder",
    "Writing",
    "groups_of_bind_requests",
    "hand_over",
    "pods_of",
    "refuse_beside_kai",
]
