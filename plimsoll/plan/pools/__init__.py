"""What a new node of a NodePool would offer."""

from plimsoll.plan.pools.launching import claim_spares, unready_claims
from plimsoll.plan.pools.limits import Excess, PoolLimits, Room
from plimsoll.plan.pools.node_pools import PoolShapes
from plimsoll.plan.pools.overhead import Allocatable, DaemonOverhead, allocatable, allocatable_cpu_milli
from plimsoll.plan.pools.shape import PoolShape

__all__ = [
    "Allocatable",
    "DaemonOverhead",
    "Excess",
    "PoolLimits",
    "PoolShape",
    "PoolShapes",
    "Room",
    "allocatable",
    "allocatable_cpu_milli",
    "claim_spares",
    "unready_claims",
]
