"""QueueCapacity: what queues divide."""

from collections.abc import Mapping
from typing import NamedTuple

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.profiles import discovery_of, mig_gpus
from plimsoll.cluster.queues.amount import MILLI, Amount, total
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import AMD_GPU, Node
from plimsoll.model.kai import NODE_POOL_LABEL
from plimsoll.model.meta import HostRequest
from plimsoll.quantity import amount_in, parse_bytes, parse_cpu_milli


class _ReadNode(NamedTuple):
    node: Node
    capacity: Amount | None
    """None where it does not count."""


class QueueCapacity:
    """Allocatable amounts of usable nodes on which KAI schedules. Nodes that did not change are not read again. The
    result depends on the last update only. Not thread-safe."""

    def __init__(self) -> None:
        self._resource, self._label = "", NODE_POOL_LABEL
        self._nodes: tuple[Node, ...] = ()
        self._read: dict[str, _ReadNode] = {}
        self.amounts: Mapping[str, Amount] = {}
        """The sum of all nodes that count, by KAI's node pool."""

    def update(self, nodes: tuple[Node, ...], environment: EnvironmentSpec) -> None:
        resource, label = environment.gpu_resource, environment.node_pool_label
        if (resource, label) != (self._resource, self._label):
            self._resource, self._label, self._nodes, self._read = resource, label, (), {}
        if nodes is self._nodes:
            return
        self._nodes, self._read = nodes, {node.name: self._node(node) for node in nodes}
        counted: dict[str, list[Amount]] = {}
        for each in self._read.values():
            if each.capacity:
                counted.setdefault(label.of(each.node.labels), []).append(each.capacity)
        self.amounts = {shard: total(amounts) for shard, amounts in counted.items()}

    def shard_of(self, node: str) -> str | None:
        """KAI's node pool of the node of this name; None if it does not count."""
        found = self._read.get(node)
        return None if found is None or found.capacity is None else self._label.of(found.node.labels)

    def _node(self, node: Node) -> _ReadNode:
        known = self._read.get(node.name)
        if known is not None and known.node is node:
            return known
        return _ReadNode(node, _capacity(node, self._resource) if node.usable and not node.troubled else None)


def _capacity(node: Node, gpu_resource: str) -> Amount:
    """Whole GPUs, of AMD too, and MIG devices count, as in KAI."""
    devices = gpu_devices(node, gpu_resource)
    discovery = discovery_of(node, gpu_resource)
    labelled = discovery.gpus or discovery.claimed
    gpus = ((labelled.announced if labelled is not None else 0) if devices is None else devices) + mig_gpus(
        node.allocatable
    )
    gpus += (gpu_devices(node, AMD_GPU) or 0) if gpu_resource != AMD_GPU else 0
    cpu_milli = amount_in(node.allocatable, "cpu", parse_cpu_milli)
    host = HostRequest(cpu_milli, amount_in(node.allocatable, "memory", parse_bytes))
    return Amount.of(gpus * MILLI, host)
