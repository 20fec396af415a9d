"""All pods of a snapshot with an index of those that are often needed, and what differs from an earlier one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from plimsoll.cluster.pods.competing import is_competing
from plimsoll.labels import GROUP
from plimsoll.model.cluster import Pod

T = TypeVar("T")
_OURS: Final = f"{GROUP}/"
_STEP: Final = 1024


class PodChanges(NamedTuple):
    gone: tuple[Pod, ...]
    """Including pods that were replaced by a newer value."""
    new: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class _Index:
    marked: tuple[Pod, ...] = ()
    ruled: tuple[Pod, ...] = ()
    by_node: Mapping[str, tuple[Pod, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def after(self, gone: Sequence[Pod], new: Sequence[Pod]) -> "_Index":
        """The index after these changes."""
        left = {pod.key for pod in gone}
        marked = (*(pod for pod in self.marked if pod.key not in left), *filter(is_marked, new))
        ruled = (*(pod for pod in self.ruled if pod.key not in left), *(pod for pod in new if pod.rules))
        by_node = dict(self.by_node)
        for node in {pod.node_name for pod in gone if pod.node_name}:
            kept = tuple(pod for pod in by_node.pop(node, ()) if pod.key not in left)
            by_node |= {node: kept} if kept else {}
        for node, pods in _by_node(new).items():
            by_node[node] = (*by_node.get(node, ()), *pods)
        return _Index(marked, ruled, MappingProxyType(by_node))


class IndexedPods(tuple[Pod, ...]):
    """Pods with an index, which is built from the changes to an earlier index."""

    known: _Index
    version: object
    """Not that of any other value. It stands for an earlier one, which would otherwise stay in memory."""
    _since: tuple[object, PodChanges]
    """The version of the pods that it is based on, and what changed since then."""

    @classmethod
    def of(cls, pods: tuple[Pod, ...], before: "IndexedPods | None" = None) -> "IndexedPods":
        """The pods with their index, based on that of `before`."""
        found = cls(pods)
        changes = PodChanges(*value_changes(() if before is None else before, pods))
        found.version, found._since = object(), (None if before is None else before.version, changes)
        found.known = (_Index() if before is None else before.known).after(changes.gone, changes.new)
        return found


def pod_changes(before: Sequence[Pod], after: Sequence[Pod]) -> PodChanges:
    """By identity, as `value_changes`. Known where `after` is based on `before`."""
    if isinstance(before, IndexedPods) and isinstance(after, IndexedPods) and after._since[0] is before.version:
        return after._since[1]
    return PodChanges(*value_changes(before, after))


def marked_pods(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Pods that matter besides their GPU use; few, even among a hundred thousand. Unordered."""
    return pods.known.marked if isinstance(pods, IndexedPods) else tuple(filter(is_marked, pods))


def ruled_pods(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Pods with rules on where others of theirs run; unordered."""
    return pods.known.ruled if isinstance(pods, IndexedPods) else tuple(pod for pod in pods if pod.rules)


def bound_pods(pods: tuple[Pod, ...]) -> Mapping[str, tuple[Pod, ...]]:
    """Bound pods that are not finished, by node; unordered."""
    return pods.known.by_node if isinstance(pods, IndexedPods) else _by_node(pods)


def is_marked(pod: Pod) -> bool:
    """Whether the pod has one of our labels or a scheduling gate, or belongs to a competing controller."""
    return bool(pod.scheduling_gates) or any(key.startswith(_OURS) for key in pod.labels) or is_competing(pod.name)


def _by_node(pods: Iterable[Pod]) -> Mapping[str, tuple[Pod, ...]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name and not pod.finished:
            found.setdefault(pod.node_name, []).append(pod)
    return {node: tuple(several) for node, several in found.items()}


def value_changes(before: Sequence[T], after: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Removed and new values. Unchanged values are the same objects in both, mostly at the same position."""
    start = _same(before, after)
    tail = _same(before[start:][::-1], after[start:][::-1])
    old, young = before[start : len(before) - tail], after[start : len(after) - tail]
    before_ids, after_ids = set(map(id, old)), set(map(id, young))
    return _of(old, before_ids - after_ids), _of(young, after_ids - before_ids)


def _of(values: Sequence[T], ids: set[int]) -> tuple[T, ...]:
    """Those with these identities, without a step of the interpreter for each of the others."""
    return tuple(compress(values, map(ids.__contains__, map(id, values))))


def _same(one: Sequence[object], other: Sequence[object]) -> int:
    """Number of identical values from the start."""
    end = min(len(one), len(other))
    for at in range(0, end, _STEP):
        # Sequences compare identical objects first, so unchanged parts cost almost nothing.
        if one[at : at + _STEP] != other[at : at + _STEP]:
            return next((n for n in range(at, min(at + _STEP, end)) if one[n] is not other[n]), end)
    return end
