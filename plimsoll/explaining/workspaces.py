"""Why a Workspace runs, or does not."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from plimsoll.cost import Prices, planned_cost
from plimsoll.explaining.chain import Chain, Link, Remedy, State, Step, StepReason
from plimsoll.explaining.change import Change, Touches, at, with_changed
from plimsoll.explaining.cluster_changes import limit_changes, policy_changes, setting, type_changes
from plimsoll.explaining.explanation import Explanation
from plimsoll.explaining.nodes import claim_link, ending, nodes_text
from plimsoll.explaining.planned_demand import PlannedDemand
from plimsoll.explaining.pods import withheld_links
from plimsoll.explaining.proving import Outcome, Prover
from plimsoll.labels import GPU_PRODUCT
from plimsoll.model import Change as Creation
from plimsoll.model import Plan, Reason, Snapshot, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.meta import LabelSelector
from plimsoll.plan import plan, validate
from plimsoll.plan.owned import foreign_finalizers, format_time, idle_nodes
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import server_allowance
from plimsoll.policy import withhold
from plimsoll.text import counted, figure, nearest, shortlist

_PROBLEMS: Final = 3
"""Problems of pods that are shown of one Workspace."""
_TYPES: Final = 8
"""Instance types that are tried for one Workspace."""


def why_workspace(planned: PlannedDemand, explanation: Explanation, whole: Plan) -> Chain:
    """The chain of a Workspace that was explained by the plan `whole`."""
    links = tuple(_links(planned, explanation))
    subject = f"Workspace {explanation.ref}"
    if explanation.workspace is None or explanation.verdict.deleting:
        return Chain(subject, links)
    return Chain(subject, links, _remedies(planned, explanation.workspace, whole))


def _links(planned: PlannedDemand, found: Explanation) -> Iterator[Link]:
    verdict, workspace = found.verdict, found.workspace
    if workspace is not None:
        resource = workspace.spec.resource
        what = shortlist(resource.named_types) or str(resource.label_selector) or "any nodes with GPUs"
        yield Link(Step.REQUEST, State.PASSED, f"{counted(workspace.replicas, 'replica')} on {what}")
        if workspace.spec.queue:
            yield Link(Step.QUEUE, State.PASSED, f"queue {workspace.spec.queue}")
    if workspace is not None and verdict.deleting:
        state = State.BLOCKED if foreign_finalizers(workspace) else State.WAITING
        yield Link(Step.END, state, verdict.message, StepReason.DELETING)
        return
    if not verdict.accepted:
        yield Link(Step.PLACE, State.BLOCKED, verdict.message, verdict.reason.value)
        return
    yield Link(Step.PLACE, State.PASSED, verdict.message)
    yield from _orders(found)
    used = [each for each in found.nodes if each.counts]
    for each in used:
        reason = StepReason.NODE_UNUSABLE if each.problem else ""
        state = State.BLOCKED if each.problem else State.PASSED
        yield Link(Step.NODE, state, f"{each.node.name}: {each.problem or 'usable'}", reason)
    for workload in found.workloads:
        ready, wanted = workload.ready_replicas or 0, workload.replicas or 0
        state = State.PASSED if ready >= wanted else State.WAITING
        text = f"{workload.kind} {workload.name}: {ready} of {wanted} ready"
        if state is State.WAITING and workspace is not None:
            text = "; ".join((text, *planned.view.holdings[workspace.key].problems[:_PROBLEMS]))
        yield Link(Step.NODE, state, text, "" if state is State.PASSED else StepReason.WORKLOAD_NOT_READY)
    if workspace is not None and planned.snapshot.environment.spec.auto_provisioning:
        yield from _startup(workspace, found, planned)
    if used:
        yield _cost(planned, [each.node.instance_type for each in used])
        yield Link(Step.END, State.PASSED, f"{used[0].node.name}: {ending(planned, used[0].node)}")


def _allowed(workspace: Workspace, found: Explanation, planned: PlannedDemand) -> str:
    """After what time a node, and the server on it, are given up; nothing bounds how long images take."""
    environment = found.environment.spec
    claims, server = environment.node_claims, server_allowance(workspace, environment, planned.view.models)
    # Both are counted from the creation of the NodeClaim; the last one for Initialized, and again for its GPUs.
    node = max(claims.launch_deadline_seconds, claims.registration_deadline_seconds) + 2 * claims.gpu_deadline_seconds
    of_server = f", weights and load after {server} s (startupSeconds)" if server is not None else ""
    return f"; given up are the node after {node} s (nodeClaims, deadlines){of_server}"


def _startup(workspace: Workspace, found: Explanation, planned: PlannedDemand) -> Iterator[Link]:
    """How long the first token takes after a request that finds no replica: as it was measured last, else what it may
    take."""
    last, record = workspace.status.startup, workspace.status.provisioning
    staying = [each.claim for each in found.claims if not each.claim.deleting]
    idle = (
        idle_nodes(workspace, found.environment.spec, record, planned.now)
        if not workspace.replicas and staying
        else None
    )
    if last.node:
        steps = f"node {last.node_seconds} s, image {last.image_seconds} s, weights and load {last.server_seconds} s"
        stays = f"; on a node that stays, {last.server_seconds} s" if idle is not None else ""
        measured = f"on {last.instance_type or last.node}, measured at {last.measured}"
        text = f"from a request to the first token {last.seconds} s ({steps}; {measured}){stays}"
        yield Link(Step.NODE, State.PASSED, text)
    elif workspace.spec.inference is not None:
        text = f"from a request to the first token: not measured yet{_allowed(workspace, found, planned)}"
        yield Link(Step.NODE, State.PASSED, text)
    if idle is not None:
        stay = f"{counted(len(staying), 'node')} for replicas to come"
        yield Link(Step.END, State.PASSED, f"idleSeconds keeps {stay} until {format_time(idle.until)}")


def _orders(found: Explanation) -> Iterator[Link]:
    """What was requested, and what is answered."""
    yield from withheld_links(found.withheld)
    for warning in found.warnings:
        # Others say what else is known, such as nodes that are cordoned: nothing waits for them.
        limited = warning.startswith(Reason.LIMIT_EXCEEDED.value)
        yield (
            Link(Step.ORDER, State.WAITING, warning, StepReason.LIMITED)
            if limited
            else Link(Step.ORDER, State.PASSED, warning)
        )
    created = [each.key.name for each in found.creations if each.key.kind in ("NodeClaim", "NodePool")]
    if created:
        yield Link(
            Step.ORDER, State.WAITING, f"the next round requests {nodes_text(created)}", StepReason.NOT_REQUESTED_YET
        )
    record = found.attempts.record if found.attempts is not None else None
    if record is not None and record.failures:
        text = f"{counted(record.failures, 'attempt')} failed: {record.message}"
        yield Link(Step.ANSWER, State.WAITING, f"{record.reason}: {text}", StepReason.ATTEMPT_FAILED)
    for claim in found.claims:
        yield claim_link(claim.claim)


def _cost(planned: PlannedDemand, types: list[str]) -> Link:
    prices = [planned.prices.of_type(name) for name in types]
    known = [price for price in prices if price is not None]
    without = f", {counted(len(prices) - len(known), 'node')} without a price" if len(known) < len(prices) else ""
    return Link(Step.COST, State.PASSED, f"{figure(sum(known))} an hour{without} ({planned.prices.basis(types)})")


def _remedies(planned: PlannedDemand, workspace: Workspace, before: Plan) -> tuple[Remedy, ...]:
    snapshot, now = planned.snapshot, planned.now
    lacking = _lacking(before, snapshot, workspace)
    if not lacking:
        return ()
    prices = Prices.of(snapshot)
    accepted = {each.workspace for each in before.verdicts if each.accepted}
    cost = planned_cost(before, snapshot, prices)

    def outcome(changed: Snapshot) -> Outcome:
        after = _planned(changed, now)
        own = next(each for each in changed.workspaces if each.key == workspace.key)
        added, more = planned_cost(after, changed, prices), _new_nodes(after.creations) - _new_nodes(before.creations)
        lost = accepted - {each.workspace for each in after.verdicts if each.accepted}
        unpriced = added.unpriced > cost.unpriced
        return Outcome(
            helped=int(_lacking(after, changed, own) < lacking),
            displaced=len(lost),
            nodes=more,
            price=None if unpriced else added.change - cost.change,
        )

    changes = [
        *policy_changes(snapshot, [each for each in before.withheld if each.owner == workspace.ref], now),
        *_changes(planned.view, workspace, _verdict(before, workspace)),
    ]
    return Prover(snapshot, outcome).remedies(changes)


def _planned(snapshot: Snapshot, now: datetime) -> Plan:
    view = ClusterView(snapshot)
    return withhold(plan(view, validate(view, now), now), snapshot, now)


def _verdict(planned: Plan, workspace: Workspace) -> Verdict:
    return next(each for each in planned.verdicts if each.workspace == workspace.ref)


def _new_nodes(creations: tuple[Creation, ...]) -> int:
    return sum(each.key.kind == "NodeClaim" for each in creations)


def _lacking(planned: Plan, snapshot: Snapshot, workspace: Workspace) -> float:
    """Replicas, or nodes of it, that the plan leaves out: all where it is refused, or a policy withholds objects."""
    verdict = _verdict(planned, workspace)
    if not verdict.accepted:
        return float("inf")
    withheld = sum(each.owner == workspace.ref for each in planned.withheld)
    if withheld:
        return workspace.replicas + withheld
    if verdict.startable_replicas is not None:
        return max(0, workspace.replicas - verdict.startable_replicas)
    if not snapshot.environment.spec.auto_provisioning or verdict.target_node_count is None:
        return 0
    own = sum(
        each.owner[:2] == (workspace.namespace, workspace.name) and not each.deleting for each in snapshot.node_claims
    )
    created = [each for each in planned.creations if each.owner == workspace.ref]
    if (
        any(each.key.kind == "NodePool" for each in (*created, *planned.updates))
        or snapshot.environment.spec.provisioner
    ):
        return 0
    return max(0, verdict.target_node_count - own - _new_nodes(tuple(created)))


def _changes(view: ClusterView, workspace: Workspace, verdict: Verdict) -> Iterator[Change]:
    snapshot = view.observed
    yield from _of_resource(view, workspace)
    if workspace.replicas > 1:
        yield _field(workspace, "inference.replicas", "inference.replicas", range(workspace.replicas - 1, 0, -1))
    inference = workspace.spec.inference
    if inference is not None and inference.context_length is not None:
        shorter = range(inference.context_length // 2, 0, -1024)
        yield _field(workspace, "inference.context_length", "inference.contextLength", shorter)
    if inference is not None and inference.per_replica_node_count is not None:
        yield _field(workspace, "inference.per_replica_node_count", "inference.perReplicaNodeCount", [None])
    if verdict.reason in (Reason.NOT_ALLOWED, Reason.LIMIT_EXCEEDED, Reason.ACCEPTED):
        yield from limit_changes(snapshot, workspace.namespace)
        most = snapshot.environment.spec.limits.workspace_nodes
        if most is not None:
            more = range(most + 1, most + 4097)
            yield setting(snapshot, "limits.workspace_nodes", more, "limits.workspaceNodes", most)
        if workspace.spec.resource.node_count_limit is not None:
            least = workspace.spec.resource.node_count_limit
            more = range(least + 1, min(10_000, least + 4096) + 1)
            yield _field(workspace, "resource.node_count_limit", "resource.nodeCountLimit", more)
    if verdict.reason is Reason.UNSUPPORTED_INSTANCE_TYPE:
        yield from type_changes(snapshot)
    if verdict.reason is Reason.INSTANCE_TYPE_FORBIDDEN:
        spec = snapshot.environment.spec
        yield setting(snapshot, "byo_instance_type", ["narrow"], "byoInstanceType", spec.byo_instance_type)


def _of_resource(view: ClusterView, workspace: Workspace) -> Iterator[Change]:
    snapshot, resource = view.observed, workspace.spec.resource
    offered = sorted({name for pool in snapshot.node_pools for name in pool.instance_types})
    wanted = resource.instance_type
    if snapshot.environment.spec.auto_provisioning and resource.instance_types:
        listed = resource.instance_types
        more = [(*listed, name) for name in offered if name not in listed][:_TYPES]
        for types in more:
            yield _field(workspace, "resource.instance_types", "resource.instanceTypes", [types])
    elif snapshot.environment.spec.auto_provisioning:
        names = [*(view.types.near(wanted) if wanted else ()), *offered]
        for name in list(dict.fromkeys(names))[:_TYPES]:
            if name != wanted:
                yield _field(workspace, "resource.instance_type", "resource.instanceType", [name])
    elif wanted is not None:
        yield _field(workspace, "resource.instance_type", "resource.instanceType", [None])
    if resource.partition is not None:
        yield _field(workspace, "resource.partition", "resource.partition", [None])
    yield from _of_selector(snapshot, workspace)


def _of_selector(snapshot: Snapshot, workspace: Workspace) -> Iterator[Change]:
    selector = workspace.spec.resource.label_selector
    labels = dict(selector.match_labels)
    for key, value in sorted(labels.items()):
        found = {node.labels[key] for node in snapshot.nodes if key in node.labels} - {value}
        for other in list(dict.fromkeys([*nearest(value, sorted(found)), *sorted(found)]))[:_TYPES]:
            yield _selector(workspace, key, value, {**labels, key: other}, other)
        yield _selector(workspace, key, value, {name: each for name, each in labels.items() if name != key}, "")
    if GPU_PRODUCT not in labels:
        for product in sorted({node.labels[GPU_PRODUCT] for node in snapshot.nodes if GPU_PRODUCT in node.labels}):
            yield _selector(workspace, GPU_PRODUCT, "", {**labels, GPU_PRODUCT: product}, product)
    for each in selector.match_expressions:
        rest = tuple(other for other in selector.match_expressions if other is not each)
        new = selector.model_copy(update={"match_expressions": rest})
        yield _choosing(workspace, f"resource.labelSelector[{each.key}]", str(each), new, "")


def _selector(workspace: Workspace, key: str, before: str, labels: dict[str, str], shown: str) -> Change:
    new: LabelSelector = workspace.spec.resource.label_selector.model_copy(update={"match_labels": labels})
    return _choosing(workspace, f"resource.labelSelector[{key}]", before, new, shown)


def _choosing(workspace: Workspace, field: str, before: str, new: LabelSelector, shown: str) -> Change:
    put = partial(_with_field, workspace, "resource.label_selector")
    return Change(f"Workspace {workspace.ref}", f"spec.{field}", before, [new], put, Touches.WORKLOAD, lambda _: shown)


def _field(workspace: Workspace, path: str, field: str, values: Any) -> Change:
    before: Any = workspace.spec
    for name in path.split("."):
        before = getattr(before, name)
    put = partial(_with_field, workspace, path)
    text = "" if before is None else _shown(before)
    return Change(
        f"Workspace {workspace.ref}", f"spec.{field}", text, values, put, Touches.WORKLOAD,
        lambda value: "" if value is None else _shown(value),
    )  # fmt: skip


def _shown(value: Any) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def _with_field(workspace: Workspace, path: str, snapshot: Snapshot, value: Any) -> Snapshot:
    return with_changed(snapshot, "workspaces", workspace, lambda each: at(each, f"spec.{path}", value))
