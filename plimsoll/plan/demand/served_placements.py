"""Which nodes and NodeClaims can serve pods of each placement."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from plimsoll.model.cluster import Node
from plimsoll.model.meta import Placement
from plimsoll.plan.pools import PoolShape


@dataclass(frozen=True, slots=True)
class Holder:
    """A node, or the shape of a NodeClaim, whose labels and taints determine which pods it can run."""

    of: Node | PoolShape
    kind: str
    gpu_memory_mib: int | None

    @property
    def gpus(self) -> tuple[str, int | None]:
        """(kind, MiB of one GPU)"""
        return self.kind, self.gpu_memory_mib

    def serves(self, placement: Placement) -> bool:
        if isinstance(self.of, PoolShape):
            return self.of.serves(placement)
        return not placement.kept_away(self.of.taints) and placement.allows(self.of.labels, self.of.name)


class ServedPlacements:
    """Which nodes and NodeClaims serve each placement, with their kinds of GPU."""

    def __init__(self) -> None:
        self.holders: dict[str, Holder] = {}
        self._names: dict[Placement, set[str]] = {}
        self._kinds: dict[Placement, Counter[tuple[str, int | None]]] = {}

    def put(self, name: str, holder: Holder | None) -> None:
        """What is of that name now; None: nothing is any more."""
        old = self.holders.pop(name, None)
        if holder is not None:
            self.holders[name] = holder
        if old == holder:
            return
        for placement, names in self._names.items():
            if old is not None and name in names:
                names.discard(name)
                self._kinds[placement][old.gpus] -= 1
            if holder is not None and holder.serves(placement):
                names.add(name)
                self._kinds[placement][holder.gpus] += 1

    def names(self, placement: Placement) -> set[str]:
        found = self._names.get(placement)
        if found is None:
            found = self._names[placement] = {name for name, each in self.holders.items() if each.serves(placement)}
            self._kinds[placement] = Counter(self.holders[name].gpus for name in found)
        return found

    def kinds(self, placement: Placement, without: Iterable[str]) -> list[tuple[str, int | None]]:
        """(kind, MiB of one GPU)"""
        names = self.names(placement)
        found = self._kinds[placement]
        left_out = Counter(self.holders[name].gpus for name in without if name in names)
        return [each for each, count in found.items() if count > left_out[each]]

    def keep(self, placements: Collection[Placement]) -> None:
        """Forgets all others."""
        for placement in self._names.keys() - placements:
            del self._names[placement], self._kinds[placement]
