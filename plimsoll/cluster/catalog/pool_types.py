"""Which instance types a NodePool allows, as far as their names and labels say."""

from collections.abc import Mapping

from plimsoll.cluster.catalog.provider_labels import CLOUDS, type_labels
from plimsoll.labels import INSTANCE_TYPE
from plimsoll.model.cluster import InstanceType
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import NodeRequirement


def label_requirements(pool: NodePool) -> Mapping[str, tuple[NodeRequirement, ...]]:
    """The NodePool's requirements on its nodes, by label."""
    found: dict[str, tuple[NodeRequirement, ...]] = {}
    for each in pool.requirements:
        key, values = str(each.get("key")), each.get("values")
        texts = tuple(map(str, values)) if isinstance(values, list) else ()
        found[key] = (*found.get(key, ()), NodeRequirement(key, str(each.get("operator")), texts))
    return found


def allows_type(
    pool: NodePool,
    requirements: Mapping[str, tuple[NodeRequirement, ...]],
    name: str,
    cloud: str,
    listed: InstanceType | None,
) -> bool:
    """Whether the NodePool with these `label_requirements` allows the instance type; `listed` is its catalog entry.

    The name is compared case-insensitively where the NodePool lists names. One that lists none allows no type of
    another `cloud`. Labels that are not known of the type are assumed to be as required.
    """
    named = {each.casefold(): each for each in pool.instance_types}
    if named and name.casefold() not in named:
        return False
    if not named and cloud and CLOUDS.get(pool.node_class_group, cloud) != cloud:
        return False
    spelled = named.get(name.casefold(), name)
    labels = type_labels(pool.node_class_group, spelled, listed)
    of_type = {**labels.values, **dict.fromkeys(labels.absent), INSTANCE_TYPE: spelled}
    return all(each.allows(value) for key, value in of_type.items() for each in requirements.get(key, ()))
