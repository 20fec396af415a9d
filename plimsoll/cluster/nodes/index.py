"""Finds nodes by selector without reading every node for every Workspace."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from operator import attrgetter

from plimsoll.cluster.nodes.gpu_labels import (
    MIG_CONFIG,
    MIG_STRATEGY,
    READ,
    GpuLabels,
    InvalidGpuLabel,
    parse_gpu_labels,
)
from plimsoll.cluster.nodes.mig import parse_mig_labels
from plimsoll.labels import INSTANCE_TYPE, MIG_PREFIX
from plimsoll.model.cluster import Node
from plimsoll.model.meta import LabelSelector


class NodeIndex:
    """The nodes of one snapshot.

    A label key is indexed on first use. Results are cached by selector, and GPUs by their label values, because ten
    thousand nodes are of a few dozen kinds.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._given = tuple(nodes)
        self._by_label: dict[str, dict[str, list[Node]]] = {}
        self._matching: dict[str, tuple[Node, ...]] = {}
        self._gpus: dict[tuple[str | None, ...], GpuLabels | InvalidGpuLabel] = {}
        self._usual: dict[tuple[str, ...], GpuLabels | None] = {}

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

    def gpus(self, node: Node) -> GpuLabels | InvalidGpuLabel:
        """The GPUs that the node's GFD labels describe."""
        values = gpu_values(node)
        found = self._gpus.get(values)
        if found is None:
            found = self._gpus[values] = parse_gpu_labels(node.labels)
        return found

    def usual_gpus(self, spellings: tuple[str, ...]) -> GpuLabels | None:
        """The GPUs that most nodes of an instance type have, by the spellings of its name; None where no node has valid
        labels of GPUs that MIG does not partition.

        One node that lost a GPU, or is shared by time-slicing, says nothing of the others. Of several that as many
        nodes have: the most GPUs, then the fewest devices.
        """
        if spellings not in self._usual:
            alike: dict[tuple[str | None, ...], list[Node]] = {}
            for node in (each for name in spellings for each in self.with_label(INSTANCE_TYPE, name)):
                alike.setdefault(gpu_values(node), []).append(node)
            known: Counter[GpuLabels] = Counter()
            for nodes in alike.values():
                labels = self.gpus(nodes[0])
                if isinstance(labels, GpuLabels) and not parse_mig_labels(nodes[0].labels).active:
                    known[labels] += len(nodes)
            self._usual[spellings] = max(
                known,
                key=lambda each: (known[each], each.count, -each.devices, each.memory_mib, each.product),
                default=None,
            )
        return self._usual[spellings]


class IndexedNodes(tuple[Node, ...]):
    """All nodes of a snapshot with an index, which is kept while no node changes."""

    @cached_property
    def known(self) -> NodeIndex:
        return NodeIndex(self)


def index_of(nodes: tuple[Node, ...]) -> NodeIndex:
    """The index of a snapshot's nodes."""
    return nodes.known if isinstance(nodes, IndexedNodes) else NodeIndex(nodes)


def gpu_values(node: Node) -> tuple[str | None, ...]:
    """Values of every label that describes the node's GPUs; the same for equal nodes."""
    labels = node.labels
    values = tuple(map(labels.get, READ))
    if MIG_STRATEGY not in labels and MIG_CONFIG not in labels:
        return values
    slices = sorted(item for item in labels.items() if item[0].startswith(MIG_PREFIX))
    return (*values, *(part for item in slices for part in item))


def gpu_devices(node: Node, resource: str) -> int | None:
    """Allocatable devices of the node; None if it reports none, or an invalid number."""
    try:
        return node.allocatable_devices(resource)
    except ValueError:
        return None
