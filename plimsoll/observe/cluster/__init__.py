"""Observes one cluster by list and watch, as Snapshots of its current state."""

from plimsoll.observe.cluster.batcher import Batcher
from plimsoll.observe.cluster.cluster_watch import ClusterWatch, NewerSchemaError
from plimsoll.observe.cluster.events import events_about
from plimsoll.observe.cluster.health import SILENCE_SECONDS, Health, NotSyncedError, SilentWatchError
from plimsoll.observe.cluster.kinds import (
    AUTOSCALERS,
    CLAIM_EVENTS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    GPU_DEMANDS,
    LAST_APPLIED,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_PROFILES,
    NODES,
    POD_TEMPLATES,
    PODS,
    QUEUES,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    WORKSPACES,
    Kind,
    request_events,
)
from plimsoll.observe.cluster.listing import list_objects
from plimsoll.observe.cluster.observer import Observer
from plimsoll.observe.cluster.opening import open_observer
from plimsoll.observe.cluster.pod_store import PodStore
from plimsoll.observe.cluster.queue_manifests import queue_objects
from plimsoll.observe.cluster.reading import read_cluster
from plimsoll.observe.cluster.snapshots import Stores
from plimsoll.observe.cluster.store import Store
from plimsoll.observe.cluster.unread import SEEN_BY

__all__ = [
    "AUTOSCALERS",
    "CLAIM_EVENTS",
    "DAEMON_SETS",
    "DEFINITIONS",
    "DEPLOYMENTS",
    "DISRUPTION_BUDGETS",
    "GPU_DEMANDS",
    "LAST_APPLIED",
    "NAMESPACES",
    "NODES",
    "NODE_CLAIMS",
    "NODE_PROFILES",
    "PODS",
    "POD_TEMPLATES",
    "QUEUES",
    "RESOURCE_QUOTAS",
    "SEEN_BY",
    "SERVICES",
    "SILENCE_SECONDS",
    "STATEFUL_SETS",
    "STORAGE_CLASSES",
    "VOLUMES",
    "VOLUME_CLAIMS",
    "WORKSPACES",
    "Batcher",
    "ClusterWatch",
    "Health",
    "Kind",
    "NewerSchemaError",
    "NotSyncedError",
    "Observer",
    "PodStore",
    "SilentWatchError",
    "Store",
    "Stores",
    "events_about",
    "list_objects",
    "open_observer",
    "queue_objects",
    "read_cluster",
    "request_events",
]
