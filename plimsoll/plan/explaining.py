"""The story of one decision: everything that the verdict on a Workspace, and the plan for it, were made of."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from plimsoll.model.environment import Environment, EnvironmentSpec
from plimsoll.model.labels import as_label_value
from plimsoll.model.node import Node
from plimsoll.model.node_claim import NodeClaim
from plimsoll.model.owner import Owner
from plimsoll.model.plan import Creation, Deletion, Plan, Update
from plimsoll.model.snapshot import Snapshot
from plimsoll.model.verdict import Verdict
from plimsoll.model.workload import Workload
from plimsoll.model.workspace import Workspace, WorkspaceRef
from plimsoll.plan.budget import claim_gpus
from plimsoll.plan.catalog import Catalog
from plimsoll.plan.estimator import Estimate, Infeasible, estimate
from plimsoll.plan.gpu_labels import InvalidGpuLabel
from plimsoll.plan.gpu_offer import Offer, Offers, Unusable
from plimsoll.plan.holdings import Holdings
from plimsoll.plan.node_index import NodeIndex
from plimsoll.plan.offered_types import OfferedTypes
from plimsoll.plan.planning import plan
from plimsoll.plan.shortlist import shortlist
from plimsoll.plan.sizing import ReplicaNeed, replica_need
from plimsoll.plan.tolerations import Tolerances
from plimsoll.plan.usability import short_of_devices, why_unusable
from plimsoll.plan.validating import validate

Operation = TypeVar("Operation", Creation, Update, Deletion)


class NodeStory(NamedTuple):
    """One node that the selector matches, or that was made for the Workspace."""

    node: Node
    offer: Offer | Unusable | InvalidGpuLabel
    """What its GPUs are to the Workspace's pods."""
    problem: str
    """Why nothing may be placed on it now; empty where it may."""
    counts: bool
    """Whether the verdict, or the plan, counts on it."""


class Sum(NamedTuple):
    """The estimate of one replica."""

    on: str
    """The kind of node, for people."""
    outcome: Estimate | Infeasible


class Story(NamedTuple):
    environment: Environment
    ref: WorkspaceRef
    workspace: Workspace | None
    """None where it cannot be read: the verdict says why."""
    verdict: Verdict
    need: ReplicaNeed | None = None
    sum: Sum | None = None
    """None where nothing is known to estimate, or no GPUs to estimate on."""
    nodes: tuple[NodeStory, ...] = ()
    claims: tuple[NodeClaim, ...] = ()
    workloads: tuple[Workload, ...] = ()
    bounds: tuple[str, ...] = ()
    """Limits and access that apply, one sentence each."""
    creations: tuple[Creation, ...] = ()
    updates: tuple[Update, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    warnings: tuple[str, ...] = ()
    """What the plan says of this Workspace."""


def explain(snapshot: Snapshot, ref: WorkspaceRef, now: datetime) -> Story:
    """The story of the Workspace of that name, which the snapshot has to hold, by what `validate` and `plan` do."""
    verdicts = validate(snapshot)
    planned = plan(snapshot, verdicts, now)
    verdict = next(each for each in verdicts if _same(each.workspace, ref))
    workspace = next((each for each in snapshot.workspaces if each.key == (ref.namespace, ref.name)), None)
    story = Story(
        environment=snapshot.environment,
        ref=verdict.workspace,
        workspace=workspace,
        verdict=verdict,
        creations=_own(planned.creations, ref),
        updates=_own(planned.updates, ref),
        deletions=_own(planned.deletions, ref),
        warnings=_warnings(planned, verdict.workspace),
    )
    return story if workspace is None else _detailed(story, workspace, snapshot, Holdings(snapshot, verdicts))


def _detailed(story: Story, workspace: Workspace, snapshot: Snapshot, holdings: Holdings) -> Story:
    index = NodeIndex(snapshot.nodes)
    need = replica_need(workspace)
    nodes = _nodes(snapshot.environment.spec, index, workspace, story.verdict, holdings)
    return story._replace(
        need=need if isinstance(need, ReplicaNeed) else None,
        sum=_sum(snapshot, index, workspace, need, nodes) if isinstance(need, ReplicaNeed) else None,
        nodes=nodes,
        claims=tuple(sorted(holdings.ownership.claims_of(workspace), key=lambda claim: claim.name)),
        workloads=tuple(holdings.ownership.workloads_of(workspace)),
        bounds=tuple(_bounds(snapshot, workspace, holdings.ownership.claims)),
    )


def _nodes(
    environment: EnvironmentSpec, index: NodeIndex, workspace: Workspace, verdict: Verdict, holdings: Holdings
) -> tuple[NodeStory, ...]:
    resource = workspace.spec.resource
    tolerance = Tolerances(environment).of(workspace)
    offers = Offers()
    shown = (
        {} if resource.label_selector.empty else {node.name: node for node in index.matching(resource.label_selector)}
    )
    own = {claim.node_name for claim in holdings.ownership.claims_of(workspace) if claim.node_name}
    shown |= {name: index.by_name[name] for name in own if name in index.by_name}
    counted = own | set(verdict.node_names) | set(holdings.brought(workspace))
    stories = []
    for name in sorted(shown):
        node, offer = shown[name], offers.of(shown[name], resource.partition)
        problem = why_unusable(node, tolerance)
        if not problem and isinstance(offer, Offer):
            problem = short_of_devices(node, offer, offer.devices, environment.gpu_resource)
        elif not problem:
            problem = offer.problem if isinstance(offer, Unusable) else str(offer)
        stories.append(NodeStory(node, offer, problem, name in counted))
    return tuple(stories)


def _sum(
    snapshot: Snapshot, index: NodeIndex, workspace: Workspace, need: ReplicaNeed, nodes: Iterable[NodeStory]
) -> Sum | None:
    if need.need is None:
        return None
    if snapshot.environment.spec.auto_provisioning:
        name = workspace.spec.resource.instance_type
        offered = OfferedTypes(Catalog.builtin(), snapshot.node_pools, index).find(name) if name else None
        if offered is None or offered.gpus is None:
            return None
        return Sum(f"instance type {offered.name}", estimate(need.need, offered.gpus))
    for each in nodes:
        if isinstance(each.offer, Offer):
            return Sum(f"node {each.node.name} ({each.offer})", estimate(need.need, each.offer.gpus))
    return None


def _bounds(snapshot: Snapshot, workspace: Workspace, claims: Sequence[NodeClaim]) -> Iterable[str]:
    environment = snapshot.environment.spec
    catalog = Catalog.builtin()
    if environment.limits.nodes is not None:
        yield f"limits.nodes of the Environment is {environment.limits.nodes}, {len(claims)} in use"
    if environment.limits.gpus is not None:
        used = sum(claim_gpus(claim, environment.gpu_resource, catalog) for claim in claims)
        yield f"limits.gpus of the Environment is {environment.limits.gpus}, {used} in use"
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


def _warnings(planned: Plan, ref: WorkspaceRef) -> tuple[str, ...]:
    mark = f"Workspace {ref}: "
    return tuple(text.removeprefix(mark) for text in planned.warnings if text.startswith(mark))


def _same(one: Owner, other: WorkspaceRef) -> bool:
    """By name; deletions know it as their object's labels have it."""
    return isinstance(one, WorkspaceRef) and (as_label_value(one.namespace), as_label_value(one.name)) == (
        as_label_value(other.namespace),
        as_label_value(other.name),
    )
