"""What a new node of a NodePool would offer."""

from plimsoll.cluster.pools.explained import Fact, ProfileFacts, profile_facts
from plimsoll.cluster.pools.idle import idle_nodes
from plimsoll.cluster.pools.launching import free_on_claims, starting_nodes, unready_claims
from plimsoll.cluster.pools.limits import Excess, PoolLimits, Room
from plimsoll.cluster.pools.overhead import Allocatable, DaemonOverhead, allocatable, allocatable_cpu_milli
from plimsoll.cluster.pools.pool_profiles import PoolProfiles, not_ready
from plimsoll.cluster.pools.seen_nodes import SeenNodes
from plimsoll.cluster.pools.strategies import PACKED, Strategies, strategies_of
from plimsoll.cluster.pools.type_amounts import most_allocatable
from plimsoll.cluster.pools.unknown import unknown_pools
from plimsoll.cluster.pools.vendor_pools import planned_vendors, why_left

__all__ = [
    "PACKED",
    "Allocatable",
    "DaemonOverhead",
    "Excess",
    "Fact",
    "PoolLimits",
    "PoolProfiles",
    "ProfileFacts",
    "Room",
    "SeenNodes",
    "Strategies",
    "allocatable",
    "allocatable_cpu_milli",
    "free_on_claims",
    "idle_nodes",
    "most_allocatable",
    "not_ready",
    "planned_vendors",
    "profile_facts",
    "starting_nodes",
    "strategies_of",
    "unknown_pools",
    "unready_claims",
    "why_left",
]
