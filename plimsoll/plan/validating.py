"""Validation: each Workspace of a snapshot is accepted or refused, with the reason and what to change."""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import attrgetter

from plimsoll.estimating import Sizing
from plimsoll.labels import NODEPOOL
from plimsoll.model import InvalidObject, Reason, Refusal, Snapshot, Verdict
from plimsoll.model.api import (
    NODE_LABELS_REFUSED,
    PODS_RESERVED,
    SELECTOR_RESERVED,
    TEMPLATE_RESERVED,
    EnvironmentSpec,
    Limits,
    Provisioner,
    Workspace,
    refused_node_labels,
)
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.limits import (
    Budget,
    DemandUsage,
    NamespaceBudget,
    PodQuotas,
    forbidden,
    namespace_use,
    reserved_keys,
)
from plimsoll.plan.owned import alive, deletion_text
from plimsoll.plan.view import ClusterView, Holding
from plimsoll.plan.workspaces import (
    LEADER_WORKER_SET,
    AdmittedPod,
    ByoNodes,
    Judge,
    ProvisionedNodes,
    allocate,
    choose,
    declared_pods,
    ended_reservations,
    existing_nodes,
    known_placement,
    missing_token,
    name_conflicts,
    older_image,
    other_vendor,
    others,
    placements,
    queue_of_other_shard,
    refused_by_pod_security,
    refused_pods,
    refused_settings,
    refused_volume,
    shards_of_queues,
    shared_volumes,
    unplaced_volume,
    unread,
    unsupported,
    wanted_values,
    workload_kind,
)
from plimsoll.serving import name_problem
from plimsoll.text import counted, shortlist


def validate(observed: Snapshot | ClusterView, now: datetime | None = None) -> tuple[Verdict, ...]:
    """A verdict on every Workspace of the snapshot, sorted by namespace and name.

    Limited capacity goes first to what already runs, then to the oldest Workspaces. `now`, with a time zone, decides
    which reservations have ended; without it none has.
    """
    view = ClusterView.of(observed)
    ended = ended_reservations(view.observed.node_classes, now)
    known, workspaces, settings = view.known, view.snapshot.workspaces, view.settings
    found, judge = _evaluate(view, ended)
    named = (view.by_age, view.ownership, tuple(found.values()))
    found |= known.result("name conflicts", named, lambda: name_conflicts(view, found))
    found |= _refused_by_apiserver(view, found)
    found |= _beyond_limits(view, found, judge, ended)
    found |= _without_replicas(view, found)
    if not settings.auto_provisioning:
        sizings = {key: each for key, each in found.items() if isinstance(each, Sizing)}
        needed = (view.by_age, sizings, view.rolling, settings, view.index, view.usage)
        found |= known.result("allocation", needed, lambda: allocate(view, sizings))
    of_key = {workspace.key: workspace for workspace in workspaces}
    going = {each.key: deletion_text(each, view.created_for(each.ref)) for each in workspaces if each.deleting}
    verdicts = known.each(
        "verdict",
        (workspaces, found, settings, going),
        of_key,
        lambda key: (of_key[key], found[key], settings, going.get(key)),
        lambda key: _verdict(of_key[key], found[key], settings, going.get(key)),
    )
    invalid = view.observed.invalid_workspaces
    return known.result("verdicts", (verdicts, invalid), lambda: _sorted(verdicts.values(), invalid))


Found = dict[tuple[str, str], Sizing | Refusal]


def _sorted(verdicts: Iterable[Verdict], invalid_workspaces: tuple[InvalidObject, ...]) -> tuple[Verdict, ...]:
    refused = (
        Verdict(workspace=invalid.ref, accepted=False, reason=Reason.INVALID_SPEC, message=invalid.message)
        for invalid in invalid_workspaces
    )
    order = attrgetter("workspace.namespace", "workspace.name")
    return tuple(sorted((*verdicts, *refused), key=order))


def _evaluate(view: ClusterView, ended: frozenset[str]) -> tuple[Found, Judge]:
    """What each Workspace needs by itself, and the function that says so of one alternative of it."""
    settings, missing = view.settings, view.observed.missing_kinds
    of_mode: ProvisionedNodes | ByoNodes
    if settings.auto_provisioning:
        of_mode = ProvisionedNodes(view, ended)
    else:
        read = (view.index, view.models, settings)
        of_mode = view.known.result("matching nodes", read, lambda: ByoNodes(*read))

    holdings, namespaces, places = view.holdings, view.observed.namespaces, placements(view)
    labels = {each.name: each.labels for each in namespaces}
    shards = shards_of_queues(view)
    shared = (settings, view.models, missing, view.observed.node_classes, ended, shards)

    def judged(workspace: Workspace) -> Sizing | Refusal:
        placement = places[workspace.key]
        return (
            forbidden(workspace, settings)
            or _reserved(workspace, settings)
            or queue_of_other_shard(workspace, settings, shards)
            or unsupported(workspace, settings)
            or refused_volume(workspace, settings, view.models)
            or refused_settings(workspace, settings)
            or missing_token(workspace, settings, view.models)
            or older_image(workspace, settings, view.models)
            or unplaced_volume(placement, new_nodes=settings.auto_provisioning)
            or _secure(
                workspace,
                _limited(
                    workspace,
                    _served(workspace, of_mode.evaluate(workspace, known_placement(placement)), missing, settings),
                    settings.limits,
                ),
                labels.get(workspace.namespace, {}),
                view,
            )
        )

    def guarded(judge: Callable[[], Sizing | Refusal]) -> Sizing | Refusal:
        try:
            return judge()
        except Exception as error:
            # Tenants write Workspaces: what no check foresees stops this one, and no other.
            return Refusal(
                Reason.INTERNAL_ERROR,
                f"it cannot be validated, by a fault of Plimsoll ({type(error).__name__}: {error}): what it has stays "
                "as it is; please report this with its manifest",
            )

    def evaluated(holding: Holding) -> Sizing | Refusal:
        if not settings.auto_provisioning:
            return guarded(lambda: judged(holding.workspace))
        return guarded(lambda: choose(holding, judged, view.types, view.progress))

    found = dict(
        view.known.each(
            "sizing",
            (holdings, *shared, view.types, view.index, namespaces, places),
            holdings,
            lambda key: (
                *(holdings[key], *shared, of_mode.read_by(holdings[key].workspace, known_placement(places[key]))),
                *(labels.get(key[0]), places[key]),
            ),
            lambda key: evaluated(holdings[key]),
        )
    )
    return found, lambda workspace: guarded(lambda: judged(workspace))


def _refused_by_apiserver(view: ClusterView, found: Found) -> Found:
    """Refusals of Workspaces whose workload the apiserver does not accept: nodes would be bought for nothing."""
    answers = view.observed.refused_workloads
    asked = (each for each in view.by_age if each.uid in answers) if answers else ()
    return {each.key: answers[each.uid] for each in asked if isinstance(found[each.key], Sizing)}


def _without_replicas(view: ClusterView, found: Found) -> Found:
    """Sizings of refused Workspaces without replicas, which are accepted: the plan applies fewer replicas of refused
    ones.

    One that an autoscaler scaled to 0 declares replicas, and keeps its workload.
    """
    accepted: Found = {}
    for key, refusal in found.items():
        workspace, declared = view.holdings[key][:2]
        none = not (workspace.replicas or declared.replicas)
        if isinstance(refusal, Refusal) and workspace.spec.inference is not None and none:
            refused = f"accepted only because it has no replicas: {refusal.message}"
            accepted[key] = Sizing(per_replica=0, target=0, message="no replicas", warnings=(refused,))
    return accepted


def _reserved(workspace: Workspace, environment: EnvironmentSpec) -> Refusal | None:
    chosen = workspace.spec.resource.label_selector.keys()
    refused = refused_node_labels(chosen, environment.node_label_prefixes) if environment.auto_provisioning else []
    if refused and not reserved_keys(refused, environment.reserved_label_prefixes):
        return Refusal(Reason.SELECTOR_RESERVED, NODE_LABELS_REFUSED.format(keys=shortlist(refused)))
    prefixes = environment.reserved_label_prefixes
    for keys, reason, message in (
        (workspace.pod_labels, Reason.INVALID_SPEC, TEMPLATE_RESERVED if workspace.template else PODS_RESERVED),
        (workspace.spec.resource.label_selector.keys(), Reason.SELECTOR_RESERVED, SELECTOR_RESERVED),
    ):
        if found := reserved_keys(keys, prefixes):
            return Refusal(reason, message.format(keys=shortlist(found), prefixes=shortlist(prefixes)))
    return None


def _served(
    workspace: Workspace, found: Sizing | Refusal, missing_kinds: tuple[str, ...], settings: EnvironmentSpec
) -> Sizing | Refusal:
    """Refuses a name that the workload cannot have, and a replica on several nodes if the cluster does not serve
    LeaderWorkerSet."""
    inference = workspace.spec.inference
    if isinstance(found, Refusal) or inference is None:
        return found
    kind = workload_kind(inference, found.per_replica)[1]
    problem = name_problem(workspace.name, kind=kind, replicas=workspace.replicas)
    if problem:
        return Refusal(Reason.INVALID_SPEC, problem)
    problem = _no_surge(kind, found.per_replica, settings) if workspace.surge else ""
    if problem:
        return Refusal(
            Reason.NOT_SUPPORTED,
            f"inference.rollout.strategy is Surge, and {problem}; or set the strategy to Recreate",
        )
    if found.per_replica == 1 or LEADER_WORKER_SET not in missing_kinds:
        return found
    return Refusal(
        Reason.NOT_SUPPORTED,
        f"one replica takes {counted(found.per_replica, 'node')}, multi-node replicas need LeaderWorkerSet, and the "
        "cluster does not serve it: install the LeaderWorkerSet controller (leaderworkerset.x-k8s.io/v1), or use "
        "nodes that one replica fits",
    )


def _no_surge(kind: str, per_replica: int, settings: EnvironmentSpec) -> str:
    """Why a replica cannot serve until another one takes its place, and what to change; empty if it can."""
    if kind == LEADER_WORKER_SET:
        return (
            f"one replica is a LeaderWorkerSet's group of {counted(per_replica, 'node')}, for which no temporary group "
            "is provided: use nodes that one replica fits"
        )
    if kind != "Deployment":
        return f"inference.stableIdentity is set: a {kind} starts no second pod of the same name: remove it"
    if settings.effective_provisioner is Provisioner.STATIC_NODEPOOL:
        return (
            "Karpenter chooses which node of a static NodePool goes, also one whose pod serves: use the provisioner "
            "nodeclaim"
        )
    return ""


def _secure(
    workspace: Workspace, found: Sizing | Refusal, labels: Mapping[str, str], view: ClusterView
) -> Sizing | Refusal:
    """Refuses pods that the namespace, with these labels, would not let exist, and servers for other GPUs."""
    if isinstance(found, Refusal):
        return found
    if refused := other_vendor(workspace, found.resource):
        return refused
    declared = declared_pods(workspace, found.serving, view.models, view.observed.environment)
    return refused_pods(*declared) or refused_by_pod_security(workspace, labels, view.settings, *declared) or found


def _limited(workspace: Workspace, found: Sizing | Refusal, limits: Limits) -> Sizing | Refusal:
    if isinstance(found, Refusal):
        return found
    for name, limit in (
        ("resource.nodeCountLimit", workspace.spec.resource.node_count_limit),
        ("limits.workspaceNodes of the Environment", limits.workspace_nodes),
    ):
        more = workspace.temporary_nodes
        if found.pods_per_node:
            more = math.ceil((workspace.replicas + more) / found.pods_per_node) - found.target
        needed = found.target + more
        if limit is not None and needed > limit:
            each = f"{found.pods_per_node} fit a node" if found.pods_per_node else f"{found.per_replica} for each"
            temporary = f", {more} during a rollout" if more else ""
            lower = f"({counted(workspace.replicas, 'replica')}, {each}{temporary}): lower inference.replicas"
            if workspace.spec.inference is None:
                lower = "(resource.count): lower it"
            return Refusal(
                Reason.LIMIT_EXCEEDED,
                f"{name} is {limit}, and {counted(needed, 'node')} are needed {lower}, or raise the limit",
            )
    return found


def _beyond_limits(view: ClusterView, found: Found, judge: Judge, ended: frozenset[str]) -> Found:
    """Refusals of Workspaces that would exceed a limit, or what they need with another alternative that does not. What
    runs counts first, then the oldest Workspaces."""
    settings, pools = view.settings, view.observed.node_pools
    use, quotas = namespace_use(view), view.observed.resource_quotas
    bounded = quotas or any(entry.gpus is not None for entry in settings.access)
    limits = settings.limits
    nodes_bounded = limits.gpus is not None or limits.nodes is not None or any(pool.limits for pool in pools)
    if not bounded and not (nodes_bounded and settings.auto_provisioning):
        return {}
    demand = DemandUsage.of(view) if settings.auto_provisioning else None
    claims = view.observed.node_claims
    limited = (settings, use, quotas, demand, placements(view))
    read: tuple[object, ...] = (view.types, view.ownership, view.usage, claims, *limited)
    choosing = [key for key, each in found.items() if isinstance(each, Sizing) and each.alternative is not None]
    if choosing:
        seen = view.observed
        choices = tuple(view.holdings[key] for key in choosing)
        read += (choices, view.models, view.index, seen.node_classes, ended, seen.namespaces, seen.missing_kinds)
    if quotas:
        read += (view.models, view.observed.environment)
    arguments = (view.by_age, tuple(found.values()), *read)
    return view.known.result("beyond limits", arguments, lambda: _exceeding(view, found, demand, judge))


def _exceeding(view: ClusterView, found: Found, demand: DemandUsage | None, judge: Judge) -> Found:
    changed: Found = {}
    limits = _Limits(view, found, demand)
    for workspace in view.by_age:
        sizing = found[workspace.key]
        if isinstance(sizing, Refusal) or workspace.deleting:
            continue
        refused = limits.exceeded(workspace, sizing, len(limits.existing.get(workspace.key, ())))
        if refused is None:
            continue
        changed[workspace.key] = refused
        if sizing.alternative is None:
            continue
        possible = others(view.holdings[workspace.key], judge, view.types, sizing.alternative)
        other = next((each for each in possible if limits.exceeded(workspace, each, 0) is None), None)
        if other is not None:
            told = f"{sizing.alternative} is not possible: {refused.message}"
            changed[workspace.key] = other._replace(warnings=(*other.warnings, told))
    return changed


class _Limits:
    """What limits leave for Workspaces, one after the other."""

    def __init__(self, view: ClusterView, found: Found, demand: DemandUsage | None) -> None:
        self._view = view
        self._environment = environment = view.settings
        self._namespaces = NamespaceBudget(view).beside(())
        own = view.ownership
        self._budget = Budget(environment, alive(own.claims), own.pools, view.types, demand)
        sized = {key: (each.target, each.alternative) for key, each in found.items() if isinstance(each, Sizing)}
        self.existing = existing_nodes(view, sized) if environment.auto_provisioning else {}
        """Existing nodes that count for each Workspace."""
        self._running: dict[tuple[str, str], int] = {}
        self._places = placements(view)
        self._pods = PodQuotas(view)
        for workspace in view.by_age if self._namespaces.bounded else ():
            sizing = found[workspace.key]
            if isinstance(sizing, Sizing):
                nodes = _running(view, workspace, sizing, self.existing.get(workspace.key, ()))
                self._running[workspace.key] = nodes
                self._namespaces.count(workspace, nodes * (sizing.gpus or 0), sizing.resource)
        for workspace in view.by_age:
            sizing = found[workspace.key]
            if isinstance(sizing, Sizing) and (pod := self._pod(workspace, sizing)) is not None:
                self._pods.settle(workspace, pod, sizing.target, len(self.existing.get(workspace.key, ())))

    def _pod(self, workspace: Workspace, sizing: Sizing) -> AdmittedPod | None:
        """A pod of the Workspace, where ResourceQuotas of its namespace count pods."""
        if not self._pods.bounds(workspace.namespace):
            return None
        declared = workspace, self._view.models, self._view.observed.environment
        return AdmittedPod.of(*declared, serving=sizing.serving, devices=sizing.devices, resource=sizing.resource)

    def exceeded(self, workspace: Workspace, sizing: Sizing, there: int) -> Refusal | None:
        """Why it would exceed a limit; else what it needs is counted. `there` is the number of its existing nodes."""
        environment, namespaces, types = self._environment, self._namespaces, self._view.types
        ownership = self._view.ownership
        missing = sizing.target - ownership.requested_for(workspace)
        growth = max(missing - there, 0)
        # A node that is replaced uses the GPUs that its replacement waits for.
        replaced = sum(each.deleting and NODEPOOL not in each.labels for each in ownership.claims_of(workspace))
        running = self._running.get(workspace.key, 0)
        more = max(missing - replaced - running, 0) if namespaces.bounded else 0
        if not growth and not more:
            return None
        chosen = workspace.on(sizing.alternative)
        if sizing.gpus is None and (environment.limits.gpus is not None or namespaces.bounds(workspace.namespace)):
            return Refusal(
                Reason.UNSUPPORTED_INSTANCE_TYPE,
                f"Unsupported instance type {chosen.spec.resource.instance_type!r} here: GPUs are limited, and the "
                "number of GPUs of its nodes is not known",
            )
        gpus = sizing.gpus or 0
        offered = types.find(chosen.spec.resource.instance_type or "") if environment.auto_provisioning else None
        access = environment.access_of(workspace.namespace)
        wanted = wanted_values(chosen, environment, known_placement(self._places[workspace.key]))
        pool = types.pool(offered, access, wanted) if offered is not None else None
        of_pool = growth, gpus, pool, offered.resource if offered is not None else ""
        problem = self._budget.short(*of_pool) if environment.auto_provisioning else ""
        asked = workspace.namespace, more * gpus * GPU_MILLI, sizing.resource
        problem = problem or namespaces.short(*asked)
        if problem:
            return Refusal(Reason.LIMIT_EXCEEDED, f"{problem}: lower inference.replicas, or raise the limit")
        if (pod := self._pod(workspace, sizing)) is not None:
            pods = growth if environment.auto_provisioning else sizing.pods(workspace.replicas)
            if refused := self._pods.refusal(workspace, pod, pods):
                return refused
            self._pods.subtract(workspace, pod, pods)
        self._budget.subtract(*of_pool)
        namespaces.subtract(*asked)
        return None


def _running(view: ClusterView, workspace: Workspace, sizing: Sizing, existing: tuple[str, ...]) -> int:
    """Number of nodes without a NodeClaim that the Workspace uses: those of its replicas, also of unplaced ones; with
    node auto-provisioning, the `existing` ones with its pods."""
    if view.settings.auto_provisioning:
        return len(view.usage.own(workspace).keys() & set(existing))
    workloads = (each for each in view.ownership.workloads_of(workspace) if not each.deleting)
    nodes = math.ceil(sum(each.replicas * each.size for each in workloads) / max(sizing.pods_per_node, 1))
    return max(nodes - view.ownership.requested_for(workspace), 0)


def _verdict(workspace: Workspace, found: Sizing | Refusal, environment: EnvironmentSpec, going: str | None) -> Verdict:
    """The verdict by what was found; `going` is what keeps a Workspace that is being deleted."""
    # Built from checked parts and not validated again, because there are many, with thousands of node names.
    if isinstance(found, Refusal):
        return Verdict.model_construct(
            workspace=workspace.ref,
            accepted=False,
            reason=found.reason,
            message=going or found.message,
            deleting=workspace.deleting,
            warnings=tuple(unread(workspace, environment)),
        )
    return Verdict.model_construct(
        workspace=workspace.ref,
        accepted=True,
        reason=Reason.ACCEPTED,
        message=going or found.message,
        deleting=workspace.deleting,
        per_replica_node_count=found.per_replica,
        target_node_count=found.target,
        node_names=found.node_names,
        allocated_nodes=found.allocated,
        startable_replicas=found.startable,
        surge=found.surge,
        gpus_per_node=found.devices,
        device_resource=found.resource or None,
        serving=found.serving,
        node_labels=found.node_labels,
        alternative=found.alternative,
        move_back_to=found.move_back_to,
        warnings=(
            *found.warnings,
            *shared_volumes(workspace, environment, found.target + workspace.temporary_nodes),
            *unread(workspace, environment),
        ),
    )
