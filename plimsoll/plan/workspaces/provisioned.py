"""Workspaces with node auto-provisioning: checks the instance type, or suggests one."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from plimsoll.cluster.catalog import (
    Candidate,
    OfferedType,
    OfferedTypes,
    launched_for_gpus,
    type_labels,
    unlisted_azure,
)
from plimsoll.cluster.nodes import DISK, Amounts
from plimsoll.cluster.pools import most_allocatable
from plimsoll.cluster.profiles import discovery_of
from plimsoll.estimating import (
    Estimates,
    ReplicaNeed,
    ReplicaSize,
    Sizing,
    beyond_node,
    nodes_in_all,
    nodes_per_replica,
    replica_need,
)
from plimsoll.labels import CAPACITY_TYPE, GPU_RESOURCE, HOSTNAME, INSTANCE_TYPE, OS, ZONE
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import INSTANCE_TYPE_REQUIRED, EnvironmentSpec, NamespaceAccess, NodeClassRef, Workspace
from plimsoll.model.cluster import VENDOR_RESOURCES, Device, InstanceType
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import ANYWHERE, Placement
from plimsoll.plan.owned import alive
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.inherited import DEFAULT_CAPACITY, capacity_choice, capacity_types, wanted_values
from plimsoll.plan.workspaces.pod_needs import beyond_node_class, beyond_type, disk_of_new_node, host_need
from plimsoll.plan.workspaces.pod_placement import against_type, unmet_by_new_nodes
from plimsoll.plan.workspaces.refused_fields import other_vendor
from plimsoll.plan.workspaces.reserved import reserved_capacity, seen_node_class
from plimsoll.text import counted, did_you_mean, shortlist


class _Candidates(NamedTuple):
    """Instance types to choose from, reduced to those that fit, cheapest first."""

    candidates: tuple[Candidate, ...]
    where: str
    """What the types have in common, for messages."""


class Proposals:
    """Suggests instance types. Nothing is created from a suggestion."""

    def __init__(self, types: OfferedTypes, environment: EnvironmentSpec, estimates: Estimates) -> None:
        self._types = types
        self._environment = environment
        self._estimates = estimates
        self._cached: dict[object, _Candidates] = {}

    def of(self, workspace: Workspace, need: ReplicaNeed | None, access: NamespaceAccess | None) -> str:
        """The end of a sentence; empty where the need of a replica is not known."""
        if need is None or need.need is None:
            return ""
        candidates = self._candidates(need, access)
        within = [each for each in candidates.candidates if self._within_limits(workspace, each)]
        if not within:
            over = " within the limits of the Environment and the Workspace" if candidates.candidates else ""
            return f"; none of {candidates.where} fits {need.subject}{over}"
        best = within[0]
        reasons = "; ".join((*best.reasons, *self._for_all(workspace, best)))
        fitting = f"the cheapest of {len(within)} that fit" if len(within) > 1 else "the only one that fits"
        return f", for example {best.type.name}, {fitting}, of {candidates.where}: {reasons}"

    def _candidates(self, need: ReplicaNeed, access: NamespaceAccess | None) -> _Candidates:
        key = (need.need, need.context_length, access)
        found = self._cached.get(key)
        if found is None:
            found = self._cached[key] = self._find_candidates(need, access)
        return found

    def _find_candidates(self, need: ReplicaNeed, access: NamespaceAccess | None) -> _Candidates:
        assert need.need is not None
        named = self._types.named_for(access)
        clouds = self._types.clouds(self._environment)
        allowed = None if access is None else access.instance_types

        def allows(kind: InstanceType) -> bool:
            if access is not None and not access.allows_type(kind.name):
                return False
            if named is None and clouds and kind.cloud and kind.cloud not in clouds:
                return False
            offered = self._types.find(kind.name)
            if offered is None:
                return False
            node_class = self._types.node_class_ref(offered, self._environment, access)
            if node_class is None or not launched_for_gpus(kind, node_class.group):
                return False
            restricted = access is not None and access.node_pools is not None
            return not restricted or self._types.pool(offered, access) is not None

        candidates = self._types.catalog.feasible(
            need.need, self._estimates.settings, context_length=need.context_length, names=named, allows=allows
        )
        where = "the types that NodePools and nodes here name" if named is not None else "the known types"
        where += f" of {' and '.join(sorted(clouds))}" if named is None and clouds else ""
        where += f" and the namespace may use ({shortlist(allowed) or 'none'})" if allowed is not None else ""
        return _Candidates(candidates, where)

    def _within_limits(self, workspace: Workspace, candidate: Candidate) -> bool:
        nodes = candidate.estimate.nodes * workspace.replicas
        limits, own = self._environment.limits, workspace.spec.resource.node_count_limit
        return (
            (limits.nodes is None or nodes <= limits.nodes)
            and (limits.gpus is None or nodes * candidate.type.gpus <= limits.gpus)
            and (own is None or nodes <= own)
        )

    def _for_all(self, workspace: Workspace, candidate: Candidate) -> Iterator[str]:
        if workspace.replicas < 2:
            return
        nodes = candidate.estimate.nodes * workspace.replicas
        price = candidate.price_per_hour
        cost = "" if price is None else f", {price * workspace.replicas:.4g} an hour"
        yield f"{workspace.replicas} replicas: {counted(nodes, 'node')}{cost}"


UNKNOWN_GPUS = Device("", 1024, 1)
"""Stands for the GPUs of a type that only a NodePool names and of which nothing is known: one GPU per node."""


class ProvisionedNodes:
    """Checks Workspaces of an environment with node auto-provisioning."""

    def __init__(self, view: ClusterView, ended: frozenset[str] = frozenset()) -> None:
        """`ended` are reservations that have ended, by id."""
        self._view, self._ended = view, ended
        self._types = types = view.types
        self._environment = environment = view.observed.environment.spec
        self._estimates = Estimates(environment.estimator)
        self._proposals = Proposals(types, environment, self._estimates)
        self._amounts: dict[tuple[str, str], Amounts] = {}
        """What nodes of an instance type in a NodePool can have."""

    def read_by(self, workspace: Workspace, placement: Placement) -> object:
        """What `evaluate` reads of instance types: it gives the same while this is equal. Without a known type, it
        reads all of them, and so does a choice."""
        resource = workspace.spec.resource
        offered = None if resource.alternatives else self._types.find(resource.instance_type or "")
        if offered is None:
            return self._types
        try:
            access = self._environment.access_of(workspace.namespace)
        except KeyError:
            return None  # it is refused without a look at types
        wanted = wanted_values(workspace, self._environment, placement)
        return offered, self._most_of(offered, self._types.pool(offered, access, wanted))

    def evaluate(self, workspace: Workspace, placement: Placement) -> Sizing | Refusal:
        """The number of nodes of its instance type that the Workspace needs where its pods may be, or a refusal."""
        need = replica_need(workspace, self._view.models)
        if isinstance(need, Refusal):
            return need
        access = self._environment.access_of(workspace.namespace)
        name = workspace.spec.resource.instance_type
        if name is None:
            return Refusal(
                Reason.INSTANCE_TYPE_REQUIRED, INSTANCE_TYPE_REQUIRED + self._proposals.of(workspace, need, access)
            )
        offered = self._types.find(name)
        other = self._other_vendor(name, offered)
        if other is not None:
            return other
        if offered is None:
            near = self._types.near(name)
            return Refusal(
                Reason.UNSUPPORTED_INSTANCE_TYPE,
                f"Unsupported instance type {name!r}: no NodePool, node or catalog entry has it: change "
                f"resource.instanceType or, if it is right, {self._types.how_to_know(name)}"
                + (f"; {did_you_mean(near)}" if near else ""),
            )
        wanted = wanted_values(workspace, self._environment, placement)
        return (
            self._foreign_pool(workspace, offered, access)
            or self._contradiction(workspace, offered, access, wanted)
            or self._size(workspace, need, offered, access, wanted)
        )

    def _other_vendor(self, name: str, offered: OfferedType | None) -> Refusal | None:
        """Refuses types whose accelerators the pods cannot request, or of which no source says how many they are."""
        product = self._types.declared.other_vendor(name)
        if not product or (offered is not None and (offered.resource or offered.claimed is not None)):
            return None
        return Refusal(
            Reason.UNSUPPORTED_INSTANCE_TYPE,
            f"Unsupported instance type {name!r}: it has {product}, and nodes are created for Workspaces with GPUs of "
            "NVIDIA, and with those of AMD and Intel that a node, the catalog or a NodeProfile says "
            f"({', '.join(VENDOR_RESOURCES)} in spec.allocatable); change resource.instanceType, or declare them",
        )

    def _foreign_pool(
        self, workspace: Workspace, offered: OfferedType, access: NamespaceAccess | None
    ) -> Refusal | None:
        """Refuses an instance type that none of the namespace's NodePools allows."""
        if access is None or access.node_pools is None or self._types.pool(offered, access) is not None:
            return None
        others = [pool.name for pool in offered.pools]
        allowing = f", NodePool {shortlist(others)} does" if others else ""
        return Refusal(
            Reason.NOT_ALLOWED,
            f"namespace {workspace.namespace!r} may use the NodePools {shortlist(access.node_pools) or '(none)'} only, "
            f"and none of them allows instance type {offered.name!r}{allowing}: change resource.instanceType",
        )

    def _declared_in_part(self, workspace: Workspace, offered: OfferedType) -> Refusal | None:
        """Refuses a Workspace whose pods claim devices of which a NodeProfile says too little: no class is known to
        select them."""
        claimed = offered.claimed
        if not workspace.spec.resource.claims or claimed is None or claimed.own_class or offered.kind is not None:
            return None
        return Refusal(
            Reason.UNSUPPORTED_INSTANCE_TYPE,
            f"Unsupported instance type {offered.name!r} here: its devices are not known: "
            f"{self._types.how_to_know(offered.name)}",
        )

    def _size(
        self,
        workspace: Workspace,
        need: ReplicaNeed | None,
        offered: OfferedType,
        access: NamespaceAccess | None,
        wanted: Mapping[str, tuple[str, ...]],
    ) -> Sizing | Refusal:
        node_class = self._types.node_class_ref(offered, self._environment, access, wanted)
        if node_class is None:
            return Refusal(
                Reason.UNSUPPORTED_INSTANCE_TYPE,
                f"Unsupported instance type {offered.name!r} here: no NodePool allows it and its cloud has no known "
                "node class; set nodeClaims.nodeClassRef in the Environment",
            )
        resource = offered.claimed.driver if offered.claimed is not None else offered.resource
        unlike = self._declared_in_part(workspace, offered) or _unlike(workspace, offered, resource, node_class.group)
        if unlike is not None:
            return unlike
        warnings = offered.warnings
        replica = ReplicaSize(1)
        if need is not None and offered.gpus is not None:
            sized = nodes_per_replica(need, offered.gpus, f"instance type {offered.name}", self._estimates)
            if isinstance(sized, Refusal):
                return sized
            replica = sized
            warnings = (*warnings, *replica.warnings, *need.warnings)
        elif need is not None:
            unknown, what = ("the GPUs", "are") if offered.kind is None else ("the memory of the GPUs", "is")
            guessable = offered.kind is None and unlisted_azure(offered.name)
            if need.per_replica is None and need.need is not None and not guessable:
                return Refusal(
                    Reason.UNSUPPORTED_INSTANCE_TYPE,
                    f"Unsupported instance type {offered.name!r} for {need.subject}: {unknown} of its nodes {what} not "
                    "known; set inference.perReplicaNodeCount",
                )
            warnings = (*warnings, f"{unknown} of {offered.name} {what} not known: {need.subject} may not fit it")
            replica = ReplicaSize(
                need.per_replica or 1, "", need.serving(UNKNOWN_GPUS, need.per_replica or 1, self._estimates)
            )
        devices = self._devices(workspace, offered)
        most = None if devices is None else max(devices, offered.claimable or 0)  # its node may have lost some
        pool = self._types.pool(offered, access, wanted)
        announced = offered.resource or self._environment.gpu_resource
        over = beyond_node(workspace, self._environment, most, offered.name, announced)
        over = over or self._beyond(workspace, offered, node_class, pool)
        if over is not None:
            return over
        ends = reserved_capacity(workspace, offered, node_class, pool, self._view, ended=self._ended)
        if isinstance(ends, Refusal):
            return ends
        target, deprecated = nodes_in_all(workspace, replica.nodes)
        known = self._known(workspace, offered, node_class.group, pool, wanted)
        paid = "" if pool is not None or capacity_choice(workspace, self._environment) else f", {DEFAULT_CAPACITY}"
        return Sizing(
            per_replica=replica.nodes,
            target=target,
            message=f"{counted(target, 'node')} of {offered}{paid}; one replica takes {replica}",
            serving=replica.serving,
            devices=devices,
            resource=resource if workspace.spec.resource.claims else offered.resource,
            gpus=offered.claimable,
            warnings=(*warnings, *ends, *deprecated, *unmet_by_new_nodes(workspace, self._environment, known)),
        )

    def _of_type(self, offered: OfferedType, group: str) -> Mapping[str, str]:
        """Labels that nodes of the type have with any settings, by the API group of their node class."""
        return type_labels(group, offered.name, self._types.declared.lookup(offered.name)).values

    def _known(
        self,
        workspace: Workspace,
        offered: OfferedType,
        group: str,
        pool: NodePool | None,
        wanted: Mapping[str, tuple[str, ...]],
    ) -> dict[str, tuple[str, ...]]:
        """Values that labels of the new nodes may have, where that is known."""
        of_type = self._of_type(offered, group)
        selected = workspace.spec.resource.label_selector.match_labels
        found: dict[str, tuple[str, ...]] = {key: (value,) for key, value in of_type.items()}
        found |= (pool.allowed_values if pool is not None else {}) | dict(wanted)
        found |= {key: (value,) for key, value in selected.items()} | {OS: ("linux",), INSTANCE_TYPE: (offered.name,)}
        paid = capacity_types(workspace, self._environment, pool)
        return found | ({CAPACITY_TYPE: paid} if paid else {})

    def _beyond(
        self, workspace: Workspace, offered: OfferedType, node_class: NodeClassRef, pool: NodePool | None
    ) -> Refusal | None:
        """Refuses pods that no node of the type has the CPU, the memory or the disk for."""
        needed = host_need(workspace, self._environment, self._view.models)
        if isinstance(needed, Refusal):
            return needed
        most = self._most_of(offered, pool)
        over = beyond_type(workspace, needed, most, offered.name)
        found = seen_node_class(node_class, self._view)
        if over is not None or found is None or DISK in most:  # what nodes were seen to have counts more
            return over
        least = disk_of_new_node(workspace, needed, self._environment, self._view.models)
        return beyond_node_class(least, self._types.declared.lookup(offered.name), found)

    def _most_of(self, offered: OfferedType, pool: NodePool | None) -> Amounts:
        key = offered.name, pool.name if pool is not None else ""
        if key not in self._amounts:
            self._amounts[key] = most_allocatable(self._types, self._view.observed.node_profiles, *key)
        return self._amounts[key]

    def _devices(self, workspace: Workspace, offered: OfferedType) -> int | None:
        """Devices of one node: its GPUs, each shared as on the Workspace's own nodes, where it has any; how other nodes
        are shared changes nothing there. Of several, those of the node with the fewest."""
        if offered.kind is None:
            return None
        view = self._view
        claims = alive(view.ownership.claims_of(workspace))
        own = [*map(view.progress.node_of, claims), *map(view.index.by_name.get, view.usage.own(workspace))]
        said = (discovery_of(node) for node in own if node is not None)
        found = (each.gpus or each.claimed for each in said)
        shared = [gpus.replicas for gpus in found if gpus is not None and gpus.memory_mib]
        return offered.kind.gpus * min(shared) if shared else offered.devices

    def _without_values(self, workspace: Workspace, key: str) -> str:
        """Why no node can have the label as the Workspace and its volumes require it, and what to change."""
        fields = _requiring(workspace, key)
        if wanted_values(workspace, self._environment, ANYWHERE).get(key) == ():
            return f"{fields} require values of {key} that no node has together: make them agree"
        if not fields:
            return f"its volumes are on nodes with another {key} than each other: use other volumes"
        return f"its volumes are on nodes with another {key} than {fields} require: change these, or use other volumes"

    def _contradiction(
        self,
        workspace: Workspace,
        offered: OfferedType,
        access: NamespaceAccess | None,
        wanted: Mapping[str, tuple[str, ...]],
    ) -> Refusal | None:
        """Refuses requirements that no node of the type, as its NodePool makes them, can meet."""
        selector = workspace.spec.resource.label_selector
        node_class = self._types.node_class_ref(offered, self._environment, access, wanted)
        of_type = {} if node_class is None else self._of_type(offered, node_class.group)
        fixed = {**of_type, INSTANCE_TYPE: offered.name, OS: "linux"}
        for item in selector.requirements():
            if item.key == HOSTNAME:  # Karpenter rejects it in a NodeClaim
                return Refusal(
                    Reason.SELECTOR_RESERVED,
                    f"resource.labelSelector uses {HOSTNAME}, but a node that is not provisioned yet has no name: "
                    "remove it",
                )
            if item.key in fixed and not item.matches(fixed):
                return Refusal(
                    Reason.INVALID_SPEC,
                    f"resource.labelSelector requires {item}, but the provisioned nodes have "
                    f"{item.key}={fixed[item.key]}: remove it, or make them agree",
                )
        required = against_type(workspace, self._environment, fixed)
        if required is not None:
            field, condition = required
            return Refusal(
                Reason.INVALID_SPEC,
                f"{field} requires {condition}, but the provisioned nodes have {condition.key}={fixed[condition.key]}: "
                "remove it, or make them agree",
            )
        for key, values in wanted.items():
            if not values:
                return Refusal(Reason.INVALID_SPEC, self._without_values(workspace, key))
        pool = self._types.pool(offered, access)
        rule = None if pool is None or self._types.pool(offered, access, wanted) else pool.forbids(wanted)
        if pool is None or rule is None:
            return None
        return Refusal(
            Reason.INVALID_SPEC,
            f"its nodes must have {rule.key} {' or '.join(wanted[rule.key])}, but NodePool {pool.name}, which has "
            f"instance type {offered.name}, requires {rule}: {_remedy(workspace, rule.key)}",
        )


def _requiring(workspace: Workspace, key: str) -> str:
    """The fields of the Workspace that name values of a label."""
    resource = workspace.spec.resource
    named = any(item.key == key and item.operator == "In" for item in resource.label_selector.requirements())
    fields = ["resource.labelSelector"] if named else []
    return " and ".join([*fields, *(["resource.zones"] if key == ZONE and resource.zones else [])])


def _remedy(workspace: Workspace, key: str) -> str:
    """What to change where the NodePool contradicts what is required of a label."""
    resource = workspace.spec.resource
    if key == CAPACITY_TYPE and resource.capacity_type is not None:
        return "change resource.capacityType or resource.instanceType"
    if key == ZONE and resource.zones:
        return "change resource.zones or resource.instanceType"
    if any(item.key == key for item in resource.label_selector.requirements()):
        return "change resource.labelSelector or resource.instanceType"
    if key != CAPACITY_TYPE:
        return (
            "its volumes, or KAI's node pool of its pods, are there; change resource.instanceType, or use a volume "
            "where the NodePool has nodes"
        )
    return "change nodeClaims.capacityType of the Environment, or resource.instanceType"


def _unlike(workspace: Workspace, offered: OfferedType, resource: str, group: str) -> Refusal | None:
    """The refusal of a Workspace that cannot use the GPUs of the type, which are of this driver or resource."""
    claims = workspace.spec.resource.claims
    refused = _unlike_claims(offered, claims=claims) or (other_vendor(workspace, resource) if resource else None)
    if refused or offered.kind is None or offered.resource or launched_for_gpus(offered.kind, group):
        return refused
    return Refusal(
        Reason.UNSUPPORTED_INSTANCE_TYPE,
        f"Unsupported instance type {offered.name!r} here: Karpenter counts no GPU on this type and launches none for "
        "NodeClaims that ask for GPUs; change resource.instanceType",
    )


def _unlike_claims(offered: OfferedType, *, claims: bool) -> Refusal | None:
    """The refusal of a Workspace whose pods could not get the GPUs of the type as they ask for them: by claims, or by
    the extended resource."""
    claimed = offered.claimed
    if claimed is None:
        problem = (
            "no node and no NodeProfile says that pods get its GPUs by claims: declare claimDevices in a NodeProfile, "
            "or remove resource.devices"
        )
        served = not claims
    elif claims:
        problem = f"no DeviceClass {claimed.driver} selects its GPUs: create it, as the driver's chart does"
        served = bool(claimed.own_class)
    else:
        problem = (
            f"pods get its GPUs by claims of {claimed.driver} only: set resource.devices to claim, or declare a "
            f"DeviceClass of them with extendedResourceName {GPU_RESOURCE}"
        )
        served = GPU_RESOURCE in claimed.extended_resources
    if served:
        return None
    return Refusal(Reason.UNSUPPORTED_INSTANCE_TYPE, f"Unsupported instance type {offered.name!r} here: {problem}")
