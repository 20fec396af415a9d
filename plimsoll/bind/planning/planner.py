"""BindPlanner: plans the next steps of the share binder from nodes and pods. It remembers only how long conditions have
lasted, and until when it pauses."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from plimsoll.bind.planning.backoff import FirstSeen, NodeBackoff
from plimsoll.bind.planning.groups import GroupKey, ReservedGroups
from plimsoll.bind.planning.shares import ShareBinding
from plimsoll.bind.planning.steps import BindStep, Claim, DeleteReservation
from plimsoll.bind.planning.upkeep import ReservationUpkeep
from plimsoll.cluster.ledger import GpuLedger
from plimsoll.cluster.pods import gpu_groups
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Node, Pod


@dataclass(frozen=True, slots=True)
class BindPlan:
    steps: tuple[BindStep, ...] = ()
    next_deadline: float | None = None
    """When steps may be due although the cluster has not changed, in seconds of the caller's clock; None: never."""


class BindPlanner:
    """Plans in round after round for one cluster. A new planner continues where the last one stopped."""

    def __init__(self, settings: BinderSettings) -> None:
        self._settings = settings
        self._ledger = GpuLedger(
            settings.reservation.gpu_resource,
            settings.reservation.namespaces,
            waits=lambda _: True,  # a pod without a node counts where the binder has placed it, nowhere by its label
        )
        self._reserved = ReservedGroups(settings.reservation)
        self._backoff = NodeBackoff(settings.hold_seconds, settings.hold_limit_seconds)
        self._seen = FirstSeen()
        self._left: dict[str, float] = {}
        """UIDs of pods that could not be bound, and until when they are left alone."""
        self._lost: dict[GroupKey, float] = {}
        """Groups whose GPU was assigned to another pod, and until when they are not repaired."""

    def refused(self, node: str, now: float) -> None:
        """Records that the cluster refused a reservation on the node."""
        self._backoff.refused(node, now)

    def leave(self, uid: str, now: float) -> None:
        """Leaves a pod alone for a while that could not be bound, on whatever node."""
        self._left[uid] = now + self._settings.hold_seconds

    def plan(self, nodes: Iterable[Node], pods: Iterable[Pod], now: float) -> BindPlan:
        """Returns the steps that are due. `pods` are all unfinished pods, and reservations in any phase; `now` is in
        seconds of a monotonic clock."""
        # A claim on a pod of another scheduler is nobody's: it would be neither fulfilled nor withdrawn.
        all_pods = [pod for pod in pods if pod.node_name or pod.scheduler_name == self._settings.scheduler_name]
        self._ledger.update(nodes, all_pods)
        self._seen.begin()
        self._left = {uid: until for uid, until in self._left.items() if until > now}
        self._lost = {key: until for key, until in self._lost.items() if until > now}
        self._reserved.update(all_pods)
        groups = self._reserved.groups
        upkeep = ReservationUpkeep(
            self._settings, self._ledger, backoff=self._backoff, seen=self._seen, lost=self._lost, now=now
        )
        steps = list(upkeep.steps(groups, all_pods))
        binding = ShareBinding(
            self._settings,
            self._ledger,
            groups,
            paused=self._backoff.paused(now),
            late=upkeep.late,
            left=self._left,
        )
        binds = list(binding.steps(all_pods))
        claims = [each.assignment for each in binds if isinstance(each, Claim)]
        joined = {(claim.node, name) for claim in claims for name in claim.groups}
        steps = [each for each in steps if not _empties(each, joined)] + binds
        ends = [end for end in (self._seen.next_end(), self._backoff.next_end(now)) if end is not None]
        ends += [*self._left.values(), *self._lost.values()]
        return BindPlan(tuple(steps), min(ends, default=None))


def _empties(step: BindStep, joined: Collection[GroupKey]) -> bool:
    """Whether the step deletes the reservation of an empty group that a pod joins in the same plan."""
    if not (isinstance(step, DeleteReservation) and step.group_is_empty):
        return False
    return any((step.reservation.node_name, name) in joined for name in gpu_groups(step.reservation))
