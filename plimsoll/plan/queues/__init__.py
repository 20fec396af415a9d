"""KAI's queues: the tree, its checks, usage, admission and fair share."""

from plimsoll.plan.queues.checks import check_queues, is_queue, require_object, use_problem
from plimsoll.plan.queues.fair_share import Claim, divide, fair_shares
from plimsoll.plan.queues.gate import QueueGate
from plimsoll.plan.queues.load import NO_LOAD, QueueLoad, QueueLoads, is_preemptible, queue_of
from plimsoll.plan.queues.order import NextGpu, next_gpu
from plimsoll.plan.queues.tree import MILLI, QueueTree, Resource
from plimsoll.plan.queues.usage import NOTHING, QueuedPod, QueueUsage, queue_usage
from plimsoll.plan.queues.users import queue_uses

__all__ = [
    "MILLI",
    "NOTHING",
    "NO_LOAD",
    "Claim",
    "NextGpu",
    "QueueGate",
    "QueueLoad",
    "QueueLoads",
    "QueueTree",
    "QueueUsage",
    "QueuedPod",
    "Resource",
    "check_queues",
    "divide",
    "fair_shares",
    "is_preemptible",
    "is_queue",
    "next_gpu",
    "queue_of",
    "queue_usage",
    "queue_uses",
    "require_object",
    "use_problem",
]
