"""Reclaim: whose work KAI would take back for work of another queue (`reclaimable` of KAI 0.17)."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from plimsoll.cluster.queues.amount import NOTHING, Amount, Resource
from plimsoll.cluster.queues.queued import QueuedPod
from plimsoll.cluster.queues.usage import QueueUsage
from plimsoll.packing import Milli


class Reclaim:
    """The rules for one pod that needs GPUs of others."""

    def __init__(self, usage: QueueUsage, wanted: QueuedPod) -> None:
        self._usage = usage
        self._tree = usage.tree
        self._wanted = wanted

    def victims(self, ordered: Iterable[QueuedPod]) -> tuple[QueuedPod, ...]:
        """Pods that free the GPUs, of those given, the first to go first; empty if there are none.

        Pods are added until KAI would reclaim them together: one more may be needed for the queues above to stay within
        their shares. Then those that are not needed are left out. Small pods may bring a queue to its share before
        enough is free; then the largest go first.
        """
        if not self.possible:
            return ()
        given = tuple(ordered)
        return self._taken(given) or self._taken(sorted(given, key=lambda each: -each.gpu_milli))

    def _taken(self, ordered: Iterable[QueuedPod]) -> tuple[QueuedPod, ...]:
        taken: list[QueuedPod] = []
        spared: set[str] = set()
        """Queues of which nothing more may be taken, until more is taken of others."""
        for each in ordered:
            if each.queue in spared or not (each.preemptible and each.gpu_milli):
                continue
            if not (self._siblings(each) and self.allows([*taken, each], bounded=False)):
                spared.add(each.queue)
                continue
            taken.append(each)
            spared.clear()
            if self._suffices(taken):
                break
        else:
            return ()
        for each in tuple(taken):
            without = [other for other in taken if other is not each]
            if self._suffices(without):
                taken = without
        return tuple(taken)

    def allows(self, victims: Sequence[QueuedPod], *, bounded: bool = True) -> bool:
        """Whether KAI would reclaim all of these pods together; not `bounded`: whether each of them may be taken after
        those before it."""
        left = dict(self._usage.allocated)
        involved: dict[str, set[Resource]] = {}
        for each in victims:
            siblings = self._siblings(each)
            if siblings is None or not self._may_be_taken(*siblings, left):
                return False
            for name in self._tree.path_to_root(each.queue):
                left[name] -= each.requests
                involved.setdefault(name, set()).update(_requested(each.requests))
        return not bounded or (self._within_quotas() and self._all_stay_below(left, involved))

    def _all_stay_below(self, left: dict[str, Amount], involved: dict[str, set[Resource]]) -> bool:
        return all(
            self._stays_below(ours, theirs, left, resources)
            for ours in self._tree.path_to_root(self._wanted.queue)
            for theirs, resources in involved.items()
            if theirs != ours and self._tree.queue(theirs).parent == self._tree.queue(ours).parent
        )

    def _suffices(self, victims: Sequence[QueuedPod]) -> bool:
        missing = self._wanted.gpu_milli - self._usage.free_gpu_milli(self._wanted.queue)
        return sum(each.gpu_milli for each in victims) >= missing and self.allows(victims)

    @property
    def possible(self) -> bool:
        """Whether the pod's own queue stays within its fair share."""
        queue = self._wanted.queue
        share = self._usage.fair[queue]
        return self._within(self._usage.allocated[queue] + self._wanted.requests, lambda resource: share[resource])

    def _within_quotas(self) -> bool:
        """Whether all queues above stay within their quotas, if the pod is not preemptible."""
        return self._wanted.preemptible or all(
            self._within(self._usage.non_preemptible[name] + self._wanted.requests, self._quota(name))
            for name in self._tree.path_to_root(self._wanted.queue)
        )

    def _may_be_taken(self, ours: str, theirs: str, left: dict[str, Amount]) -> bool:
        """Whether their queue is above what it may have, or above its quota while ours stays within its own."""
        if not self._within(left[theirs], self._allocatable(theirs)):
            return True
        with_ours = self._usage.allocated[ours] + self._wanted.requests
        return self._within(with_ours, self._quota(ours)) and not self._within(left[theirs], self._quota(theirs))

    def _stays_below(self, ours: str, theirs: str, left: dict[str, Amount], involved: set[Resource]) -> bool:
        """Whether our queue, if it exceeds its fair share, stays relatively below the queue that loses resources."""
        with_ours = left[ours] + self._wanted.requests
        for resource in involved | _requested(self._wanted.requests):
            share, other = self._usage.fair[ours][resource], self._usage.fair[theirs][resource]
            above = with_ours[resource] > share
            if (
                above
                and other
                and (not share or Fraction(with_ours[resource], share) >= Fraction(left[theirs][resource], other))
            ):
                return False
        return True

    def _siblings(self, each: QueuedPod) -> tuple[str, str] | None:
        """The two sibling queues that contain the pods' queues; None if they are one queue."""
        path, other = (self._tree.path_to_root(queue)[::-1] for queue in (self._wanted.queue, each.queue))
        return next(((ours, theirs) for ours, theirs in zip(path, other, strict=False) if ours != theirs), None)

    def _quota(self, name: str) -> Callable[[Resource], Milli | None]:
        return lambda resource: self._tree.amounts(name, resource).quota

    def _allocatable(self, name: str) -> Callable[[Resource], Milli | None]:
        return lambda resource: self._usage.allocatable(name, resource)

    def _within(self, amount: Amount, most: Callable[[Resource], Milli | None]) -> bool:
        return all((limit := most(resource)) is None or amount[resource] <= limit for resource in Resource)


def _requested(amount: Amount) -> set[Resource]:
    return {resource for resource in Resource if amount[resource] > NOTHING[resource]}
