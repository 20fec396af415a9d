"""Workspaces with node auto-provisioning: checks the instance type, or suggests one."""

from collections.abc import Iterator
from typing import NamedTuple

from plimsoll.cluster.catalog import Candidate, OfferedType, OfferedTypes, unlisted_azure
from plimsoll.cluster.nodes import GpuLabels
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
from plimsoll.labels import HOSTNAME, INSTANCE_TYPE
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import INSTANCE_TYPE_REQUIRED, EnvironmentSpec, NamespaceAccess, Workspace
from plimsoll.model.cluster import InstanceType, NodeGpus
from plimsoll.plan.owned import alive
from plimsoll.plan.view import ClusterView
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
            if offered is None or self._types.node_class_ref(offered, self._environment, access) is None:
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


UNKNOWN_GPUS = NodeGpus(1, 1024)
"""Stands for the GPUs of a type that only a NodePool names and of which nothing is known: one GPU per node."""
OS = "kubernetes.io/os"


class ProvisionedNodes:
    """Checks Workspaces of an environment with node auto-provisioning."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._types = types = view.types
        self._environment = environment = view.observed.environment.spec
        self._estimates = Estimates(environment.estimator)
        self._proposals = Proposals(types, environment, self._estimates)

    def evaluate(self, workspace: Workspace) -> Sizing | Refusal:
        """The number of nodes of its instance type that the Workspace needs, or a refusal."""
        need = replica_need(workspace, self._view.models)
        if isinstance(need, Refusal):
            return need
        access = self._environment.access_of(workspace.namespace)
        name = workspace.spec.resource.instance_type
        if name is None:
            return Refusal(
                Reason.INSTANCE_TYPE_REQUIRED, INSTANCE_TYPE_REQUIRED + self._proposals.of(workspace, need, access)
            )
        other = self._other_vendor(name)
        if other is not None:
            return other
        offered = self._types.find(name)
        if offered is None:
            near = self._types.near(name)
            return Refusal(
                Reason.UNSUPPORTED_INSTANCE_TYPE,
                f"Unsupported instance type {name!r}: no NodePool, node or catalog entry has it"
                + (f"; {did_you_mean(near)}" if near else "; change resource.instanceType"),
            )
        return (
            self._foreign_pool(workspace, offered, access)
            or self._contradiction(workspace, offered)
            or self._size(workspace, need, offered, access)
        )

    def _other_vendor(self, name: str) -> Refusal | None:
        """Refuses types whose accelerators the pods cannot request."""
        product = self._types.declared.other_vendor(name)
        if not product:
            return None
        return Refusal(
            Reason.UNSUPPORTED_INSTANCE_TYPE,
            f"Unsupported instance type {name!r}: it has {product}, and only NVIDIA GPUs are supported; change "
            "resource.instanceType",
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

    def _size(
        self, workspace: Workspace, need: ReplicaNeed | None, offered: OfferedType, access: NamespaceAccess | None
    ) -> Sizing | Refusal:
        if self._types.node_class_ref(offered, self._environment, access) is None:
            return Refusal(
                Reason.UNSUPPORTED_INSTANCE_TYPE,
                f"Unsupported instance type {offered.name!r} here: no NodePool allows it and its cloud has no known "
                "node class; set nodeClaims.nodeClassRef in the Environment",
            )
        warnings = offered.warnings
        replica = ReplicaSize(1)
        if need is not None and offered.gpus is not None:
            sized = nodes_per_replica(need, offered.gpus, f"instance type {offered.name}", self._estimates)
            if isinstance(sized, Refusal):
                return sized
            replica = sized
            warnings = (*warnings, *replica.warnings, *need.warnings)
        elif need is not None:
            if need.per_replica is None and need.need is not None and not unlisted_azure(offered.name):
                return Refusal(
                    Reason.UNSUPPORTED_INSTANCE_TYPE,
                    f"Unsupported instance type {offered.name!r} for {need.subject}: the GPUs of its nodes are not "
                    "known; set inference.perReplicaNodeCount",
                )
            warnings = (*warnings, f"the GPUs of {offered.name} are not known: {need.subject} may not fit it")
            replica = ReplicaSize(
                need.per_replica or 1, "", need.serving(UNKNOWN_GPUS, need.per_replica or 1, self._estimates)
            )
        devices = self._devices(workspace, offered)
        most = None if devices is None else max(devices, offered.claimable or 0)  # its node may have lost some
        over = beyond_node(workspace, self._environment, most, offered.name)
        if over is not None:
            return over
        target, deprecated = nodes_in_all(workspace, replica.nodes)
        return Sizing(
            per_replica=replica.nodes,
            target=target,
            message=f"{counted(target, 'node')} of {offered}; one replica takes {replica}",
            serving=replica.serving,
            devices=devices,
            gpus=offered.claimable,
            warnings=(*warnings, *deprecated),
        )

    def _devices(self, workspace: Workspace, offered: OfferedType) -> int | None:
        """Devices of one node: its GPUs, each shared as on the Workspace's own nodes, where it has any; how other nodes
        are shared changes nothing there. Of several, those of the node with the fewest."""
        if offered.gpus is None:
            return None
        view = self._view
        claims = alive(view.ownership.claims_of(workspace))
        own = [*map(view.progress.node_of, claims), *map(view.index.by_name.get, view.usage.own(workspace))]
        labels = (view.index.gpus(node) for node in own if node is not None)
        shared = [each.replicas for each in labels if isinstance(each, GpuLabels)]
        return offered.gpus.count * min(shared) if shared else offered.devices

    def _contradiction(self, workspace: Workspace, offered: OfferedType) -> Refusal | None:
        """Refuses selector requirements that no node of the type can meet."""
        selector = workspace.spec.resource.label_selector
        fixed = {INSTANCE_TYPE: offered.name, OS: "linux"}
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
        return None
