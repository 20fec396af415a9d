"""NodePools that the Environment's settings for demand name and that do not exist."""

from collections.abc import Iterator

from plimsoll.labels import NODEPOOL
from plimsoll.model import Snapshot
from plimsoll.model.api import ANY_NODE_POOL
from plimsoll.text import did_you_mean, nearest


def unknown_pools(snapshot: Snapshot) -> Iterator[str]:
    """A warning for each of `demand.placement` and `demand.sharedDevices`: neither it nor nodes of it exist."""
    demand = snapshot.environment.spec.demand
    named = {
        "placement": demand.placement.keys() - {ANY_NODE_POOL},
        "sharedDevices": {each.node_pool for each in demand.shared_devices},
    }
    if not any(named.values()):
        return
    known = {pool.name for pool in snapshot.node_pools}
    known |= {node.labels[NODEPOOL] for node in snapshot.nodes if NODEPOOL in node.labels}
    for field, names in named.items():
        for name in sorted(names - known):
            near = did_you_mean(nearest(name, sorted(known)))
            yield f"demand.{field} of the Environment: there is no NodePool {name}" + (f" ({near})" if near else "")
