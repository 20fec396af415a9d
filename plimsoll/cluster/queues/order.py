"""Which queue would get the next GPU, and whose work would be reclaimed for it, in KAI's order of queues.

Between the queues of one level: first those that are not above their fair share in all resources, then those that stay
within their quota in all, then by priority, then those that use nothing of which they have no share, then by the
smaller dominant share (DRF): the largest of the fractions of their shares of GPUs, CPU and memory, with the pod and
without it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from plimsoll.cluster.queues.amount import NOTHING, Amount, Resource
from plimsoll.cluster.queues.gate import QueueGate
from plimsoll.cluster.queues.queued import QueuedPod
from plimsoll.cluster.queues.reclaim import Reclaim
from plimsoll.cluster.queues.usage import QueueUsage

_NO_SHARE: Final = {Resource.GPU: Fraction(1), Resource.CPU: Fraction(1), Resource.MEMORY: Fraction(1, 10**6)}
"""What a queue without a share of a resource has of it instead: a thousandth of KAI's GPU, millicore and byte."""


@dataclass(frozen=True, slots=True)
class NextGpu:
    """The pod that would be placed next if GPUs are all that it waits for."""

    pod: QueuedPod
    free: bool = False
    """Whether enough GPUs are free in total."""
    victims: tuple[QueuedPod, ...] = ()
    """Pods that would be reclaimed if too few GPUs are free; empty: the pod waits for new GPUs."""


def next_gpu(usage: QueueUsage) -> NextGpu | None:
    """None if no queue would admit a pending pod."""
    tree, heads = usage.tree, _heads(usage)
    best: dict[str, QueuedPod] = {}
    for name in sorted(usage.fair, key=lambda name: -len(tree.path_to_root(name))):
        head = _first(usage, tree.children[name], best) if name in tree.children else heads.get(name)
        if head is not None:
            best[name] = head
    # Each node pool has a scheduler of its own: what is free in one comes first, then the most urgent.
    heads_of_shards = filter(None, (_first(usage, roots, best) for roots in tree.shards.values()))
    pods = [(usage.free_gpu_milli(each.queue) < each.gpu_milli, _by_urgency(each), each) for each in heads_of_shards]
    if not pods:
        return None
    lacking, _, pod = min(pods, key=lambda each: each[:2])
    if not lacking:
        return NextGpu(pod, free=True)
    shard = tree.shard_of(pod.queue)
    worths = {name: _worth(usage, name) for name in usage.fair if tree.shard_of(name) == shard}
    running = (each for each in usage.running if each.queue in worths)
    last_first = sorted(running, key=lambda each: (worths[each.queue], *_by_urgency(each)), reverse=True)
    return NextGpu(pod, victims=Reclaim(usage, pod).victims(last_first))


def _first(usage: QueueUsage, names: Iterable[str], best: Mapping[str, QueuedPod]) -> QueuedPod | None:
    """The pod that the first of these queues would place; each queue is compared with its own first pod."""
    having = [name for name in names if name in best]
    return best[min(having, key=lambda name: _key(usage, name, best[name]))] if having else None


def _heads(usage: QueueUsage) -> dict[str, QueuedPod]:
    """The first pod of each queue that it would admit: highest priority, then oldest."""
    tree = usage.tree
    gate = QueueGate(tree, usage.loads)
    heads: dict[str, QueuedPod] = {}
    for each in sorted(usage.pending, key=_by_urgency):
        if each.queue not in heads and not gate.why_not(each.queue, each.requests, each.preemptible, each.rounding):
            heads[each.queue] = each
    return heads


def _by_urgency(each: QueuedPod) -> tuple[int, str, str, str]:
    return (-each.priority, each.pod.creation_timestamp, *each.pod.key)


def _key(
    usage: QueueUsage, name: str, head: QueuedPod | None
) -> tuple[bool, bool, int, bool, Fraction, Fraction, str, str]:
    allocated = usage.allocated[name]
    with_pod = allocated + (head.requests if head else NOTHING)
    return (
        all(allocated[resource] > usage.fair[name][resource] for resource in Resource),
        not _within_quota(usage, name, with_pod),
        -usage.tree.priority(name),
        any(with_pod[resource] and usage.allocatable(name, resource) == 0 for resource in Resource),
        _dominant_share(usage, name, with_pod),
        _dominant_share(usage, name, allocated),
        usage.tree.queue(name).creation_timestamp,
        name,
    )


def _dominant_share(usage: QueueUsage, name: str, allocated: Amount) -> Fraction:
    """A queue's largest fraction of what it may have; KAI takes one without a share of a resource as far above."""
    parts = [Fraction(0)]
    for resource in Resource:
        share = usage.allocatable(name, resource)
        whole = Fraction(usage.total_of(name)[resource] if share is None else share)
        parts.append(allocated[resource] / (whole or _NO_SHARE[resource]))
    return max(parts)


def _worth(usage: QueueUsage, name: str) -> tuple[object, ...]:
    """Sort key of a queue's pods, most valuable first: the order of its queues from the root."""
    return tuple(_key(usage, above, None) for above in reversed(usage.tree.path_to_root(name)))


def _within_quota(usage: QueueUsage, name: str, allocated: Amount) -> bool:
    """Whether all resources stay within the quota."""
    quotas = ((resource, usage.tree.amounts(name, resource).quota) for resource in Resource)
    return all(quota is None or allocated[resource] <= quota for resource, quota in quotas)
