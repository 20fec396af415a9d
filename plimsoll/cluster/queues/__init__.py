"""KAI's queues: the tree, its checks, usage, admission and fair share."""

from plimsoll.cluster.queues.amount import MILLI, NOTHING, Amount, Resource
from plimsoll.cluster.queues.checks import check_queues, is_queue, require_object, use_problem
from plimsoll.cluster.queues.fair_share import Claim, PastUsage, UsageByQueue, divide, fair_shares
from plimsoll.cluster.queues.gate import QueueGate
from plimsoll.cluster.queues.load import NO_LOAD, QueueLoad
from plimsoll.cluster.queues.order import NextGpu, next_gpu
from plimsoll.cluster.queues.preemptibility import (
    DEFAULT_SCHEDULER,
    PRIORITY_CLASS,
    is_preemptible,
    node_pool_of,
    placed_in_shard,
    priority_of,
    queue_of,
)
from plimsoll.cluster.queues.queued import QueuedPod, QueuedPods
from plimsoll.cluster.queues.reclaim import Reclaim
from plimsoll.cluster.queues.request import Counted, counted, gpus_held, seen_by_kai
from plimsoll.cluster.queues.shards import is_sharded
from plimsoll.cluster.queues.tree import QueueTree
from plimsoll.cluster.queues.usage import IncrementalUsage, QueueUsage, queue_usage
from plimsoll.cluster.queues.users import queue_uses

__all__ = [
    "DEFAULT_SCHEDULER",
    "MILLI",
    "NOTHING",
    "NO_LOAD",
    "PRIORITY_CLASS",
    "Amount",
    "Claim",
    "Counted",
    "IncrementalUsage",
    "NextGpu",
    "PastUsage",
    "QueueGate",
    "QueueLoad",
    "QueueTree",
    "QueueUsage",
    "QueuedPod",
    "QueuedPods",
    "Reclaim",
    "Resource",
    "UsageByQueue",
    "check_queues",
    "counted",
    "divide",
    "fair_shares",
    "gpus_held",
    "is_preemptible",
    "is_queue",
    "is_sharded",
    "next_gpu",
    "node_pool_of",
    "placed_in_shard",
    "priority_of",
    "queue_of",
    "queue_usage",
    "queue_uses",
    "require_object",
    "seen_by_kai",
    "use_problem",
]
