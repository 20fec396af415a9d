"""Demand provisioners: how planned nodes become objects that an autoscaler reads."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Protocol

from plimsoll.plan.demand import Demand, PlannedNode
from plimsoll.plan.owned import Delta, RequestObject
from plimsoll.plan.requests.capacity_request import CapacityRequest
from plimsoll.plan.requests.node_request import NodeRequest


class DemandProvisioner(Protocol):
    """One way to ask for nodes; one object serves a whole round."""

    def makes(self, thing: RequestObject) -> bool:
        """Whether the object is of the kind that this provisioner asks by."""

    def request_nodes(self, demand: Demand, nodes: Sequence[PlannedNode], attempt: int, delta: Delta) -> int:
        """Adds what asks for new nodes; how many objects do."""

    def keep(self, request: CapacityRequest, needed: int, registered: Collection[str], delta: Delta) -> None:
        """Adds what an object that stays lacks: `came` are nodes that are new since, `needed` those still awaited."""

    def signal_ready(self, request: CapacityRequest, registered: Collection[str], delta: Delta) -> None:
        """Adds what an object that goes must still say: an autoscaler may look again before it has gone."""


class Names:
    """Names of new objects: the smallest ordinals that are free, so that a repeated plan asks for the same."""

    def __init__(self, taken: Callable[[], Collection[str]]) -> None:
        """`taken` is asked once, when the first name is needed."""
        self._find_taken = taken
        self._next: dict[tuple[str, str], int] = {}

    @cached_property
    def _taken(self) -> set[str]:
        return set(self._find_taken())

    def new(self, demand: str, node_request: NodeRequest, make: "NameMaker") -> str:
        key = (demand, node_request.slug)
        ordinal = self._next.get(key, 0)
        while (name := make(demand, node_request, ordinal)) in self._taken:
            ordinal += 1
        self._next[key] = ordinal + 1
        self._taken.add(name)
        return name


class NameMaker(Protocol):
    def __call__(self, demand: str, node_request: NodeRequest, ordinal: int) -> str: ...
