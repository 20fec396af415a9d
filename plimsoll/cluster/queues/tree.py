"""The tree of Queues as KAI reads it: missing amounts count as 0, and queues that reach no root are ignored."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeGuard

from plimsoll.cluster.queues.amount import MILLI, NOTHING, Amount, Resource
from plimsoll.model import Snapshot
from plimsoll.model.kai import NODE_POOL_LABEL, UNLIMITED, NodePoolLabel, Queue
from plimsoll.model.meta import section

DEFAULT_PRIORITY: Final = 100


@dataclass(frozen=True, slots=True)
class Amounts:
    """One resource of one queue, in thousandths of the field's unit; None means unlimited."""

    quota: int | None
    limit: int | None
    weight: float


class QueueTree:
    """Queues by name; of several with the same name, the first counts.

    Amounts that are not numbers count as 0, like missing ones; `check_queues` reports them.
    """

    def __init__(self, queues: Iterable[Queue], label: NodePoolLabel = NODE_POOL_LABEL) -> None:
        self.label: Final = label
        self._queues: dict[str, Queue] = {}
        for queue in queues:
            self._queues.setdefault(queue.name, queue)
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._amounts: dict[tuple[str, Resource], Amounts] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> "QueueTree":
        return cls(snapshot.queues, snapshot.environment.spec.node_pool_label)

    def __contains__(self, name: str) -> bool:
        return name in self._queues

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._queues))

    def queue(self, name: str) -> Queue:
        return self._queues[name]

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the children by parent, including parents that do not exist; sorted."""
        children: dict[str, list[str]] = {}
        for name in self:
            parent = self._queues[name].parent
            if parent and not self._is_of_other_shard(name, parent):
                children.setdefault(parent, []).append(name)
        return {name: tuple(below) for name, below in children.items()}

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Queues without a parent, by name."""
        return tuple(name for name in self if not self._queues[name].parent)

    def shard_of(self, name: str) -> str:
        """KAI's node pool, to which the queue belongs; empty for that of the scheduler without a shard."""
        return self.label.of(self._queues[name].labels)

    @cached_property
    def shards(self) -> Mapping[str, tuple[str, ...]]:
        """The roots of each shard, by name: what belongs to one divides its own nodes."""
        shards: dict[str, list[str]] = {}
        for name in self.roots:
            shards.setdefault(self.shard_of(name), []).append(name)
        return {shard: tuple(roots) for shard, roots in sorted(shards.items())}

    def nested(self) -> Iterator[tuple[str, int]]:
        """Each queue with its depth, after its parent; queues without a path to a root come last."""
        left = [(name, 0) for name in reversed(self.roots)]
        while left:
            name, depth = left.pop()
            yield name, depth
            left += [(child, depth + 1) for child in reversed(self.children.get(name, ()))]
        yield from ((name, 0) for name in self if self.broken_at(name))

    def is_leaf(self, name: str) -> bool:
        return name in self and name not in self.children

    def path_to_root(self, name: str) -> tuple[str, ...]:
        """A queue and its existing ancestors, nearest first; in a cycle, each name once."""
        known = self._lineages.get(name)
        if known is None:
            found: dict[str, None] = {}
            at = name
            while at in self._queues and at not in found:
                found[at] = None
                parent = self._queues[at].parent
                at = "" if self._is_of_other_shard(at, parent) else parent
            known = self._lineages[name] = tuple(found)
        return known

    def with_descendants(self, amounts: Mapping[str, Amount]) -> dict[str, Amount]:
        """What each queue has with all of its descendants, of what queues have themselves."""
        found = dict.fromkeys(self, NOTHING)
        for queue, amount in amounts.items():
            for name in self.path_to_root(queue):
                found[name] += amount
        return found

    def broken_at(self, name: str) -> str:
        """Why a queue does not reach a root: a missing parent or a cycle; empty if it does."""
        path_to_root = self.path_to_root(name)
        if not path_to_root:
            return ""
        parent = self._queues[path_to_root[-1]].parent
        if not parent:
            return ""
        if parent in path_to_root and not self._is_of_other_shard(path_to_root[-1], parent):
            return f"the parents of Queue {path_to_root[-1]} form a cycle"
        if parent in self:
            return f"the parent of Queue {path_to_root[-1]}, {parent}, has another label {self.label.key}"
        return f"the parent of Queue {path_to_root[-1]}, {parent}, does not exist"

    def _is_of_other_shard(self, name: str, parent: str) -> bool:
        """Whether no scheduler of KAI sees both."""
        return len({self.shard_of(each) for each in (name, parent) if each in self}) > 1

    @cached_property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Each cycle of parents once, starting with its first name."""
        found: set[tuple[str, ...]] = set()
        done: set[str] = set()
        for start in self:
            if start in done:
                continue
            path = self.path_to_root(start)
            back = self._queues[path[-1]].parent
            if back in path and back not in done:
                members = path[path.index(back) :]
                first = members.index(min(members))
                found.add(members[first:] + members[:first])
            done.update(path)
        return tuple(sorted(found))

    def amounts(self, name: str, resource: Resource) -> Amounts:
        found = self._amounts.get((name, resource))
        if found is None:
            found = self._amounts[name, resource] = self._read(name, resource)
        return found

    def _read(self, name: str, resource: Resource) -> Amounts:
        given = section(self._queues[name].spec, "resources", resource)
        weight = given.get("overQuotaWeight")
        return Amounts(
            quota=_thousandths(given.get("quota")),
            limit=_thousandths(given.get("limit")),
            weight=max(0.0, float(weight)) if is_number(weight) else 0.0,
        )

    def priority(self, name: str) -> int:
        """Higher priorities are served first."""
        priority = self._queues[name].spec.get("priority")
        return int(priority) if is_number(priority) else DEFAULT_PRIORITY


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _thousandths(value: Any) -> int | None:
    if not is_number(value):
        return 0
    if value == UNLIMITED or not math.isfinite(value * MILLI):
        return None
    return max(0, round(value * MILLI))
