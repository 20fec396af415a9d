"""What new nodes of a Workspace take over from the NodePool that allows their instance type."""

from typing import Any, Final

from plimsoll.cluster.volumes import conditions_of
from plimsoll.labels import CAPACITY_TYPE, GROUP, INSTANCE_TYPE, OS, ZONE
from plimsoll.model.api import CapacityType, EnvironmentSpec, Workspace, is_chosen
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import Placement, Taint, expression

_FIELDS: Final = ("startupTaints", "expireAfter", "terminationGracePeriod")
"""Fields of a NodePool's template that Karpenter copies into each NodeClaim, besides requirements and taints:
https://karpenter.sh/docs/concepts/nodepools/"""
_OF_REQUIREMENT: Final = ("key", "operator", "values")
"""Without `minValues`, which counts instance types: a Workspace's nodes are all of one."""


DEFAULT_CAPACITY: Final = "on-demand"
"""Without a NodePool: providers choose spot where nothing is said."""


def pool_requirements(pool: NodePool | None) -> list[dict[str, Any]]:
    """The NodePool's requirements, except for those that the Workspace's instance type decides; labels of its template
    that the provider writes are requirements, too: on a NodeClaim, they would not restrict what it chooses."""
    if pool is None:
        return []
    chosen = [expression(key, "In", value) for key, value in pool.template_labels.items() if is_chosen(key)]
    required: list[dict[str, Any]] = [
        {name: item[name] for name in _OF_REQUIREMENT if name in item} for item in pool.requirements
    ]
    return [item for item in (*required, *chosen) if item.get("key") not in (INSTANCE_TYPE, OS)]


def pool_labels(pool: NodePool | None, placement: Placement) -> dict[str, str]:
    """Labels of the NodePool's template, by which drivers and DaemonSets select nodes, without those that the placement
    of the Workspace's pods decides."""
    given = {} if pool is None else pool.template_labels
    decided = {item.key for item in conditions_of(placement) or ()}
    return {
        key: value
        for key, value in given.items()
        if key not in decided and not is_chosen(key) and not key.startswith(f"{GROUP}/")
    }


def pool_fields(pool: NodePool | None) -> dict[str, Any]:
    """Further fields of the NodePool's template that a NodeClaim has too."""
    return {} if pool is None else {name: pool.template_spec[name] for name in _FIELDS if pool.template_spec.get(name)}


def capacity_choice(workspace: Workspace, environment: EnvironmentSpec) -> CapacityType | None:
    """What the Workspace declares, else what the Environment does."""
    return workspace.spec.resource.capacity_type or environment.node_claims.capacity_type


def capacity_types(workspace: Workspace, environment: EnvironmentSpec, pool: NodePool | None) -> tuple[str, ...]:
    """How new nodes of the Workspace may be paid for; empty: as the NodePool says."""
    chosen = capacity_choice(workspace, environment)
    if chosen is None:
        return () if pool is not None else (DEFAULT_CAPACITY,)
    return _types(chosen)


def wanted_values(
    workspace: Workspace, environment: EnvironmentSpec, placement: Placement
) -> dict[str, tuple[str, ...]]:
    """Values by label that the nodes of the Workspace must have one of, by its own choice, that of the Environment, or
    where its pods may be. The NodePool whose nodes they are like is the first that allows them."""
    wanted: dict[str, tuple[str, ...]] = {}
    resource = workspace.spec.resource
    required = [(item.key, item.values) for item in resource.label_selector.requirements() if item.operator == "In"]
    required += [(ZONE, resource.zones)] if resource.zones else []
    required += [(item.key, item.values) for item in conditions_of(placement) or () if item.operator == "In"]
    for key, values in required:
        wanted[key] = tuple(value for value in values if value in wanted.get(key, values))
    chosen = capacity_choice(workspace, environment)
    return wanted if chosen is None else {**wanted, CAPACITY_TYPE: _types(chosen)}


def node_taints(environment: EnvironmentSpec, pool: NodePool | None) -> tuple[Taint, ...]:
    """Taints of new nodes: the Environment's, then those of the NodePool."""
    return tuple(dict.fromkeys((*environment.node_claims.node_taints, *(pool.taints if pool is not None else ()))))


def _types(chosen: CapacityType) -> tuple[str, ...]:
    return ("spot", "on-demand") if chosen == "any" else (chosen,)
