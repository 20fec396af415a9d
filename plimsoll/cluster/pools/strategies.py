"""Strategies: on which nodes schedulers spread pods, instead of packing them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.model.api import PlacementStrategy, strategy_of


@dataclass(frozen=True)
class Strategies:
    by_pool: Mapping[str, PlacementStrategy] = field(default_factory=dict)
    """As `demand.placement` of the Environment."""

    def spread_on(self, node_pool: str) -> bool:
        """Whether pods are spread on the nodes of this NodePool; empty: on those of none."""
        return strategy_of(self.by_pool, node_pool) == "spread"


PACKED: Final = Strategies()
"""Pods are packed everywhere."""
