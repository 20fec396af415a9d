"""Plans the next steps of the share binder from nodes and pods. Its only memory is how long it has waited."""

from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.bind.planning.groups import ReservedGroups
from plimsoll.bind.planning.patience import FirstSeen, NodeHolds
from plimsoll.bind.planning.shares import ShareBinding
from plimsoll.bind.planning.steps import BindStep
from plimsoll.bind.planning.upkeep import ReservationUpkeep
from plimsoll.cluster.ledger import GpuLedger
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Node, Pod


@dataclass(frozen=True, slots=True)
class BindPlan:
    steps: tuple[BindStep, ...] = ()
    next_look: float | None = None
    """When, by the clock that was given, steps may come without a change of the cluster; None: never."""


class BindPlanner:
    """Plans for one cluster, again and again; a new one on the same cluster goes on where the last one was."""

    def __init__(self, settings: BinderSettings) -> None:
        self._settings = settings
        self._ledger = GpuLedger(settings.reservation.gpu_resource, settings.reservation.namespaces)
        self._reserved = ReservedGroups(settings.reservation.namespaces)
        self._holds = NodeHolds(settings.hold_seconds, settings.hold_limit_seconds)
        self._seen = FirstSeen()
        self._left: set[str] = set()

    def failed(self, node: str, what: str, now: float) -> None:
        """The cluster refused a reservation on the node; `what` tells one refusal from another."""
        self._holds.failed(node, what, now)

    def leave(self, uid: str) -> None:
        """That pod cannot be bound whatever the nodes: it is left alone, as long as this planner lives."""
        self._left.add(uid)

    def plan(self, nodes: Iterable[Node], pods: Iterable[Pod], now: float) -> BindPlan:
        """`pods` are all that are not finished, and reservations in any phase; `now` in seconds that only grow."""
        there = list(pods)
        self._ledger.update(nodes, there)
        self._seen.begin()
        self._reserved.update(there)
        groups = self._reserved.groups
        upkeep = ReservationUpkeep(self._settings, self._ledger, self._holds, self._seen, now)
        steps = list(upkeep.steps(groups))
        binding = ShareBinding(
            self._settings,
            self._ledger,
            groups,
            held=self._holds.held(now),
            late=upkeep.late,
            left=self._left,
        )
        steps += binding.steps(there)
        ends = [end for end in (self._seen.next_end(), self._holds.next_end(now)) if end is not None]
        return BindPlan(tuple(steps), min(ends, default=None))
