"""Existing nodes with node auto-provisioning: a Workspace uses matching Ready nodes before new ones are created."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice

from plimsoll.cluster.nodes import PodDevices, Tolerance, Tolerances, gpu_devices, pod_devices, why_unusable
from plimsoll.labels import NODEPOOL, WORKSPACE
from plimsoll.model.api import Alternative, Resource
from plimsoll.model.cluster import Node
from plimsoll.model.meta import Placement
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.pod_placement import known_placement, placements


def existing_nodes(
    view: ClusterView, targets: Mapping[tuple[str, str], tuple[int, Alternative | None]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Names of existing nodes that count for each Workspace, at most its target, with temporary nodes during a rollout;
    no node counts for two, or for a Workspace that is being deleted. `targets` are numbers of nodes, and what was
    chosen of several instance types.

    A node counts if it is Ready, where its pods may be, matches a non-empty selector, has the Workspace's
    instance type in a spelling that its pods require, belongs to no NodeClaim, NodePool or Workspace, and no other pod
    uses its GPUs. A Workspace keeps the nodes on which its pods run; older Workspaces choose first.
    """
    snapshot = view.snapshot
    claimed = {claim.node_name for claim in snapshot.node_claims}
    claimed |= {claim.provider_id for claim in snapshot.node_claims}
    free: dict[object, Iterator[str]] = {}
    places = placements(view)
    tolerances, gpus = Tolerances(snapshot.environment.spec), snapshot.environment.spec.gpu_resource
    taken: set[str] = set()
    counted: dict[tuple[str, str], tuple[str, ...]] = {}
    for workspace in view.by_age:
        target, alternative = targets.get(workspace.key, (0, None))
        chosen = workspace.on(alternative)
        resource = chosen.spec.resource
        if workspace.key in view.rolling:
            target += workspace.temporary_nodes
        if not target or workspace.deleting or resource.label_selector.empty:
            continue
        written = resource.instance_type or ""
        offered = view.types.find(written)
        if offered is None:
            continue
        tolerance = tolerances.of(chosen)
        placement = known_placement(places[workspace.key])
        wanted = (str(resource.selector), offered.spellings(written), tolerance.key, placement, resource.claims)
        # Each node is checked once for each set of criteria: one that a Workspace rejected fits no other with the same.
        check = partial(_free, wanted[1], tolerance, partial(_has_gpus, resource, offered.resource or gpus), claimed)
        nodes = free.get(wanted)
        if nodes is None:
            nodes = free[wanted] = check(_at(placement, view.index.matching(resource.selector)))
        used, known = view.usage.own(workspace), view.index.by_name
        running = (known[name] for name in sorted(used) if name in known)
        kept = check(_at(placement, (node for node in running if resource.selector.matches(node.labels))))
        possible = chain(kept, (name for name in nodes if name not in used))
        free_for = (name for name in possible if name not in taken and not view.usage.others(name, workspace, gpus))
        names = tuple(islice(free_for, target))
        taken.update(names)
        if names:
            counted[workspace.key] = names
    return counted


def _at(placement: Placement, nodes: Iterable[Node]) -> Iterator[Node]:
    return (node for node in nodes if placement.allows(node.labels, node.name))


def _free(
    instance_types: tuple[str, ...],
    tolerance: Tolerance,
    has_gpus: Callable[[Node], bool],
    claimed: set[str],
    nodes: Iterable[Node],
) -> Iterator[str]:
    """Names of usable nodes of the type that no autoscaler created; `claimed` holds node names and provider IDs."""
    for node in nodes:
        if node.instance_type not in instance_types or why_unusable(node, tolerance):
            continue
        if NODEPOOL in node.labels or WORKSPACE in node.labels:
            continue
        if node.name in claimed or (node.provider_id and node.provider_id in claimed):
            continue
        if has_gpus(node):
            yield node.name


def _has_gpus(resource: Resource, gpu_resource: str, node: Node) -> bool:
    """Whether the node has GPUs, as far as it says, that pods get as the Workspace's do."""
    if resource.claims:
        return isinstance(pod_devices(node, None, claims=True), PodDevices)
    return gpu_devices(node, gpu_resource) != 0
