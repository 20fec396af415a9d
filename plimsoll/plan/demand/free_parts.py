"""The free resources of nodes for one class, derived from an earlier value and its changes."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Final

from plimsoll.packing.nodes import FreeNode, PodNeed

Change = tuple[FreeNode | None, FreeNode | None]
"""(before, after); None: not there."""
_NOWHERE: Final = FreeNode("", "", (), 0, 0)


class Ground:
    """Nodes with what is free, by name, that many values are built on; it is never changed."""

    def __init__(self, nodes: Mapping[str, FreeNode]) -> None:
        self.nodes = nodes

    @cached_property
    def alike(self) -> list[list[FreeNode]]:
        """Nodes that are the same but for their names, those with the largest free GPU first."""
        return alike(self.nodes.values())


def alike(nodes: Iterable[FreeNode]) -> list[list[FreeNode]]:
    """Nodes that are the same but for their names, those with the largest free GPU first."""
    found: dict[tuple[object, ...], list[FreeNode]] = {}
    for node in nodes:
        found.setdefault((node.kind, node.gpus, node.cpu_milli, node.memory_mib, node.pods), []).append(node)
    return sorted(found.values(), key=lambda several: -max(several[0].gpus))


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
        return isinstance(other, FreeParts) and (self is other or not any(True for _ in self.changes_since(other)))

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
        """Nodes that could take at least one of the pods, were it alone; of nodes that are alike as many as pods."""
        needs = tuple(needs)
        milli = min((size for need in needs for size in need.milli.values()), default=0)
        if not milli:
            return []
        cpu_milli = min(need.cpu_milli for need in needs)
        memory_mib = min(need.memory_mib for need in needs)
        over, found = self._over, list[FreeNode]()
        for several in (*self._ground.alike, *alike(node for node in over.values() if node is not None)):
            one = several[0]
            if max(one.gpus) < milli or one.cpu_milli < cpu_milli or one.memory_mib < memory_mib or one.pods < 1:
                continue
            there = (node for node in several if over.get(node.name, node) is node)
            found += islice(there, len(needs))
        return found
