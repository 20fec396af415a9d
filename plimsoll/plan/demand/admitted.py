"""Queues and gangs decide which of the waiting pods may ask for capacity."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from plimsoll.cluster.pods import PodShare, node_of
from plimsoll.cluster.queues import (
    DEFAULT_SCHEDULER,
    Amount,
    QueueGate,
    QueueLoad,
    is_preemptible,
    priority_of,
    seen_by_kai,
)
from plimsoll.labels import QUEUE
from plimsoll.model.api import EnvironmentSpec, barred_from_queue
from plimsoll.model.cluster import Pod
from plimsoll.model.dra import ClaimRequest
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes import (
    Asked,
    ClassMembers,
    DemandClass,
    Gang,
    Gate,
    NamespaceLimits,
    Refusal,
    RefusalReason,
    gangs,
    queue_counted,
    refused_by_gate,
    share_milli,
)
from plimsoll.plan.demand.climb import Standing
from plimsoll.plan.demand.joint import filled
from plimsoll.plan.demand.refusals import NO_WHOLE_GPUS, UNREADABLE
from plimsoll.plan.demand.rungs import ClassRungs, DemandProblem
from plimsoll.plan.demand.usable import Usable, kinds_of

_NO_ROUNDING: Final[Milli] = 0


def admit(problem: DemandProblem) -> Standing:
    """The gangs that can start and the pods that their namespaces and queues admit, beside pods with whole GPUs."""
    refused, kept_out = _barred(problem)
    standing = Standing(problem, _gangs(problem, kept_out), refused, frozenset(problem.grace_ends), kept_out=kept_out)
    standing = _admitted(standing.without_gangs(standing.lacking()))
    if standing.kept_out != kept_out:
        standing = replace(standing, gangs=_gangs(problem, standing.kept_out))
        standing = standing.without_gangs(standing.lacking())
    return replace(standing, problem=replace(problem, usable=_beside_whole_gpus(problem, standing.kept_out)))


def _barred(problem: DemandProblem) -> tuple[Mapping[str, Refusal], Mapping[str, Refusal]]:
    """The pods that get no capacity: those that share GPUs, and those with whole ones, by UID."""
    inputs = problem.inputs
    shares, whole = dict(problem.refused), dict[str, Refusal]()
    queues, waiting = bool(inputs.cluster.snapshot.queues), inputs.cluster.without_volume
    for rungs in problem.classes:
        members = (*rungs.members.shares, *rungs.members.whole) if waiting else ()
        found = {uid: waiting[uid] for uid in members if uid in waiting}
        found |= _barred_of(rungs.demand_class, rungs.members, inputs.environment, queues=queues)
        shares |= {uid: why for uid, why in found.items() if uid in rungs.members.shares}
        whole |= {uid: why for uid, why in found.items() if uid in rungs.members.whole}
    return shares, whole


def _gangs(problem: DemandProblem, kept_out: Mapping[str, Refusal]) -> tuple[Gang, ...]:
    waiting = {uid: pod for rungs in problem.classes for uid, pod in rungs.members.in_gangs.items()}
    if not waiting:
        return ()
    lost = [(pod, UNREADABLE) for rungs in problem.classes for pod, _ in rungs.members.unreadable.values()]
    lost += [(pod, each.why) for each in problem.inputs.left_out for pod in each.of_gangs]
    provided: list[Pod] = []
    for rungs in problem.classes:
        lacking = _lacking_whole_gpus(rungs, problem) if rungs.members.whole else frozenset()
        for uid, whole in rungs.members.whole.items():
            why = kept_out.get(uid) or (NO_WHOLE_GPUS if uid in lacking else None)
            if why is None:
                provided.append(whole.pod)
            else:
                lost.append((whole.pod, why))
    pods = problem.inputs.cluster.snapshot.pods
    running = (pod for pod in pods if node_of(pod) and not pod.finished and not pod.deleting)
    return gangs(waiting, chain(provided, running), problem.inputs.cluster.groups, lost)


def _lacking_whole_gpus(rungs: ClassRungs, problem: DemandProblem) -> frozenset[str]:
    """UIDs of the pods with whole GPUs for which no autoscaler provides a node."""
    usable = problem.usable
    kinds = usable.existing_kinds(rungs.demand_class, usable.kinds.keys())
    kinds |= kinds_of(chain(usable.offers.values(), usable.blocked.values()), rungs.demand_class)
    needs = rungs.known.of(rungs.demand_class, rungs.members, kinds, whole=True).needs
    able = usable.with_room(needs.values()) | {uid for uid, need in needs.items() if usable.is_blocked(need)}
    return frozenset(rungs.members.whole.keys() - able)


def _admitted(standing: Standing) -> Standing:
    """Pods are checked one by one only in queues and namespaces that do not admit all. Pods that can have no place
    count for nothing there, but those without a gate, which their scheduler may see differently."""
    problem = standing.problem
    gate, limits = problem.inputs.gate(), problem.inputs.namespaces
    whole = {uid: rungs for rungs in problem.classes for uid in rungs.members.whole if uid not in standing.kept_out}
    if limits is not None and limits.released:
        planned = problem.class_of.keys() & limits.released.keys()
        able = _that_can_have_places(standing, {uid for uid in planned if standing.may_have_place(uid)})
        limits = limits.beside({*able, *whole})
    queues = _tight_queues(problem, gate, whole) if gate is not None else set()
    namespaces = _tight_namespaces(standing, limits, whole) if limits is not None and limits.bounded else set()
    if not (queues or namespaces):
        return standing

    def tight(uid: str, rungs: ClassRungs) -> bool:
        return rungs.demand_class.queue in queues or rungs.pod(uid).pod.namespace in namespaces

    uids = {uid for rungs in problem.classes for uid in rungs.needs if tight(uid, rungs)}
    asking = {uid: problem.class_of[uid] for uid in _that_can_have_places(standing, uids)}
    asking |= {uid: rungs for uid, rungs in whole.items() if tight(uid, rungs)}
    pods = {uid: rungs.pod(uid) for uid, rungs in asking.items()}
    requests = {uid: _asked(problem, rungs, uid) for uid, rungs in asking.items()}
    refused = refused_by_gate(Gate(gate, limits), pods, requests, standing.gangs)
    return replace(
        standing.without({uid: why for uid, why in refused.items() if uid not in whole}),
        kept_out={**standing.kept_out, **{uid: why for uid, why in refused.items() if uid in whole}},
        counted=frozenset(asking.keys() - refused.keys()),
    )


def _tight_queues(problem: DemandProblem, gate: QueueGate, whole: Mapping[str, ClassRungs]) -> set[str]:
    loads = [
        (rungs.demand_class.queue, QueueLoad.of(_whole_amount(rungs.pod(uid)), preemptible=False))
        for uid, rungs in whole.items()
    ]
    return gate.tight([*loads, *((rungs.demand_class.queue, rungs.on_all.load) for rungs in problem.classes)])


def _tight_namespaces(standing: Standing, limits: NamespaceLimits, whole: Mapping[str, ClassRungs]) -> set[str]:
    """The namespaces that may not have all that their pods ask for."""
    left, sums = limits.copy(), dict[tuple[str, str], tuple[Milli, list[ClaimRequest]]]()
    asked = [(uid, rungs) for rungs in standing.problem.classes for uid in rungs.needs if standing.may_have_place(uid)]
    for uid, rungs in (*asked, *whole.items()):
        share = rungs.pod(uid)
        key = share.pod.namespace, share.share.resource
        milli, claims = sums.get(key) or (0, [])
        claims += _to_create(share.pod)
        sums[key] = milli + _milli(rungs, uid), claims
    tight = set()
    for (namespace, resource), (milli, claims) in sums.items():
        if left.short(namespace, milli, resource, claims):
            tight.add(namespace)
        left.subtract(namespace, milli, resource, claims)
    return tight


def _asked(problem: DemandProblem, rungs: ClassRungs, uid: str) -> Asked:
    share = rungs.pod(uid)
    pod, group = share.pod, problem.inputs.group_of(share.pod)
    amount, rounding = _whole_amount(share), _NO_ROUNDING
    if uid in rungs.needs:
        in_queue = queue_counted(share, rungs.needs[uid])
        amount, rounding = Amount.of(in_queue.milli, pod.host), in_queue.rounding
    preemptible, priority = is_preemptible(pod, group), priority_of(pod, group)
    of_namespace = pod.namespace, _milli(rungs, uid), share.share.resource, _to_create(pod)
    return Asked(rungs.demand_class.queue, amount, preemptible, priority, rounding, *of_namespace)


def _to_create(pod: Pod) -> Sequence[ClaimRequest]:
    return pod.claimed.to_create if pod.claimed is not None else ()


def _milli(rungs: ClassRungs, uid: str) -> Milli:
    """Thousandths of GPUs that a pod takes of what its namespace may have: where a share takes the least. Each device
    of a claim counts as a GPU, as where the pod runs."""
    need = rungs.needs.get(uid)
    if need is None:
        return rungs.members.whole[uid].share.devices * GPU_MILLI
    share = rungs.members.shares[uid]
    if not share.share.claims:
        return need.devices * share_milli(share, need, rungs.rungs[-1])
    # Several parts may be of one device. Of alternatives, it is not the first that is met in each case.
    asked = 0 if any(claim.has_alternatives for claim in share.share.claims) else share.share.devices
    return max(need.devices, asked) * GPU_MILLI


def _that_can_have_places(standing: Standing, uids: set[str]) -> list[str]:
    """UIDs of these pods and of their gangs, without those that would have no place even alone."""
    problem = standing.problem
    touched = [gang for gang in standing.gangs if not uids.isdisjoint(gang.pods)]
    uids |= {uid for gang in touched for uid in gang.pods}
    placeable = problem.usable.with_room(problem.need(uid) for uid in uids if standing.may_have_place(uid))
    lacking = [gang for gang in touched if gang.lacking(placeable.__contains__)]
    return sorted(placeable.difference(*(gang.pods for gang in lacking)))


def _whole_amount(whole: PodShare) -> Amount:
    """What a pod that requests whole GPUs would take of its queue."""
    gpus = whole.share.devices if seen_by_kai(whole.share.resource) else 0
    return Amount.of(gpus * GPU_MILLI, whole.pod.host)


def _beside_whole_gpus(problem: DemandProblem, kept_out: Container[str]) -> Usable:
    """What is left when the pods that request whole GPUs have those that are free. An autoscaler provides the nodes for
    the others."""
    usable = problem.usable
    if not any(rungs.members.whole for rungs in problem.classes):
        return usable
    existing = [node for node in usable.free if node.name not in usable.requested and GPU_MILLI in node.devices]
    names = {node.kind for node in existing}
    needs: list[PodNeed] = []
    for rungs in problem.classes:
        kinds = usable.existing_kinds(rungs.demand_class, names) if rungs.members.whole else {}
        if kinds:
            known = rungs.known.of(rungs.demand_class, rungs.members, kinds, whole=True).needs
            needs += (need for uid, need in known.items() if uid not in kept_out)
    return usable.left_by(filled(problem.packers.others.pack(needs, existing)), needs)


def _barred_of(
    demand_class: DemandClass, members: ClassMembers, spec: EnvironmentSpec, *, queues: bool
) -> Iterator[tuple[str, Refusal]]:
    """The pods of a class that get no capacity whatever is free, by UID. `queues` is whether the cluster has any."""
    of_class = _without_queue(demand_class, spec) if queues else None
    no_shares, unserved = _without_shares(demand_class.scheduler), demand_class.scheduler == DEFAULT_SCHEDULER
    known: dict[str, Refusal | None] = {}
    for uid, pod in (*members.shares.items(), *members.whole.items()):
        namespace = pod.pod.namespace
        if namespace not in known:
            known[namespace] = of_class or _by_access(namespace, demand_class.queue, spec)
        why = (no_shares if unserved and _is_share(pod) else None) or known[namespace]
        if why is not None:
            yield uid, why


def _is_share(pod: PodShare) -> bool:
    """Whether it asks for a part of a GPU by annotation, which its scheduler must know."""
    return not (pod.share.whole or pod.share.resource or pod.share.claims)


def _without_shares(scheduler: str) -> Refusal:
    return Refusal(
        RefusalReason.NOT_ALLOWED,
        f"its scheduler {scheduler} serves no shares of GPUs, and would place it without one",
        "set schedulerName to the scheduler that places shares here (KAI's, TensorFusion's or that of plimsoll bind)",
    )


def _without_queue(demand_class: DemandClass, spec: EnvironmentSpec) -> Refusal | None:
    if demand_class.queue or spec.demand.without_queue == "allow":
        return None
    problem, advice = "it has no queue, and this cluster declares Queues", f"name one in its label {QUEUE}"
    if spec.queue_scheduler != DEFAULT_SCHEDULER:
        problem = (
            f"it has no queue: its scheduler {demand_class.scheduler} knows none, and this cluster declares Queues"
        )
        advice = f"set schedulerName to {spec.queue_scheduler} and name a queue"
    return Refusal(
        RefusalReason.NOT_ALLOWED, problem, f"{advice}, or set demand.withoutQueue of the Environment to allow"
    )


def _by_access(namespace: str, queue: str, spec: EnvironmentSpec) -> Refusal | None:
    problem = barred_from_queue(spec, namespace, queue)
    return Refusal(RefusalReason.NOT_ALLOWED, problem, "change access of the Environment") if problem else None
