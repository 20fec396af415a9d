"""Demand provisioners: how planned nodes become objects that request them from an autoscaler."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from plimsoll.model import ObjectKey
from plimsoll.plan.demand import PlannedNode
from plimsoll.plan.owned import PlanBuilder
from plimsoll.plan.requests.capacity_request import CapacityRequest
from plimsoll.plan.requests.node_request import NodeRequest


class DemandProvisioner(Protocol):
    """One way to request nodes. An instance serves one DemandPlan."""

    def request_nodes(
        self, nodes: Sequence[PlannedNode], attempts: Mapping[str, int], builder: PlanBuilder
    ) -> list[tuple[ObjectKey, tuple[str, ...]]]:
        """Adds objects that request the nodes to the Plan; returns them with the names of the demands that each
        serves. `attempts` by demand."""

    def keep(self, request: CapacityRequest, needed: int, registered: Collection[str], builder: PlanBuilder) -> None:
        """Updates an object that stays, and creates what it refers to if that was deleted: `registered` are nodes that
        are new, `needed` is the number of nodes outstanding."""

    def signal_ready(self, request: CapacityRequest, registered: Collection[str], builder: PlanBuilder) -> None:
        """Reports the ready nodes of an object that is deleted: an autoscaler may still read it."""


class Names:
    """Names of new objects: the smallest free ordinals, so that a repeated plan creates the same objects."""

    def __init__(self, taken: Callable[[], Collection[str]]) -> None:
        """`taken` is called once, when the first name is needed."""
        self._find_taken = taken
        self._next: dict[tuple[str, str], int] = {}

    @cached_property
    def _taken(self) -> set[str]:
        return set(self._find_taken())

    def new(self, demand: str, node_request: NodeRequest, make: Callable[[str, NodeRequest, int], str]) -> str:
        key = (demand, node_request.slug)
        ordinal = self._next.get(key, 0)
        while (name := make(demand, node_request, ordinal)) in self._taken:
            ordinal += 1
        self._next[key] = ordinal + 1
        self._taken.add(name)
        return name
