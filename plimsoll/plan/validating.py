"""Validation: each Workspace of a snapshot is accepted or refused, with the reason and what to change."""

import math

from plimsoll.estimating import Sizing
from plimsoll.labels import NODEPOOL
from plimsoll.model import Reason, Refusal, Snapshot, Verdict
from plimsoll.model.api import SELECTOR_RESERVED, TEMPLATE_RESERVED, EnvironmentSpec, Limits, Workspace
from plimsoll.model.meta import labels_of
from plimsoll.plan.limits import Budget, DemandUsage, NamespaceBudget, forbidden, reserved_keys
from plimsoll.plan.owned import alive, by_age
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import (
    LEADER_WORKER_SET,
    ByoNodes,
    ProvisionedNodes,
    allocate,
    existing_nodes,
    missing_token,
    name_conflicts,
    refused_volume,
    shared_volumes,
    unread,
    unsupported,
    workload_kind,
)
from plimsoll.serving import name_problem
from plimsoll.text import counted, shortlist


def validate(observed: Snapshot | ClusterView) -> tuple[Verdict, ...]:
    """A verdict on every Workspace of the snapshot, sorted by namespace and name.

    Limited capacity goes first to what already runs, then to the oldest Workspaces.
    """
    view = ClusterView.of(observed)
    snapshot = view.snapshot
    found = _evaluate(view)
    found |= name_conflicts(view, found)
    _enforce_limits(view, found)
    _accept_without_replicas(view, found)
    if not snapshot.environment.spec.auto_provisioning:
        sizings = {key: each for key, each in found.items() if isinstance(each, Sizing)}
        found |= allocate(view, sizings)
    environment = snapshot.environment.spec
    verdicts = [_verdict(workspace, found[workspace.key], environment) for workspace in snapshot.workspaces]
    verdicts += [
        Verdict(workspace=invalid.ref, accepted=False, reason=Reason.INVALID_SPEC, message=invalid.message)
        for invalid in snapshot.invalid_workspaces
    ]
    return tuple(sorted(verdicts, key=lambda verdict: (verdict.workspace.namespace, verdict.workspace.name)))


Found = dict[tuple[str, str], Sizing | Refusal]


def _evaluate(view: ClusterView) -> Found:
    snapshot = view.snapshot
    environment = snapshot.environment.spec
    of_mode: ProvisionedNodes | ByoNodes = ByoNodes(view.index, view.models, environment)
    if environment.auto_provisioning:
        of_mode = ProvisionedNodes(view)

    def evaluated(workspace: Workspace) -> Sizing | Refusal:
        try:
            return (
                forbidden(workspace, environment)
                or _reserved(workspace, environment)
                or unsupported(workspace, environment)
                or refused_volume(workspace, environment, view.models)
                or missing_token(workspace, environment, view.models)
                or _limited(workspace, _served(workspace, of_mode.evaluate(workspace), snapshot), environment.limits)
            )
        except Exception as error:
            # Tenants write Workspaces: what no check foresees refuses this one, and no other.
            return Refusal(Reason.INVALID_SPEC, f"it cannot be validated ({type(error).__name__}: {error})")

    return {workspace.key: evaluated(workspace) for workspace in snapshot.workspaces}


def _accept_without_replicas(view: ClusterView, found: Found) -> None:
    """Accepts Workspaces without replicas: nothing else matters. The plan applies fewer replicas of refused ones.

    One that an autoscaler scaled to 0 declares replicas, and keeps its workload.
    """
    for workspace, declared in zip(view.snapshot.workspaces, view.observed.workspaces, strict=True):
        refusal, none = found[workspace.key], not (workspace.replicas or declared.replicas)
        if isinstance(refusal, Refusal) and workspace.spec.inference is not None and none:
            refused = f"accepted only because it has no replicas: {refusal.message}"
            found[workspace.key] = Sizing(per_replica=0, target=0, message="no replicas", warnings=(refused,))


def _reserved(workspace: Workspace, environment: EnvironmentSpec) -> Refusal | None:
    prefixes = environment.reserved_label_prefixes
    for keys, reason, message in (
        (labels_of(workspace.template or {}), Reason.INVALID_SPEC, TEMPLATE_RESERVED),
        (workspace.spec.resource.label_selector.keys(), Reason.SELECTOR_RESERVED, SELECTOR_RESERVED),
    ):
        if found := reserved_keys(keys, prefixes):
            return Refusal(reason, message.format(keys=shortlist(found), prefixes=shortlist(prefixes)))
    return None


def _served(workspace: Workspace, found: Sizing | Refusal, snapshot: Snapshot) -> Sizing | Refusal:
    """Refuses a name that the workload cannot have, and a replica on several nodes if the cluster does not serve
    LeaderWorkerSet."""
    inference = workspace.spec.inference
    if isinstance(found, Refusal) or inference is None:
        return found
    kind = workload_kind(inference, found.per_replica)[1]
    problem = name_problem(workspace.name, kind=kind, replicas=workspace.replicas)
    if problem:
        return Refusal(Reason.INVALID_SPEC, problem)
    if found.per_replica == 1 or LEADER_WORKER_SET not in snapshot.missing_kinds:
        return found
    return Refusal(
        Reason.NOT_SUPPORTED,
        f"one replica takes {counted(found.per_replica, 'node')}, multi-node replicas need LeaderWorkerSet, and the "
        "cluster does not serve it: install the LeaderWorkerSet controller (leaderworkerset.x-k8s.io/v1), or use "
        "nodes that one replica fits",
    )


def _limited(workspace: Workspace, found: Sizing | Refusal, limits: Limits) -> Sizing | Refusal:
    if isinstance(found, Refusal):
        return found
    for name, limit in (
        ("resource.nodeCountLimit", workspace.spec.resource.node_count_limit),
        ("limits.workspaceNodes of the Environment", limits.workspace_nodes),
    ):
        if limit is not None and found.target > limit:
            each = f"{found.pods_per_node} fit a node" if found.pods_per_node else f"{found.per_replica} for each"
            lower = f"({counted(workspace.replicas, 'replica')}, {each}): lower inference.replicas"
            if workspace.spec.inference is None:
                lower = "(resource.count): lower it"
            return Refusal(
                Reason.LIMIT_EXCEEDED,
                f"{name} is {limit}, and {counted(found.target, 'node')} are needed {lower}, or raise the limit",
            )
    return found


def _enforce_limits(view: ClusterView, found: Found) -> None:
    """Refuses Workspaces that would exceed a limit. What runs counts first, then the oldest Workspaces."""
    snapshot = view.snapshot
    environment = snapshot.environment.spec
    namespaces = NamespaceBudget(view)
    bounded = namespaces.bounded
    limits = environment.limits
    nodes_bounded = limits.gpus is not None or limits.nodes is not None or any(p.limits for p in snapshot.node_pools)
    if not bounded and not (nodes_bounded and environment.auto_provisioning):
        return
    types, ownership = view.types, view.ownership
    demand = DemandUsage.of(view) if environment.auto_provisioning else None
    budget = Budget(environment, alive(ownership.claims), ownership.pools, types, demand)
    sized = {key: each.target for key, each in found.items() if isinstance(each, Sizing)}
    existing = existing_nodes(view, sized) if environment.auto_provisioning else {}
    running: dict[tuple[str, str], int] = {}
    for workspace in snapshot.workspaces if bounded else ():
        sizing = found[workspace.key]
        if isinstance(sizing, Sizing):
            nodes = running[workspace.key] = _running(view, workspace, sizing, existing.get(workspace.key, ()))
            namespaces.subtract(workspace.namespace, nodes * (sizing.gpus or 0))
        elif not environment.auto_provisioning and not ownership.requested_for(workspace):
            namespaces.subtract(workspace.namespace, view.usage.devices(workspace, environment.gpu_resource))
    for workspace in sorted(snapshot.workspaces, key=by_age):
        sizing = found[workspace.key]
        if isinstance(sizing, Refusal) or workspace.deleting:
            continue
        missing = sizing.target - ownership.requested_for(workspace)
        growth = max(missing - len(existing.get(workspace.key, ())), 0)
        # A node that is replaced uses the GPUs that its replacement waits for.
        replaced = sum(each.deleting and NODEPOOL not in each.labels for each in ownership.claims_of(workspace))
        more = max(missing - replaced - running.get(workspace.key, 0), 0) if bounded else 0
        if not growth and not more:
            continue
        if sizing.gpus is None and _bounds_gpus(environment, workspace.namespace):
            found[workspace.key] = Refusal(
                Reason.UNSUPPORTED_INSTANCE_TYPE,
                f"Unsupported instance type {workspace.spec.resource.instance_type!r} here: GPUs are limited, and the "
                "number of GPUs of its nodes is not known",
            )
            continue
        gpus = sizing.gpus or 0
        offered = types.find(workspace.spec.resource.instance_type or "") if environment.auto_provisioning else None
        pool = types.pool(offered, environment.access_of(workspace.namespace)) if offered is not None else None
        problem = budget.short(growth, gpus, pool) if environment.auto_provisioning else ""
        problem = problem or namespaces.short(workspace.namespace, more * gpus)
        if problem:
            advice = "lower inference.replicas, or raise the limit"
            found[workspace.key] = Refusal(Reason.LIMIT_EXCEEDED, f"{problem}: {advice}")
        else:
            budget.subtract(growth, gpus, pool)
            namespaces.subtract(workspace.namespace, more * gpus)


def _running(view: ClusterView, workspace: Workspace, sizing: Sizing, existing: tuple[str, ...]) -> int:
    """Number of nodes without a NodeClaim that the Workspace uses: those of its replicas, also of unplaced ones; with
    node auto-provisioning, the `existing` ones with its pods."""
    if view.observed.environment.spec.auto_provisioning:
        return len(view.usage.own(workspace).keys() & set(existing))
    workloads = (each for each in view.ownership.workloads_of(workspace) if not each.deleting)
    nodes = math.ceil(sum(each.replicas * each.size for each in workloads) / max(sizing.pods_per_node, 1))
    return max(nodes - view.ownership.requested_for(workspace), 0)


def _bounds_gpus(environment: EnvironmentSpec, namespace: str) -> bool:
    access = environment.access_of(namespace)
    return environment.limits.gpus is not None or (access is not None and access.gpus is not None)


def _verdict(workspace: Workspace, found: Sizing | Refusal, environment: EnvironmentSpec) -> Verdict:
    # Built from checked parts and not validated again, because there are many, with thousands of node names.
    if isinstance(found, Refusal):
        return Verdict.model_construct(
            workspace=workspace.ref,
            accepted=False,
            reason=found.reason,
            message=found.message,
            warnings=tuple(unread(workspace, environment)),
        )
    return Verdict.model_construct(
        workspace=workspace.ref,
        accepted=True,
        reason=Reason.ACCEPTED,
        message=found.message,
        per_replica_node_count=found.per_replica,
        target_node_count=found.target,
        node_names=found.node_names,
        allocated_nodes=found.allocated,
        startable_replicas=found.startable,
        gpus_per_node=found.devices,
        device_resource=found.resource or None,
        serving=found.serving,
        node_labels=found.node_labels,
        warnings=(
            *found.warnings,
            *shared_volumes(workspace, environment, found.target),
            *unread(workspace, environment),
        ),
    )
