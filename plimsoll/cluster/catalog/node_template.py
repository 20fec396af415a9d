"""NodeTemplate: what a NodePool says of its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.cluster.catalog.pool_types import label_requirements
from plimsoll.cluster.profiles import DISCOVERED, undivided
from plimsoll.labels import GPU_PRODUCT, NODEPOOL
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import NodeRequirement, Taint


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """The labels, requirements and taints of a NodePool's nodes."""

    pool: NodePool
    labels: Mapping[str, str]
    """Labels that every node has."""
    requirements: Mapping[str, tuple[NodeRequirement, ...]]
    """By label."""
    taints: tuple[Taint, ...]

    @classmethod
    def by(cls, pool: NodePool) -> "NodeTemplate":
        requirements = label_requirements(pool)
        labels = {**pool.template_labels, NODEPOOL: pool.name}
        for key, several in requirements.items():
            if len(several) == 1 and several[0].operator == "In" and len(several[0].values) == 1:
                labels.setdefault(key, several[0].values[0])
        return cls(pool, labels, requirements, pool.taints)

    @property
    def products(self) -> tuple[str, ...]:
        """GPU products that the nodes may have; empty if it does not restrict them."""
        if GPU_PRODUCT in self.labels:
            return (self.labels[GPU_PRODUCT],)
        required = self.requirements.get(GPU_PRODUCT, ())
        return next((condition.values for condition in required if condition.operator == "In"), ())

    def allows_product(self, product: str) -> bool:
        """Whether the NodePool's nodes may have GPUs of a product."""
        return not self.products or undivided(product) in map(undivided, self.products)

    def product_of(self, product: str) -> Mapping[str, str]:
        """The label of a product as the NodePool requires it, which says how its GPUs are divided; empty if it does not
        restrict products, or to others."""
        written = next((name for name in self.products if undivided(name) == undivided(product)), "")
        return {GPU_PRODUCT: written} if written else {}

    @property
    def discovered(self) -> Mapping[str, str]:
        """The labels of discovery that it declares."""
        return {key: value for key, value in self.labels.items() if key.startswith(DISCOVERED)}

    def contradicts(self, learned: Mapping[str, str]) -> bool:
        """Whether it declares other labels of discovery than were learned of its nodes: what was learned is outdated
        then."""
        return any(learned.get(key, value) != value for key, value in self.discovered.items())
