"""How schedulers place pods on the nodes of a NodePool: packed, or spread."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

ANY_NODE_POOL: Final = "*"
PlacementStrategy = Literal["binpack", "spread"]
"""As KAI's `placementStrategy`. `binpack`: on the node and the GPUs with the least free. `spread`: with the most."""
PlacementByPool = dict[Annotated[str, Field(min_length=1, max_length=63)], PlacementStrategy]
"""By name of the NodePool; `*` stands for every node without an entry."""


def strategy_of(placement: Mapping[str, PlacementStrategy], node_pool: str) -> PlacementStrategy | None:
    """None: nothing is said of the NodePool."""
    return placement.get(node_pool, placement.get(ANY_NODE_POOL))
