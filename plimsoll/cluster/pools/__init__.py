"""What a new node of a NodePool would offer."""

from plimsoll.cluster.pools.idle import idle_nodes
from plimsoll.cluster.pools.label_conditions import all_met, narrowed
from plimsoll.cluster.pools.launching import free_on_claims, starting_nodes, unready_claims
from plimsoll.cluster.pools.limits import Excess, PoolLimits, Room
from plimsoll.cluster.pools.node_pools import PoolShapes, not_ready
from plimsoll.cluster.pools.overhead import Allocatable, DaemonOverhead, allocatable, allocatable_cpu_milli
from plimsoll.cluster.pools.shape import CHOSEN_BY_PROVIDER, PoolShape

__all__ = [
    "CHOSEN_BY_PROVIDER",
    "Allocatable",
    "DaemonOverhead",
    "Excess",
    "PoolLimits",
    "PoolShape",
    "PoolShapes",
    "Room",
    "all_met",
    "allocatable",
    "allocatable_cpu_milli",
    "free_on_claims",
    "idle_nodes",
    "narrowed",
    "not_ready",
    "starting_nodes",
    "unready_claims",
]
