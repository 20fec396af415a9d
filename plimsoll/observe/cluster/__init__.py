"""Observes one cluster by list and watch, as Snapshots of its current state."""

from plimsoll.observe.cluster.batcher import Batcher
from plimsoll.observe.cluster.cluster_watch import ClusterWatch, NewerSchemaError
from plimsoll.observe.cluster.events import events_about
from plimsoll.observe.cluster.health import NotSyncedError
from plimsoll.observe.cluster.kinds import (
    AUTOSCALERS,
    CLAIM_EVENTS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    LAST_APPLIED,
    NODE_CLAIMS,
    NODES,
    POD_TEMPLATES,
    PODS,
    QUEUES,
    SERVICES,
    STATEFUL_SETS,
    WORKSPACES,
    Kind,
)
from plimsoll.observe.cluster.listing import list_objects
from plimsoll.observe.cluster.observer import Observer
from plimsoll.observe.cluster.opening import open_observer
from plimsoll.observe.cluster.pod_store import PodStore
from plimsoll.observe.cluster.queue_manifests import queue_objects
from plimsoll.observe.cluster.reading import read_cluster
from plimsoll.observe.cluster.snapshots import Stores
from plimsoll.observe.cluster.store import Store

__all__ = [
    "AUTOSCALERS",
    "CLAIM_EVENTS",
    "DAEMON_SETS",
    "DEFINITIONS",
    "DEPLOYMENTS",
    "LAST_APPLIED",
    "NODES",
    "NODE_CLAIMS",
    "PODS",
    "POD_TEMPLATES",
    "QUEUES",
    "SERVICES",
    "STATEFUL_SETS",
    "WORKSPACES",
    "Batcher",
    "ClusterWatch",
    "Kind",
    "NewerSchemaError",
    "NotSyncedError",
    "Observer",
    "PodStore",
    "Store",
    "Stores",
    "events_about",
    "list_objects",
    "open_observer",
    "queue_objects",
    "read_cluster",
]
