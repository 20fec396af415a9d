"""PoolShape: a new node of an instance type that a NodePool allows, as far as it is known in advance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT
from plimsoll.model.api import NOT_SHARED, DeviceSharing
from plimsoll.model.cluster import IDLE, HostLoad, product_words
from plimsoll.model.meta import NodeRequirement, Placement, Taint
from plimsoll.packing.nodes import UNBOUNDED, less

_CHOSEN: Final = (
    "topology.kubernetes.io/",
    "kubernetes.io/",
    "node.kubernetes.io/",
    "karpenter.sh/",
    "karpenter.k8s.aws/",
    "karpenter.azure.com/",
    "topology.k8s.aws/",
)
"""Prefixes of labels that the provider chooses, so that a requirement on them can be met."""
_DISCOVERED: Final = ("nvidia.com/", "feature.node.kubernetes.io/")
"""Prefixes of labels that are written after the node exists."""
_VENDORS: Final = frozenset({"nvidia", "tesla", "geforce", "quadro"})
_GIGABYTES: Final = re.compile(r"(?<![a-z0-9])(\d+)gb(?![a-z0-9])")


@dataclass(frozen=True)
class PoolShape:
    node_pool: str
    """Empty if the cluster has no NodePools: a node like the existing ones."""
    weight: int
    instance_type: str
    gpus: int
    kind: str
    """GPU product."""
    gpu_memory_mib: int | None
    cpu_milli: int
    """Available to pods besides `overhead`."""
    memory_mib: int
    """Available to pods besides `overhead`."""
    price: float | None = None
    taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that every such node has."""
    requirements: Mapping[str, tuple[NodeRequirement, ...]] = field(default_factory=dict)
    """The NodePool's requirements by label: the values that its nodes' labels may have."""
    discovered: bool = False
    """Whether `kind` comes from GPU Feature Discovery, rather than from a catalog."""
    overhead: HostLoad = IDLE
    """What DaemonSets use of each such node."""
    sharing: DeviceSharing = NOT_SHARED
    """How its GPUs will be announced."""
    pods: int = UNBOUNDED
    """Pods that fit besides `overhead`; each GPU that is shared takes one more, for its reservation."""

    @cached_property
    def name(self) -> str:
        return f"{self.node_pool}/{self.instance_type}"

    @property
    def node_cpu_milli(self) -> int:
        """Of the whole node."""
        return self.cpu_milli if self.cpu_milli >= UNBOUNDED else self.cpu_milli + self.overhead.cpu_milli

    @property
    def node_memory_mib(self) -> int:
        """Of the whole node."""
        return self.memory_mib if self.memory_mib >= UNBOUNDED else self.memory_mib + self.overhead.memory_mib

    def with_overhead(self, overhead: HostLoad) -> "PoolShape":
        """A copy with this overhead of DaemonSets."""
        return replace(
            self,
            cpu_milli=less(self.node_cpu_milli, overhead.cpu_milli),
            memory_mib=less(self.node_memory_mib, overhead.memory_mib),
            pods=less(self.pods, overhead.pods - self.overhead.pods),
            overhead=overhead,
        )

    def serves(self, placement: Placement) -> bool:
        """Whether pods of that placement can run on such a node, as far as is known in advance."""
        if placement.untolerated_taints(self.taints):
            return False
        if any(not self._can_be(NodeRequirement(key, "In", (value,))) for key, value in placement.node_selector):
            return False
        return not placement.affinity or any(all(map(self._can_be, term)) for term in placement.affinity)

    def _can_be(self, expression: NodeRequirement) -> bool:
        if expression.field:
            return expression.operator == "NotIn"  # the name of a new node is not known
        value = self.labels.get(expression.key)
        if value is not None:
            return expression.allows(value)
        if expression.key == GPU_PRODUCT:
            return self._may_be_product(expression)
        if expression.key in (GPU_COUNT, GPU_MEMORY) and expression.key not in self.labels:
            number = self.gpus if expression.key == GPU_COUNT else self.gpu_memory_mib
            return number is None or expression.allows(str(number))
        declared = self.requirements.get(expression.key)
        if declared is not None:
            return self._declared_can_be(declared, expression)
        if expression.key.startswith((*_CHOSEN, *_DISCOVERED)):
            return expression.operator != "DoesNotExist" or expression.key.startswith(_DISCOVERED)
        return expression.allows(None)

    def _may_be_product(self, expression: NodeRequirement) -> bool:
        if self.discovered or expression.operator not in ("In", "NotIn"):
            return expression.allows(self.kind)
        if expression.operator == "In":
            return any(same_product(self.kind, value, self.gpu_memory_mib) for value in expression.values)
        return not any(same_product(self.kind, value, self.gpu_memory_mib) for value in expression.values)

    def _declared_can_be(self, declared: tuple[NodeRequirement, ...], expression: NodeRequirement) -> bool:
        """Whether the NodePool allows a value that meets the requirement."""
        named = [each.values for each in (*declared, expression) if each.operator == "In"]
        if named:
            return any(all(each.allows(value) for each in (*declared, expression)) for value in named[0])
        return not (expression.operator == "DoesNotExist" or any(each.operator == "DoesNotExist" for each in declared))


def same_product(listed: str, label: str, memory_mib: int | None) -> bool:
    """Whether a label of GPU Feature Discovery can be that of a catalog's product, with the memory of one GPU."""
    words, labelled = product_words(listed) - _VENDORS, product_words(label) - _VENDORS
    if not words or not (words <= labelled or labelled <= words):
        return False
    stated = _GIGABYTES.search(label.casefold())
    return stated is None or memory_mib is None or abs(int(stated[1]) - memory_mib / 1024) <= 0.1 * int(stated[1])
