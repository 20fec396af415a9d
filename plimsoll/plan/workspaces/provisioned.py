"""Workspaces whose nodes are provisioned (NAP): an instance type that is known, and how many nodes of it."""

from plimsoll.labels import INSTANCE_TYPE
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import INSTANCE_TYPE_REQUIRED, EnvironmentSpec, NamespaceAccess, Workspace
from plimsoll.plan.catalog import OfferedType, OfferedTypes
from plimsoll.plan.estimating import Estimates, ReplicaNeed, Sizing, nodes_in_all, nodes_per_replica, replica_need
from plimsoll.plan.workspaces.proposal import Proposals
from plimsoll.text import counted, did_you_mean, shortlist

HOSTNAME = "kubernetes.io/hostname"
"""Karpenter forbids it in a NodeClaim: a node that is yet to come has no name."""
OS = "kubernetes.io/os"


class ProvisionedNodes:
    """Judges Workspaces of an environment with auto-provisioning."""

    def __init__(self, types: OfferedTypes, environment: EnvironmentSpec) -> None:
        self._types = types
        self._environment = environment
        self._estimates = Estimates(environment.estimator)
        self._proposals = Proposals(types, environment, self._estimates)

    def judge(self, workspace: Workspace) -> Sizing | Refusal:
        """How many nodes of its instance type the Workspace takes, or why it may have none."""
        need = replica_need(workspace)
        if isinstance(need, Refusal):
            return need
        access = self._environment.access_of(workspace.namespace)
        name = workspace.spec.resource.instance_type
        if name is None:
            return Refusal(
                Reason.INSTANCE_TYPE_REQUIRED, INSTANCE_TYPE_REQUIRED + self._proposals.of(workspace, need, access)
            )
        offered = self._types.find(name)
        if offered is None:
            near = self._types.near(name)
            return Refusal(
                Reason.UNSUPPORTED_INSTANCE_TYPE,
                f"Unsupported instance type {name!r}: neither the catalog nor a NodePool nor a live node has it"
                + (f"; {did_you_mean(near)}" if near else "; change resource.instanceType"),
            )
        return (
            self._foreign_pool(workspace, offered, access)
            or self._contradiction(workspace, offered)
            or self._size(workspace, need, offered, access)
        )

    def _foreign_pool(
        self, workspace: Workspace, offered: OfferedType, access: NamespaceAccess | None
    ) -> Refusal | None:
        """A namespace with NodePools of its own takes the types that one of them allows."""
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
        per_replica = 1
        if need is not None and offered.gpus is not None:
            sized = nodes_per_replica(need, offered.gpus, f"instance type {offered.name}", self._estimates)
            if isinstance(sized, Refusal):
                return sized
            per_replica, warning = sized
            warnings = (*warnings, warning) if warning else warnings
        elif need is not None:
            if need.per_replica is None and need.need is not None:
                return Refusal(
                    Reason.UNSUPPORTED_INSTANCE_TYPE,
                    f"Unsupported instance type {offered.name!r} for {need.subject}: the GPUs of its nodes are not "
                    "known; set inference.perReplicaNodeCount",
                )
            per_replica = need.per_replica or 1
        target, deprecated = nodes_in_all(workspace, per_replica)
        return Sizing(
            per_replica=per_replica,
            target=target,
            message=f"{counted(target, 'node')} of {offered}; one replica takes {counted(per_replica, 'node')}",
            devices=offered.devices,
            gpus=offered.claimable,
            warnings=(*warnings, *deprecated),
        )

    def _contradiction(self, workspace: Workspace, offered: OfferedType) -> Refusal | None:
        """Requirements of the selector that no node of the type could meet."""
        selector = workspace.spec.resource.label_selector
        fixed = {INSTANCE_TYPE: offered.name, OS: "linux"}
        for item in selector.requirements():
            if item.key == HOSTNAME:
                return Refusal(
                    Reason.SELECTOR_RESERVED,
                    f"resource.labelSelector names {HOSTNAME}: a node that is yet to be provisioned has no name; "
                    "remove it",
                )
            if item.key in fixed and not item.matches(fixed):
                return Refusal(
                    Reason.INVALID_SPEC,
                    f"resource.labelSelector asks for {item}, and the nodes to be provisioned have "
                    f"{item.key}={fixed[item.key]}: remove it, or make them agree",
                )
        return None
