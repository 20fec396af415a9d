"""SpreadNodes: the nodes that a topology spread constraint is about."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from plimsoll.cluster.profiles import NodeProfile
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.meta import ANYWHERE, Placement, PodRule
from plimsoll.packing import Relation


@dataclass(frozen=True, slots=True)
class SpreadNodes:
    """The nodes on which a spread counts pods: those with all labels over which the pod is spread, and that it may use
    as far as `nodeAffinityPolicy` and `nodeTaintsPolicy` say so."""

    keys: frozenset[str]
    selected_by: Placement
    tolerated_by: Placement | None
    """None: taints do not count."""

    @classmethod
    def of(cls, pod: Pod, rule: PodRule) -> "SpreadNodes":
        keys = frozenset(each.key for each in pod.rules if each.relation is Relation.SPREAD)
        selected_by = replace(pod.placement, tolerations=(), preferred=()) if rule.by_placement else ANYWHERE
        return cls(keys, selected_by, Placement(tolerations=pod.placement.tolerations) if rule.by_taints else None)

    def has(self, node: Node) -> bool:
        return (
            self.keys <= node.labels.keys()
            and self.selected_by.allows(node.labels, node.name)
            and not (self.tolerated_by and self.tolerated_by.untolerated_taints(node.taints))
        )

    def may_have(self, shape: NodeProfile, domains: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether new nodes of the shape, which can have these domains, may be among them."""
        tolerated = not (self.tolerated_by and self.tolerated_by.untolerated_taints(shape.taints))
        return tolerated and self.keys <= domains.keys() and replace(shape, taints=()).serves(self.selected_by)
