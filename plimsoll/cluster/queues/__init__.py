"""KAI's queues: the tree, its checks, usage, admission and fair share."""

from plimsoll.cluster.queues.amount import MILLI, NOTHING, Amount, Resource
from plimsoll.cluster.queues.checks import check_queues, is_queue, require_object, use_problem
from plimsoll.cluster.queues.fair_share import Claim, PastUsage, UsageByQueue, divide, fair_shares
from plimsoll.cluster.queues.gate import NO_QUEUE, OVER_LIMIT, OVER_QUOTA, QueueGate, QueueRequest
from plimsoll.cluster.queues.load import NO_LOAD, QueueLoad
from plimsoll.cluster.queues.order import NextGpu, next_gpu
from plimsoll.cluster.queues.preemptibility import is_preemptible, priority_of, queue_of
from plimsoll.cluster.queues.queued import QueuedPod, QueuedPods
from plimsoll.cluster.queues.reclaim import Reclaim
from plimsoll.cluster.queues.tree import QueueTree
from plimsoll.cluster.queues.usage import IncrementalUsage, QueueUsage, queue_usage
from plimsoll.cluster.queues.users import queue_uses

__all__ = [
    "MILLI",
    "NOTHING",
    "NO_LOAD",
    "NO_QUEUE",
    "OVER_LIMIT",
    "OVER_QUOTA",
    "Amount",
    "Claim",
    "IncrementalUsage",
    "NextGpu",
    "PastUsage",
    "QueueGate",
    "QueueLoad",
    "QueueRequest",
    "QueueTree",
    "QueueUsage",
    "QueuedPod",
    "QueuedPods",
    "Reclaim",
    "Resource",
    "UsageByQueue",
    "check_queues",
    "divide",
    "fair_shares",
    "is_preemptible",
    "is_queue",
    "next_gpu",
    "priority_of",
    "queue_of",
    "queue_usage",
    "queue_uses",
    "require_object",
    "use_problem",
]
