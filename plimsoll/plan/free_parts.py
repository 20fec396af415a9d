"""What is free of nodes for one class: a value that is made of an earlier one by what is different."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from plimsoll.plan.node_need import FreeNode, PodNeed

Change = tuple[FreeNode | None, FreeNode | None]
"""(before, after); None: not there."""
_NOWHERE: Final = FreeNode("", "", (), 0, 0)


class Ground:
    """Nodes with what is free, by name, that many values are built on; it is never changed."""

    def __init__(self, nodes: Mapping[str, FreeNode]) -> None:
        self.nodes = nodes
        self._ranked: tuple[list[int], list[FreeNode]] | None = None

    def with_gpu_of(self, milli: int) -> list[FreeNode]:
        """Nodes of which some GPU has so many thousandths free."""
        if self._ranked is None:
            ranked = sorted(self.nodes.values(), key=lambda node: -max(node.gpus))
            self._ranked = [-max(node.gpus) for node in ranked], ranked
        largest, nodes = self._ranked
        return nodes[: bisect_right(largest, -milli)]


class FreeParts:
    """Nodes that have something free, in any order. Those that are not as on the ground stand in `over`.

    So what a change of one node costs does not depend on how many nodes there are.
    """

    __slots__ = ("_before", "_ground", "_over", "_since")

    def __init__(self, ground: Ground, over: Mapping[str, FreeNode | None]) -> None:
        self._ground = ground
        self._over = over
        self._before: Mapping[str, FreeNode | None] | None = None
        self._since: Collection[str] = ()
        """Names of what is not as it was `before`."""

    @classmethod
    def of(cls, nodes: Iterable[FreeNode]) -> "FreeParts":
        """Nodes of which nothing was known before."""
        return cls(Ground({node.name: node for node in nodes}), {})

    def changed(self, changes: Mapping[str, FreeNode | None]) -> "FreeParts":
        """The same but for these nodes."""
        if not changes:
            return self
        found = FreeParts(self._ground, {**self._over, **changes})
        found._before, found._since = self._over, changes.keys()
        return found

    def get(self, name: str) -> FreeNode | None:
        found = self._over.get(name, _NOWHERE)
        return self._ground.nodes.get(name) if found is _NOWHERE else found

    def __iter__(self) -> Iterator[FreeNode]:
        over = self._over
        yield from (node for name, node in self._ground.nodes.items() if name not in over)
        yield from (node for node in over.values() if node is not None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FreeParts) and (self is other or not any(self.changes_since(other)))

    __hash__ = None  # type: ignore[assignment]

    def changes_since(self, other: "FreeParts") -> Iterator[Change]:
        """The nodes of which not the same is free."""
        if self._over is other._over and self._ground is other._ground:
            return
        names: Collection[str] = self._since
        if self._before is not other._over or self._ground is not other._ground:
            names = self._over.keys() | other._over.keys()
            if self._ground is not other._ground:
                names = {*names, *self._ground.nodes, *other._ground.nodes}
        for name in names:
            before, after = other.get(name), self.get(name)
            if before is not after and before != after:
                yield before, after

    def useful(self, needs: Iterable[PodNeed]) -> list[FreeNode]:
        """Nodes that could take at least one of the pods, were it alone."""
        needs = tuple(needs)
        milli = min((size for need in needs for size in need.milli.values()), default=0)
        if not milli:
            return []
        cpu_milli = min(need.cpu_milli for need in needs)
        memory_mib = min(need.memory_mib for need in needs)
        over = self._over
        found = [node for node in self._ground.with_gpu_of(milli) if node.name not in over]
        found += [node for node in over.values() if node is not None and max(node.gpus) >= milli]
        return [
            node for node in found if node.cpu_milli >= cpu_milli and node.memory_mib >= memory_mib and node.pods > 0
        ]
