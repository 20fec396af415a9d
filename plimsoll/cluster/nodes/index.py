"""Finds nodes by selector without reading every node for every Workspace."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter

from plimsoll.cluster.profiles import Discovery, discovery_of
from plimsoll.labels import INSTANCE_TYPE, NODEPOOL, WORKSPACE
from plimsoll.model.cluster import Device, Node
from plimsoll.model.meta import LabelSelector


class NodeIndex:
    """The nodes of one snapshot.

    A label key is indexed on first use, and results are cached by selector.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._given = tuple(nodes)
        self._by_label: dict[str, dict[str, list[Node]]] = {}
        self._matching: dict[str, tuple[Node, ...]] = {}
        self._usual: dict[tuple[tuple[str, ...], str | None], tuple[list[Node], Discovery] | None] = {}

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes, sorted by name."""
        return sorted(self._given, key=attrgetter("name"))

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self._given}

    def with_label(self, key: str, value: str) -> list[Node]:
        """Nodes with that value of the label, sorted by name."""
        return self.by_label(key).get(value, [])

    def by_label(self, key: str) -> dict[str, list[Node]]:
        """Nodes with the label, by its value."""
        found = self._by_label.get(key)
        if found is None:
            found = {}
            for node in self.nodes:
                value = node.labels.get(key)
                if value is not None:
                    found.setdefault(value, []).append(node)
            self._by_label[key] = found
        return found

    @cached_property
    def spellings(self) -> Mapping[str, tuple[str, ...]]:
        """The spellings of each instance type on nodes, sorted, by its name in lower case."""
        spelled: dict[str, tuple[str, ...]] = {}
        for name in sorted(self.by_label(INSTANCE_TYPE)):
            spelled[name.casefold()] = (*spelled.get(name.casefold(), ()), name)
        return spelled

    def matching(self, selector: LabelSelector) -> tuple[Node, ...]:
        """Nodes that the selector matches, sorted by name; an empty selector matches every node."""
        text = str(selector)
        found = self._matching.get(text)
        if found is None:
            found = self._matching[text] = tuple(self._search(selector))
        return found

    def _search(self, selector: LabelSelector) -> Iterable[Node]:
        narrowed = [self.with_label(key, value) for key, value in selector.match_labels.items()]
        nodes = min(narrowed, key=len, default=self.nodes)
        if len(narrowed) == 1 and not selector.match_expressions:
            return nodes
        return (node for node in nodes if selector.matches(node.labels))

    def usual(self, instance_type: str, node_pool: str | None = None) -> tuple[list[Node], Discovery] | None:
        """What most nodes of an instance type, case-insensitive, say of their devices, and these nodes, by spelling and
        name; only of those in the NodePool of that name, if one is given, that are no Workspace's, as the
        controller may have written labels of those, and stay: those that go may be of an earlier NodePool of the name.
        None where discovery is complete on none.

        One node that lost a GPU, or is divided otherwise, says nothing of the others. Of several that as many nodes
        have: the most GPUs, then the fewest devices.
        """
        names = self.spellings.get(instance_type.casefold(), ())
        key = (names, node_pool)
        if key not in self._usual:
            alike: dict[tuple[Device, ...], list[Node]] = {}
            for node in (each for name in names for each in self.with_label(INSTANCE_TYPE, name)):
                of_pool = node.labels.get(NODEPOOL) == node_pool and WORKSPACE not in node.labels and not node.deleting
                if node_pool is None or of_pool:
                    found = discovery_of(node)
                    # What a type has, a partitioned node does not say.
                    if found.complete and not (node_pool is None and found.partitioned):
                        alike.setdefault(found.devices, []).append(node)
            most = max(alike.items(), key=lambda item: (len(item[1]), *_size(item[0])), default=None)
            self._usual[key] = (most[1], discovery_of(most[1][0])) if most is not None else None
        return self._usual[key]


def _size(devices: tuple[Device, ...]) -> tuple[int, int, int, str]:
    if not devices:
        return 0, 0, 0, ""
    gpus = devices[0]
    return gpus.count, -gpus.announced, gpus.memory_mib or 0, gpus.product


class IndexedNodes(tuple[Node, ...]):
    """All nodes of a snapshot with an index, which is kept while no node changes."""

    @cached_property
    def known(self) -> NodeIndex:
        return NodeIndex(self)


def index_of(nodes: tuple[Node, ...]) -> NodeIndex:
    """The index of a snapshot's nodes."""
    return nodes.known if isinstance(nodes, IndexedNodes) else NodeIndex(nodes)


def gpu_devices(node: Node, resource: str) -> int | None:
    """Allocatable devices of the node; None if it reports none, or an invalid number."""
    try:
        return node.allocatable_devices(resource)
    except ValueError:
        return None
