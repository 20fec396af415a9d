"""The supply that demand may use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.model.api import GPUDemandStatus
from plimsoll.plan.demand.packer import PromisedNode
from plimsoll.plan.demand.rationing import LeftOut
from plimsoll.plan.demand.supply import DemandSupply
from plimsoll.plan.pools import PoolLimits, PoolShape


@dataclass(frozen=True)
class DemandOffer:
    supply: DemandSupply
    shapes: tuple[PoolShape, ...]
    """Of new nodes, without the blocked."""
    blocked: tuple[PoolShape, ...]
    """Those that are not asked for now."""
    promised: Mapping[str, Sequence[PromisedNode]]
    """By name of the demand."""
    limits: PoolLimits
    warnings: tuple[str, ...] = ()
    recalled: Mapping[str, GPUDemandStatus] = field(default_factory=dict)
    """By name of the demand: where an engine before this one would have its pods go."""
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    """By UID: pods that have to wait, for others go first under a limit."""
