"""What a new node of a NodePool would offer."""

from plimsoll.cluster.pools.launching import claim_spares, unready_claims
from plimsoll.cluster.pools.limits import Excess, PoolLimits, Room
from plimsoll.cluster.pools.node_pools import PoolShapes
from plimsoll.cluster.pools.overhead import Allocatable, DaemonOverhead, allocatable, allocatable_cpu_milli
from plimsoll.cluster.pools.shape import PoolShape

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
