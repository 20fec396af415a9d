"""QueueCapacity: what queues divide."""

from collections.abc import Callable
from typing import NamedTuple

from plimsoll.cluster.nodes import GpuLabels, gpu_devices, mig_gpus, parse_gpu_labels
from plimsoll.cluster.queues.amount import MILLI, NOTHING, Amount, total
from plimsoll.model.cluster import Node
from plimsoll.model.meta import HostRequest
from plimsoll.quantity import parse_bytes, parse_cpu_milli


class _ReadNode(NamedTuple):
    node: Node
    capacity: Amount | None
    """None where it does not count."""


class QueueCapacity:
    """Allocatable amounts of usable nodes on which KAI schedules. Nodes that did not change are not read again. The
    result depends on the last update only. Not thread-safe."""

    def __init__(self) -> None:
        self._resource = ""
        self._nodes: tuple[Node, ...] = ()
        self._read: dict[str, _ReadNode] = {}
        self.amount = NOTHING
        """The sum of all nodes that count."""

    def update(self, nodes: tuple[Node, ...], gpu_resource: str) -> None:
        if gpu_resource != self._resource:
            self._resource, self._nodes, self._read = gpu_resource, (), {}
        if nodes is self._nodes:
            return
        self._nodes, self._read = nodes, {node.name: self._node(node) for node in nodes}
        self.amount = total(each.capacity for each in self._read.values() if each.capacity)

    def __contains__(self, node: str) -> bool:
        """Whether the node of this name counts."""
        return node in self._read and self._read[node].capacity is not None

    def _node(self, node: Node) -> _ReadNode:
        known = self._read.get(node.name)
        if known is not None and known.node is node:
            return known
        return _ReadNode(node, _capacity(node, self._resource) if node.usable and not node.troubled else None)


def _capacity(node: Node, gpu_resource: str) -> Amount:
    """Whole GPUs and MIG devices count, as in KAI."""
    known = parse_gpu_labels(node.labels)
    labelled = known.devices if isinstance(known, GpuLabels) else 0
    devices = gpu_devices(node, gpu_resource)
    gpus = (labelled if devices is None else devices) + mig_gpus(node.allocatable)
    host = HostRequest(_amount(node, "cpu", parse_cpu_milli), _amount(node, "memory", parse_bytes))
    return Amount.of(gpus * MILLI, host)


def _amount(node: Node, resource: str, parse: Callable[[str | int | float], int]) -> int:
    try:
        return parse(node.allocatable.get(resource, 0))
    except ValueError:
        return 0
