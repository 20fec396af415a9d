"""All pods of a snapshot with an index of those that are often needed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from plimsoll.cluster.pods.changes import pod_changes
from plimsoll.cluster.pods.competing import is_competing
from plimsoll.labels import GROUP
from plimsoll.model.cluster import Pod

_OURS: Final = f"{GROUP}/"


@dataclass(frozen=True, slots=True)
class _Index:
    marked: tuple[Pod, ...] = ()
    by_node: Mapping[str, tuple[Pod, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def after(self, gone: Sequence[Pod], new: Sequence[Pod]) -> "_Index":
        """The index after these changes."""
        left = {pod.key for pod in gone}
        marked = (*(pod for pod in self.marked if pod.key not in left), *filter(is_marked, new))
        by_node = dict(self.by_node)
        for node in {pod.node_name for pod in gone if pod.node_name}:
            kept = tuple(pod for pod in by_node.pop(node, ()) if pod.key not in left)
            by_node |= {node: kept} if kept else {}
        for node, pods in _by_node(new).items():
            by_node[node] = (*by_node.get(node, ()), *pods)
        return _Index(marked, MappingProxyType(by_node))


class IndexedPods(tuple[Pod, ...]):
    """Pods with an index, which is built from the changes to an earlier index."""

    known: _Index

    @classmethod
    def of(cls, pods: tuple[Pod, ...], before: "IndexedPods | None" = None) -> "IndexedPods":
        """The pods with their index, based on that of `before`."""
        found = cls(pods)
        changes = pod_changes(() if before is None else before, pods)
        found.known = (_Index() if before is None else before.known).after(changes.gone, changes.new)
        return found


def marked_pods(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Pods that matter besides their GPU use; few, even among a hundred thousand. Unordered."""
    return pods.known.marked if isinstance(pods, IndexedPods) else tuple(filter(is_marked, pods))


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
