"""Restores the packing of a class from the status of its GPUDemand, after a restart.

The status is only a proposal: pods are placed where they fit now, and a repair continues from there.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from plimsoll.model.api import DemandPlace, GPUDemandStatus
from plimsoll.packing.nodes import FilledNode, Filling, FreeNode, NodePacking, NodeUse, large_first, place
from plimsoll.plan.demand.packer import PackedClass
from plimsoll.plan.demand.planned import PlannedClass
from plimsoll.plan.demand.pod_places import requests_of
from plimsoll.plan.demand.supply import DemandSupply

_Held = tuple[tuple[str, ...], ...]
"""Pods on each GPU of a node."""


def recall(classes: Iterable[PlannedClass], statuses: Mapping[str, GPUDemandStatus], supply: DemandSupply) -> None:
    """Sets `recalled` where the status, by name of the demand, tells any place. What one has the next has not."""
    left = supply.copy()
    for each in classes:
        status = statuses.get(each.of.name)
        if status is not None and status.places:
            each.recalled = _Recalling(each, status.requests, left).packed(status.places)


class _Recalling:
    def __init__(self, each: PlannedClass, requests: Sequence[str], left: DemandSupply) -> None:
        self._needs = {uid: need for uid, need in each.needs.items() if uid not in each.refused}
        self._requests = requests
        self._left = left
        self._came = {free.name: free for free, _ in left.came_for(each.of.name)}
        self._free = {free.name: free for free in left.serving(each.of.placement)}
        self._asked = requests_of({uid: each.members.shares[uid] for uid in sorted(self._needs)})
        self._waiting: dict[str, deque[str]] = defaultdict(deque)
        for uid, request in self._asked.items():
            self._waiting[request].append(uid)

    def packed(self, places: Iterable[DemandPlace]) -> PackedClass:
        on_nodes, on_promises, new = list[FilledNode](), dict[str, FilledNode](), list[FilledNode]()
        for each in places:
            if not each.node:
                new += self._to_come(each)
            elif (free := self._came.pop(each.node, None)) is not None:
                on_promises[each.node] = self._there(free, each.holds)
            elif (free := self._free.pop(each.node, None)) is not None:
                on_nodes.append(self._there(free, each.holds))
        return PackedClass(NodePacking((*on_nodes, *new)), tuple(on_nodes), on_promises, tuple(new))

    def _to_come(self, each: DemandPlace) -> Iterable[FilledNode]:
        for _ in range(each.nodes):
            held = self._dealt(each.holds)
            if not any(held):
                return
            yield FilledNode(held, "", shape=f"{each.node_pool}/{each.instance_type}")

    def _there(self, free: FreeNode, holds: Sequence[Sequence[int]]) -> FilledNode:
        """Some of the pods may have been bound since, perhaps there: no more than now fit."""
        held = self._dealt(holds)
        use = NodeUse.of(free, held, self._needs)
        if use is None or not use.fits(free):
            filling = Filling([free])
            for need in sorted((self._needs[uid] for uid in {uid for uids in held for uid in uids}), key=large_first):
                if not place(filling, need):
                    self._waiting[self._asked[need.name]].appendleft(need.name)
            held = filling.held(0)
        filled = FilledNode(held, free.kind, node=free.name)
        self._left.take(self._left.uses([filled], self._needs))
        return filled

    def _dealt(self, holds: Sequence[Sequence[int]]) -> _Held:
        """Pods that still wait for the places of their kind on the GPUs of one node."""
        held: list[list[str]] = [[] for _ in holds]
        places: dict[str, Counter[int]] = defaultdict(Counter)
        for gpu, numbers in enumerate(holds):
            for number in numbers:
                if 0 <= number < len(self._requests):
                    places[self._requests[number]][gpu] += 1
        for request, free in places.items():
            waiting = self._waiting.get(request)
            while waiting:
                devices = self._needs[waiting[0]].devices
                gpus = [gpu for gpu, _ in (+free).most_common(devices)]
                if len(gpus) < devices:
                    break
                uid = waiting.popleft()
                free.subtract(gpus)
                for gpu in gpus:
                    held[gpu].append(uid)
        return tuple(tuple(sorted(uids)) for uids in held)
