"""PoolShape: a new node of an instance type that a NodePool allows, as far as it is known in advance."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from plimsoll.cluster.pools.label_conditions import all_met, largest_sets, narrowed
from plimsoll.labels import FORMER_KEYS, GPU_COUNT, GPU_MEMORY, GPU_PRODUCT, HOSTNAME
from plimsoll.model.api import NOT_SHARED, DeviceSharing
from plimsoll.model.cluster import IDLE, HostLoad, product_words
from plimsoll.model.meta import NodeRequirement, Placement, Taint, Terms
from plimsoll.packing.nodes import UNBOUNDED, less

CHOSEN_BY_PROVIDER: Final = (
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
"""Prefixes of labels that are written after the node exists: they follow from the instance type."""
_BY_DEFAULT: Final = {"kubernetes.io/os": (NodeRequirement("kubernetes.io/os", "In", ("linux",)),)}
"""What holds for labels that a NodePool does not restrict."""
_VENDORS: Final = frozenset({"nvidia", "tesla", "geforce", "quadro"})
_GIGABYTES: Final = re.compile(r"(?<![a-z0-9])(\d+)gb(?![a-z0-9])")


Seen = Mapping[str, frozenset[str]]
"""By label, the values that nodes of the cluster have."""


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
    capacity_cpu_milli: int = 0
    capacity_memory_mib: int = 0
    """Capacity of the whole node, which counts against the limits of its NodePool; 0 if it is not known."""

    @cached_property
    def name(self) -> str:
        return f"{self.node_pool}/{self.instance_type}"

    @property
    def node_cpu_milli(self) -> int:
        """Allocatable of the whole node."""
        return self.cpu_milli if self.cpu_milli >= UNBOUNDED else self.cpu_milli + self.overhead.cpu_milli

    @property
    def node_memory_mib(self) -> int:
        """Allocatable of the whole node."""
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
        return self.left_open(placement) is not None

    def left_open(self, placement: Placement) -> Terms | None:
        """The conditions of a placement on labels that such a node may or may not have, such as a zone.

        Returns alternatives, each a set of conditions; empty if every such node meets the placement, None if none can.
        """
        if placement.untolerated_taints(self.taints):
            return None
        selected = tuple(NodeRequirement(key, "In", (value,)) for key, value in placement.node_selector)
        terms = (self._left_of((*selected, *term)) for term in placement.affinity or ((),))
        possible = tuple(term for term in terms if term is not None)
        return all_met((possible,), self.given) if possible else None

    def meets(self, placement: Placement, required: Terms, seen: Seen) -> bool:
        """Whether every such node that meets `required` can run pods of that placement, and may only fail to come for
        labels on which these have conditions, too."""
        terms = self.left_open(placement)
        if terms is None or not self._doubted(required, seen) <= self._doubted(terms, seen):
            return False
        return all(self._implies(known, terms) for known in required or ((),))

    def together(self, sets: Iterable[Terms], seen: Seen) -> Iterator[tuple[frozenset[Terms], Terms]]:
        """Largest subsets of `sets` that one node can meet, as `largest_sets`. Those on a label with values that may
        not exist are not with others: nobody else waits for a node that cannot come."""
        by_doubt: dict[frozenset[str], list[Terms]] = {}
        for each in sorted(sets):
            by_doubt.setdefault(self._doubted(each, seen), []).append(each)
        for _, alike in sorted(by_doubt.items(), key=lambda each: sorted(each[0])):
            yield from largest_sets(alike, self.given).items()

    def _doubted(self, terms: Terms, seen: Seen) -> frozenset[str]:
        """The labels of which these conditions allow values that neither the NodePool nor a node has."""
        return frozenset(
            each.key
            for term in terms
            for each in term
            if each.operator == "In"
            and each.key not in self.requirements
            and not seen.get(each.key, frozenset()).issuperset(each.values)
        )

    def given(self, key: str) -> tuple[NodeRequirement, ...]:
        """Conditions that every such node meets on a label that is not in `labels`."""
        declared = self.requirements.get(key, _BY_DEFAULT.get(key))
        if declared is None and not key.startswith(CHOSEN_BY_PROVIDER):
            return () if key.startswith(_DISCOVERED) else (NodeRequirement(key, "DoesNotExist"),)
        exists = not any(each.operator == "DoesNotExist" for each in declared or ())
        return (*(declared or ()), *((NodeRequirement(key, "Exists"),) if exists else ()))

    def _implies(self, known: tuple[NodeRequirement, ...], terms: Terms) -> bool:
        """Whether such nodes that meet the conditions `known` meet one of the alternatives, whatever is left open."""

        def given(key: str) -> tuple[NodeRequirement, ...]:
            return (*self.given(key), *(each for each in known if each.key == key))

        return any(narrowed(term, given) == () for term in terms or ((),))

    def _left_of(self, term: Iterable[NodeRequirement]) -> tuple[NodeRequirement, ...] | None:
        undecided = []
        for each in map(_by_current_key, term):
            decided = self._decided(each)
            if decided is False:
                return None
            undecided += [each] if decided is None else []
        left = narrowed(undecided, self.given)
        return left and tuple(each for each in left if not each.key.startswith(_DISCOVERED))

    def _decided(self, expression: NodeRequirement) -> bool | None:
        """Whether such nodes meet a condition, where that follows from the type or the template; else None."""
        if expression.field or expression.key == HOSTNAME:
            return expression.operator in ("NotIn", "Exists")  # the name of a new node is not known
        value = self.labels.get(expression.key)
        if value is not None:
            return expression.allows(value)
        if expression.key == GPU_PRODUCT:
            return self._may_be_product(expression)
        if expression.key in (GPU_COUNT, GPU_MEMORY):
            number = self.gpus if expression.key == GPU_COUNT else self.gpu_memory_mib
            return number is None or expression.allows(str(number))
        return None

    def _may_be_product(self, expression: NodeRequirement) -> bool:
        if self.discovered or expression.operator not in ("In", "NotIn"):
            return expression.allows(self.kind)
        if expression.operator == "In":
            return any(same_product(self.kind, value, self.gpu_memory_mib) for value in expression.values)
        return not any(same_product(self.kind, value, self.gpu_memory_mib) for value in expression.values)


def _by_current_key(condition: NodeRequirement) -> NodeRequirement:
    key = FORMER_KEYS.get(condition.key)
    return condition if key is None else replace(condition, key=key)


def same_product(listed: str, label: str, memory_mib: int | None) -> bool:
    """Whether a label of GPU Feature Discovery can be that of a catalog's product, with the memory of one GPU."""
    words, labelled = product_words(listed) - _VENDORS, product_words(label) - _VENDORS
    if not words or not (words <= labelled or labelled <= words):
        return False
    stated = _GIGABYTES.search(label.casefold())
    return stated is None or memory_mib is None or abs(int(stated[1]) - memory_mib / 1024) <= 0.1 * int(stated[1])
