"""The CPU, memory and disk that a new node of an instance type can have."""

from collections.abc import Iterable, Mapping

from plimsoll.cluster.catalog import OfferedTypes
from plimsoll.cluster.nodes import Amounts, amounts_of, most_of
from plimsoll.cluster.pools.overhead import listed_amounts
from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model.api import KnownNodeProfile


def most_allocatable(
    types: OfferedTypes, profiles: Iterable[KnownNodeProfile], instance_type: str, node_pool: str
) -> Amounts:
    """The most allocatable of each resource that a node of the type is known to have: by nodes of the NodePool and of
    Workspaces, and by NodeProfiles; by the catalog, where none of these says it. What no source says is not there.

    The node class sets the disk, so that nodes of other NodePools do not count.
    """
    alike = (
        node
        for node in types.nodes_of(instance_type)
        if WORKSPACE in node.labels or node.labels.get(NODEPOOL, "") in ("", node_pool)
    )
    stated: list[Mapping[str, str | int | float]] = [node.allocatable for node in alike]
    for profile in profiles:
        if profile.pair == (node_pool, instance_type.casefold()):
            learned = profile.status.learned
            stated += [profile.spec.allocatable, *([learned.allocatable] if learned is not None else [])]
    return amounts_of(listed_amounts(types.declared.lookup(instance_type))) | most_of(stated)
