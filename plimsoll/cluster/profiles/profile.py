"""NodeProfile: what a node offers, there or not: its labels, taints, devices and resources."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from plimsoll.cluster.profiles.label_conditions import all_met, largest_sets, narrowed
from plimsoll.labels import FORMER_KEYS, HOSTNAME
from plimsoll.model.cluster import IDLE, Device, HostLoad
from plimsoll.model.dra import Claimable
from plimsoll.model.meta import NodeRequirement, Placement, Taint, Terms
from plimsoll.packing import UNBOUNDED, less

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
_MOST_WIDE: Final = 16
"""Number of conditions that are each offered as wide as they are."""
_BY_DEFAULT: Final = {"kubernetes.io/os": (NodeRequirement("kubernetes.io/os", "In", ("linux",)),)}
"""What holds for labels that a NodePool does not restrict."""

Seen = Mapping[str, frozenset[str]]
"""By label, the values that nodes of the cluster have."""


class Source(StrEnum):
    """Where a fact on a node comes from, first that which counts most. The closed list."""

    LIVE = "live"
    """Nodes of that NodePool and instance type that exist."""
    LEARNED = "learned"
    """`status.learned` of the NodeProfile: nodes that existed."""
    DECLARED = "declared"
    """The NodePool's template, `spec.demand.sharedDevices`, or the spec of the NodeProfile."""
    CATALOG = "catalog"
    """The instance type's row in the catalog."""


class Said(NamedTuple):
    """What one source says of the nodes of a NodePool and instance type."""

    source: Source
    where: str
    """The object, or the row of the catalog, that says it."""
    labels: Mapping[str, str] = {}
    allocatable: Mapping[str, str | int | float] = {}
    published: tuple[tuple[Claimable, int], ...] = ()
    """Devices that pods get by claims, with the number of each."""


@dataclass(frozen=True)
class NodeProfile:
    """A node of an instance type in a NodePool.

    Whether pods of a placement can run there has three answers: yes, no, and open, for labels that the provider chooses
    within the NodePool's requirements. A label that no source knows is one that such nodes do not have.
    """

    node_pool: str
    """Empty if the cluster has no NodePools: a node like the existing ones."""
    weight: int
    instance_type: str
    device: Device
    """What pods request of it: its GPUs, or the devices that these are announced as."""
    cpu_milli: int
    """Available to pods besides `overhead`."""
    memory_mib: int
    """Available to pods besides `overhead`."""
    divided: str = ""
    """Why no such node is requested, and what to change: pods cannot share its GPUs by KAI's annotations, or nothing
    can request nodes for claims there; empty if it is."""
    price: float | None = None
    taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that every such node has."""
    requirements: Mapping[str, tuple[NodeRequirement, ...]] = field(default_factory=dict)
    """The NodePool's requirements by label: the values that its nodes' labels may have."""
    overhead: HostLoad = IDLE
    """What DaemonSets use of each such node."""
    pods: int = UNBOUNDED
    """Pods that fit besides `overhead`; each GPU that is shared takes one more, for its reservation."""
    capacity_cpu_milli: int = 0
    capacity_memory_mib: int = 0
    """Capacity of the whole node, which counts against the limits of its NodePool; 0 if it is not known."""
    source: Source = Source.CATALOG
    """Where its labels of discovery and its device come from."""
    storage_mib: int = UNBOUNDED
    """Ephemeral storage that is available to pods besides `overhead`."""
    said: tuple[Said, ...] = field(default=(), compare=False, repr=False)
    """Its sources. Each label and amount is that of the first one that has it."""
    node: str = ""
    """The node, if it exists: it has `labels` and no others. Empty for new nodes."""

    @cached_property
    def name(self) -> str:
        return f"{self.node_pool}/{self.instance_type}"

    @property
    def gpus(self) -> int:
        """GPUs of the node."""
        return self.device.count

    @property
    def node_cpu_milli(self) -> int:
        """Allocatable of the whole node."""
        return self.cpu_milli if self.cpu_milli >= UNBOUNDED else self.cpu_milli + self.overhead.cpu_milli

    @property
    def node_memory_mib(self) -> int:
        """Allocatable of the whole node."""
        return self.memory_mib if self.memory_mib >= UNBOUNDED else self.memory_mib + self.overhead.memory_mib

    @property
    def node_storage_mib(self) -> int:
        """Allocatable of the whole node."""
        return self.storage_mib if self.storage_mib >= UNBOUNDED else self.storage_mib + self.overhead.storage_mib

    def with_overhead(self, overhead: HostLoad) -> "NodeProfile":
        """A copy with this overhead of DaemonSets."""
        return replace(
            self,
            cpu_milli=less(self.node_cpu_milli, overhead.cpu_milli),
            memory_mib=less(self.node_memory_mib, overhead.memory_mib),
            storage_mib=less(self.node_storage_mib, overhead.storage_mib),
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
        if self.node:
            return () if placement.allows(self.labels, self.node) else None
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

    def together(
        self, sets: Iterable[Terms], seen: Seen, wide: Collection[Terms] = ()
    ) -> Iterator[tuple[frozenset[Terms], Terms]]:
        """Largest subsets of `sets` that one node can meet, as `largest_sets`, and those of each of `wide` with what
        narrows it no further. Those on a label with values that may not exist are not with others: nobody else waits
        for a node that cannot come."""
        by_doubt: dict[frozenset[str], list[Terms]] = {}
        for each in sorted(sets):
            by_doubt.setdefault(self._doubted(each, seen), []).append(each)
        for _, alike in sorted(by_doubt.items(), key=lambda each: sorted(each[0])):
            found = largest_sets(alike, self.given)
            for terms in [each for each in alike if each in wide][:_MOST_WIDE]:
                members = frozenset(other for other in alike if all_met((terms, other), self.given) == terms)
                found.setdefault(members, terms)
            yield from found.items()

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
            return (NodeRequirement(key, "DoesNotExist"),)
        exists = not any(each.operator == "DoesNotExist" for each in declared or ())
        return (*(declared or ()), *((NodeRequirement(key, "Exists"),) if exists else ()))

    def unmet(self, placement: Placement) -> tuple[NodeRequirement, ...]:
        """The conditions of a placement that no such node can meet; of several alternatives, those of the one with the
        fewest. Empty if each can be met, be it not all together."""
        selected = tuple(NodeRequirement(key, "In", (value,)) for key, value in placement.node_selector)
        terms = [
            tuple(condition for condition in (*selected, *term) if self._left_of((condition,)) is None)
            for term in placement.affinity or ((),)
        ]
        return min(terms, key=lambda term: (len(term), term))

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
        return narrowed(undecided, self.given)

    def _decided(self, expression: NodeRequirement) -> bool | None:
        """Whether such nodes meet a condition, where that follows from what is known of them; else None."""
        if expression.field or expression.key == HOSTNAME:
            return expression.operator in ("NotIn", "Exists")  # the name of a new node is not known
        value = self.labels.get(expression.key)
        return None if value is None else expression.allows(value)


def _by_current_key(condition: NodeRequirement) -> NodeRequirement:
    key = FORMER_KEYS.get(condition.key)
    return condition if key is None else replace(condition, key=key)
