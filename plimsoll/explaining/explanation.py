"""Explains one decision: everything that led to the verdict on a Workspace, and to its plan."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from plimsoll.cluster.catalog import OfferedType
from plimsoll.cluster.nodes import (
    PodDevices,
    Tolerances,
    Unusable,
    amounts_of,
    pod_devices,
    short_of_devices,
    short_of_host,
    why_unusable,
)
from plimsoll.cluster.pods import workspace_key
from plimsoll.cluster.profiles import InvalidGpuLabel
from plimsoll.estimating import Estimate, Estimates, Infeasible, ReplicaNeed, Settings, replica_need
from plimsoll.model import Change, Deletion, Owner, Plan, Refusal, Snapshot, Verdict, Withheld
from plimsoll.model.api import Environment, EnvironmentSpec, Workspace, WorkspaceRef
from plimsoll.model.cluster import Device, Node, Workload
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.limits import environment_budget
from plimsoll.plan.owned import Attempts, ClaimProgress, Wait, warnings_of
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import NodeUsers, WorkspaceNodes, host_need
from plimsoll.text import shortlist

Operation = TypeVar("Operation", Change, Deletion, Withheld)


class NodeExplanation(NamedTuple):
    """A node that the selector matches, or that was created for the Workspace."""

    node: Node
    offer: PodDevices | Unusable | InvalidGpuLabel
    """The node's GPUs as the Workspace's pods would use them."""
    problem: str
    """Why no pod of the Workspace can be placed on it now; empty if it can."""
    counts: bool
    """Whether the verdict or the plan counts the node."""
    users: tuple[str, ...] = ()
    """Users of the node and its GPUs: this Workspace, other Workspaces, pods of others."""


class ClaimExplanation(NamedTuple):
    """A NodeClaim of the Workspace."""

    claim: NodeClaim
    waits: Wait | None
    """The step that it waits for, with its deadline; None if it is in service."""


class ReplicaEstimate(NamedTuple):
    """The estimate for one replica."""

    on: str
    """The kind of node, for messages."""
    outcome: Estimate | Infeasible
    settings: Settings
    """The settings of the formula."""


class Explanation(NamedTuple):
    environment: Environment
    ref: WorkspaceRef
    workspace: Workspace | None
    """None where it cannot be read; the verdict has the reason."""
    verdict: Verdict
    need: ReplicaNeed | None = None
    estimate: ReplicaEstimate | None = None
    """None where there is no need to estimate, or no GPUs to estimate on."""
    nodes: tuple[NodeExplanation, ...] = ()
    offered: OfferedType | None = None
    """The instance type, with the source of its figures; None where none is set or known."""
    claims: tuple[ClaimExplanation, ...] = ()
    attempts: Attempts | None = None
    """The state of its NodeClaims; None for existing nodes (BYO), or if it is refused."""
    workloads: tuple[Workload, ...] = ()
    bounds: tuple[str, ...] = ()
    """Limits and access rules that apply, one sentence each."""
    creations: tuple[Change, ...] = ()
    updates: tuple[Change, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    warnings: tuple[str, ...] = ()
    """Warnings of the plan on this Workspace."""


def explain(observed: Snapshot | ClusterView, planned: Plan, ref: WorkspaceRef, now: datetime) -> Explanation:
    """Explains the Workspace, which the snapshot must contain, and its part of the Plan for that snapshot."""
    view = ClusterView.of(observed)
    snapshot, verdicts = view.observed, planned.verdicts
    verdict = next(each for each in verdicts if _same(each.workspace, ref))
    workspace = next((each for each in snapshot.workspaces if each.key == (ref.namespace, ref.name)), None)
    explanation = Explanation(
        environment=snapshot.environment,
        ref=verdict.workspace,
        workspace=workspace,
        verdict=verdict,
        creations=_own(planned.creations, ref),
        updates=_own(planned.updates, ref),
        deletions=_own(planned.deletions, ref),
        withheld=_own(planned.withheld, ref),
        warnings=warnings_of(planned, verdict.workspace),
    )
    return explanation if workspace is None else _detailed(explanation, workspace, view, verdicts, now)


def _detailed(
    explanation: Explanation, workspace: Workspace, view: ClusterView, verdicts: Sequence[Verdict], now: datetime
) -> Explanation:
    snapshot, types = view.observed, view.types
    workspace_nodes = WorkspaceNodes(view, verdicts)
    need = replica_need(workspace, view.models)
    users = NodeUsers(view, verdicts, workspace_nodes)
    nodes = tuple(
        each._replace(users=users.of(each.node.name, workspace))
        for each in _nodes(view, workspace, explanation.verdict, workspace_nodes)
    )
    name = workspace.on(explanation.verdict.alternative).spec.resource.instance_type
    offered = types.find(name) if name and workspace_nodes.auto_provisioning else None
    return explanation._replace(
        need=need if isinstance(need, ReplicaNeed) else None,
        estimate=_estimate(snapshot.environment.spec, offered, need, nodes) if isinstance(need, ReplicaNeed) else None,
        nodes=nodes,
        offered=offered,
        claims=_claims(view.progress, workspace, explanation.verdict, workspace_nodes, now),
        attempts=workspace_nodes.attempts(workspace, explanation.verdict, workspace.status.provisioning, now)
        if workspace_nodes.auto_provisioning and explanation.verdict.accepted
        else None,
        workloads=tuple(workspace_nodes.ownership.workloads_of(workspace)),
        bounds=tuple(_bounds(view, workspace)),
    )


def _claims(
    progress: ClaimProgress, workspace: Workspace, verdict: Verdict, workspace_nodes: WorkspaceNodes, now: datetime
) -> tuple[ClaimExplanation, ...]:
    recorded = {each.name: each for each in workspace.status.provisioning.pending}
    known = verdict.gpus_per_node is not None
    return tuple(
        ClaimExplanation(
            claim,
            None
            if claim.deleting
            else progress.wait(claim, gpus_known=known, recorded=recorded.get(claim.name), now=now),
        )
        for claim in sorted(workspace_nodes.ownership.claims_of(workspace), key=lambda claim: claim.name)
    )


def _nodes(
    view: ClusterView, workspace: Workspace, verdict: Verdict, workspace_nodes: WorkspaceNodes
) -> tuple[NodeExplanation, ...]:
    environment, index, resource = view.observed.environment.spec, view.index, workspace.spec.resource
    tolerance, needed = Tolerances(environment).of(workspace), host_need(workspace, environment, view.models)
    shown = {} if resource.selector.empty else {node.name: node for node in index.matching(resource.selector)}
    own = {claim.node_name for claim in workspace_nodes.ownership.claims_of(workspace) if claim.node_name}
    shown |= {name: index.by_name[name] for name in own if name in index.by_name}
    counted = own | set(verdict.node_names) | set(workspace_nodes.existing(workspace))
    found = []
    for name in sorted(shown):
        node, offer = shown[name], pod_devices(shown[name], resource.partition, claims=resource.claims)
        problem = why_unusable(node, tolerance)
        if not problem and isinstance(offer, PodDevices):
            problem = short_of_devices(node, offer, offer.devices, environment.gpu_resource)
            if not problem and not isinstance(needed, Refusal):
                problem = short_of_host(needed, amounts_of(node.allocatable))
        elif not problem:
            problem = offer.problem if isinstance(offer, Unusable) else str(offer)
        found.append(NodeExplanation(node, offer, problem, name in counted))
    return tuple(found)


def _estimate(
    environment: EnvironmentSpec, offered: OfferedType | None, need: ReplicaNeed, nodes: Iterable[NodeExplanation]
) -> ReplicaEstimate | None:
    if need.need is None:
        return None
    gpus: Device | None = None
    on = ""
    if environment.auto_provisioning:
        gpus = offered.gpus if offered is not None else None
        on = f"instance type {offered.name}" if offered is not None else ""
    else:
        offers = ((each.node.name, each.offer) for each in nodes if isinstance(each.offer, PodDevices))
        name, offer = next(offers, ("", None))
        if offer is not None:
            gpus, on = offer.gpus, f"node {name} ({offer})"
    if gpus is None:
        return None
    estimates = Estimates(environment.estimator)
    settings = estimates.settings.for_product(gpus.product)
    return ReplicaEstimate(on, estimates.of(need.need, gpus, need.context_length), settings)


def _bounds(view: ClusterView, workspace: Workspace) -> Iterable[str]:
    environment, budget = view.observed.environment.spec, environment_budget(view)
    for name, limit in (("nodes", environment.limits.nodes), ("gpus", environment.limits.gpus)):
        if limit is not None:
            yield f"limits.{name} of the Environment is {limit}, {budget.used(name)} in use{budget.still_counted}"
    if workspace.spec.resource.node_count_limit is not None:
        yield f"resource.nodeCountLimit is {workspace.spec.resource.node_count_limit}"
    try:
        access = environment.access_of(workspace.namespace)
    except KeyError:
        yield f"access of the Environment names neither namespace {workspace.namespace!r} nor '*'"
        return
    if access is None:
        return
    for what, allowed in (
        ("NodePools", access.node_pools),
        ("queues", access.queues),
        ("instance types", access.instance_types),
    ):
        if allowed is not None:
            yield f"namespace {workspace.namespace!r} may use the {what} {shortlist(allowed) or '(none)'} only"
    if access.gpus is not None:
        yield f"namespace {workspace.namespace!r} may have {access.gpus} GPUs"


def _own(operations: tuple[Operation, ...], ref: WorkspaceRef) -> tuple[Operation, ...]:
    return tuple(each for each in operations if _same(each.owner, ref))


def _same(one: Owner, other: WorkspaceRef) -> bool:
    """Compares by name; deletions have the names in their label form."""
    return isinstance(one, WorkspaceRef) and workspace_key(one) == workspace_key(other)
