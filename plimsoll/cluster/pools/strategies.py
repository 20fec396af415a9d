"""Strategies: on which nodes schedulers spread pods, instead of packing them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.model import Snapshot
from plimsoll.model.api import PlacementStrategy, strategy_of
from plimsoll.model.kai import NODE_POOL_LABEL, NodePoolLabel


@dataclass(frozen=True)
class Strategies:
    by_pool: Mapping[str, PlacementStrategy] = field(default_factory=dict)
    """As `demand.placement` of the Environment."""
    shards: frozenset[str] = frozenset()
    """KAI's node pools whose SchedulingShard spreads pods; empty: the nodes of none. They count for the nodes of
    NodePools without a strategy."""
    label: NodePoolLabel = NODE_POOL_LABEL

    def spread_on(self, node_pool: str, labels: Mapping[str, str]) -> bool:
        """Whether pods are spread on nodes of this NodePool with these labels; empty: on those of none."""
        declared = strategy_of(self.by_pool, node_pool)
        return self.label.of(labels) in self.shards if declared is None else declared == "spread"


def strategies_of(snapshot: Snapshot) -> Strategies:
    spread = frozenset(shard.node_pool for shard in snapshot.scheduling_shards if shard.strategy == "spread")
    environment = snapshot.environment.spec
    return Strategies(environment.demand.placement, spread, environment.node_pool_label)


PACKED: Final = Strategies()
"""Pods are packed everywhere."""
