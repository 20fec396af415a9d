"""Why a pod has its GPU, or has none."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from plimsoll.cluster.pods import gated, is_ours, may_be_accelerator, read_request, waits
from plimsoll.cluster.pools import why_left
from plimsoll.cluster.queues import QueueTree, Resource
from plimsoll.errors import PlimsollError
from plimsoll.explaining.chain import Chain, Link, Remedy, State, Step, StepReason
from plimsoll.explaining.change import Change
from plimsoll.explaining.nodes import node_links
from plimsoll.explaining.planned_demand import PlannedDemand, plan_demand
from plimsoll.explaining.pod_changes import pod_changes
from plimsoll.explaining.proving import MOST_PLANS, Outcome, Prover
from plimsoll.labels import WORKSPACE, WORKSPACE_NAMESPACE
from plimsoll.model import Snapshot, Withheld
from plimsoll.model.api import ClaimStage, DemandPhase, DemandProvisioner, GPUDemandStatus
from plimsoll.model.cluster import Pod
from plimsoll.plan.classes import Refusal, RefusalReason, uid_of
from plimsoll.plan.demand import Demand, DemandPlanner, PlannedNode
from plimsoll.text import counted, did_you_mean, figure, nearest, shortlist

_REFUSED: Final = frozenset({DemandPhase.REFUSED, DemandPhase.FAILED, DemandPhase.EXPIRED})
_ASKED: Final = 4
"""Pods, of different classes and reasons, whose changes are tried where a question is about many."""

NOTHING_REQUESTS: Final = Link(
    Step.ORDER,
    State.BLOCKED,
    "nothing requests nodes: spec.demand.provisioner of the Environment is none",
    StepReason.NO_PROVISIONER,
)


def why_pod(planned: PlannedDemand, namespace: str, name: str) -> Chain:
    """Raises PlimsollError if no such pod requests GPUs."""
    pod = _find(planned.snapshot, namespace, name)
    subject = f"Pod {namespace}/{name}"
    demand = planned.by_pod.get(uid_of(pod))
    if demand is None:
        return Chain(subject, tuple(_links_without_demand(planned, pod)))
    links = tuple(_links(planned, pod, demand))
    return Chain(subject, links, remedies(planned, {uid_of(pod)}))


def _find(snapshot: Snapshot, namespace: str, name: str) -> Pod:
    found = next((each for each in snapshot.pods if each.key == (namespace, name)), None)
    if found is not None:
        return found
    names = [f"{each.namespace}/{each.name}" for each in snapshot.pods]
    near = did_you_mean(nearest(f"{namespace}/{name}", names))
    raise PlimsollError(
        f"no pod {namespace}/{name} that requests GPUs is known",
        near or f"pods that request GPUs: {shortlist(sorted(names)) or '(none)'}",
    )


def _links_without_demand(planned: PlannedDemand, pod: Pod) -> Iterator[Link]:
    """Of a pod that runs, has ended, or does not wait for capacity."""
    settings = planned.snapshot.environment.spec
    request = read_request(pod, settings.gpu_resource)
    if request.refusal is not None:
        text = f"{request.refusal.problem}: {request.refusal.hint}"
        reason = RefusalReason.CLAIM if request.refusal.of_claims else RefusalReason.UNREADABLE
        yield Link(Step.REQUEST, State.BLOCKED, text, reason.value)
        return
    others = shortlist(f"{count} {name}" for name, count in request.devices if may_be_accelerator(name))
    text = f"{others}: accelerators for which no capacity is planned" if others else "no GPUs"
    if request.claimed_gpus:
        claims = shortlist(sorted(pod.generated_claims.get(each.name, each.claim) for each in pod.resource_claims))
        text = f"{counted(request.claimed_gpus, 'GPU')} by claim, whole or parts: {claims}"
    yield Link(Step.REQUEST, State.PASSED, str(request.share or request.held or text))
    if pod.finished:
        yield Link(Step.END, State.PASSED, f"it has ended ({pod.phase})")
        return
    if WORKSPACE in pod.labels:
        owner = f"{pod.labels.get(WORKSPACE_NAMESPACE, pod.namespace)}/{pod.labels[WORKSPACE]}"
        yield Link(Step.PLACE, State.PASSED, f"it belongs to Workspace {owner}: plimsoll why workspace {owner}")
    node = planned.view.index.by_name.get(pod.node_name)
    if node is not None:
        yield from node_links(planned, node)
        return
    if pod.node_name:
        yield Link(Step.NODE, State.BLOCKED, f"its node {pod.node_name} does not exist", StepReason.NODE_GONE)
        return
    if not is_ours(pod, settings.demand) and not waits(pod, settings.demand):
        yield _not_waiting(pod, settings.demand.schedulers)


def _not_waiting(pod: Pod, schedulers: Collection[str]) -> Link:
    if pod.deleting:
        return Link(Step.PLACE, State.PASSED, "it is being deleted")
    if pod.scheduler_name not in schedulers:
        text = f"its scheduler {pod.scheduler_name} is not in spec.demand.schedulers of the Environment: add it"
        return Link(Step.PLACE, State.BLOCKED, text, RefusalReason.NOT_ALLOWED.value)
    if pod.scheduling_gates and not gated(pod):
        return Link(
            Step.PLACE, State.WAITING, f"scheduling gates hold it: {shortlist(pod.scheduling_gates)}", StepReason.GATED
        )
    if pod.nominated_node_name:
        text = f"its scheduler preempts others for it on node {pod.nominated_node_name}"
        return Link(Step.PLACE, State.WAITING, text, StepReason.PREEMPTING)
    text = "no scheduler has said yet that no node fits it (its condition PodScheduled with the reason Unschedulable)"
    return Link(Step.PLACE, State.WAITING, text, StepReason.NOT_YET_UNSCHEDULABLE)


def _links(planned: PlannedDemand, pod: Pod, demand: Demand) -> Iterator[Link]:
    uid = uid_of(pod)
    why = demand.refused.get(uid) or demand.kept_out.get(uid)
    share = demand.pods.get(uid) or demand.whole_gpu_pods.get(uid)
    if share is None and why is not None:
        yield Link(Step.REQUEST, State.BLOCKED, str(why), why.reason.value)
        return
    yield Link(
        Step.REQUEST, State.PASSED, f"{share.share if share is not None else 'GPUs'}, in GPUDemand {demand.name}"
    )
    yield queue_link(planned.snapshot, demand.demand_class.queue, why)
    if why is not None and why.reason is RefusalReason.QUEUE:
        return
    if why is not None:
        yield Link(Step.PLACE, State.BLOCKED, str(why), why.reason.value)
        return
    if uid in demand.whole_gpu_pods:
        text = "it requests whole GPUs: the autoscaler provides a node by itself, or its scheduler finds one"
        if share is not None and share.share.resource:
            text += f". Plimsoll requests none: {why_left(planned.snapshot, share.share.resource)}"
        yield Link(Step.PLACE, State.WAITING, text, StepReason.WHOLE_GPUS)
        return
    yield from _placed(planned, uid, demand)


def _placed(planned: PlannedDemand, uid: str, demand: Demand) -> Iterator[Link]:
    existing = next((name for name, uids in demand.on_nodes.items() if uid in uids), None)
    node = planned.view.index.by_name.get(existing or "")
    if existing is not None:
        text = f"it fits free GPUs of {existing}, and its scheduler has not placed it yet"
        yield Link(Step.PLACE, State.WAITING, text, DemandPhase.NODE_READY.value)
        yield from node_links(planned, node) if node is not None else ()
        return
    if uid in demand.in_grace:
        seconds = planned.snapshot.environment.spec.demand.grace_seconds
        text = f"no node is requested in the first {seconds} s (spec.demand.graceSeconds of the Environment)"
        yield Link(Step.PLACE, State.WAITING, text, StepReason.GRACE)
        return
    status = planned.statuses[demand.name]
    if uid not in demand.on_new:
        yield Link(Step.PLACE, State.PASSED, "nodes that are requested suffice for it")
        yield from order_links(planned, status)
        return
    new = planned.plan.nodes[demand.on_new[uid]]
    of_pool = f" of NodePool {new.node_pool}" if new.node_pool else ""
    text = (
        f"it needs a new {new.instance_type}{of_pool} with {new.gpus} x {new.kind}, for {counted(len(new.pods), 'pod')}"
    )
    yield Link(Step.PLACE, State.PASSED, text)
    if planned.snapshot.environment.spec.demand.provisioner is DemandProvisioner.NONE:
        yield NOTHING_REQUESTS
    elif withheld := withheld_links(planned.withheld_of(demand)):
        yield from withheld
    else:
        yield from order_links(planned, status)
    yield _price(planned, new)
    yield Link(
        Step.END, State.PASSED, "the request is withdrawn once no pod needs it; Karpenter removes the empty node"
    )


def queue_link(snapshot: Snapshot, queue: str, why: Refusal | None) -> Link:
    """Whether the queue admits it; `why` is why there is no capacity."""
    if why is not None and why.reason is RefusalReason.QUEUE:
        return Link(Step.QUEUE, State.BLOCKED, str(why), why.reason.value)
    tree = QueueTree.of(snapshot)
    if queue not in tree:
        return Link(
            Step.QUEUE, State.PASSED, "no queue" if not queue else f"queue {queue}, in a cluster without Queues"
        )
    parts = []
    for name in tree.path_to_root(queue):
        amounts = tree.amounts(name, Resource.GPU)
        quota, limit = ("unlimited" if each is None else figure(each / 1000) for each in (amounts.quota, amounts.limit))
        parts.append(f"{name} (quota {quota}, limit {limit} GPUs)")
    return Link(Step.QUEUE, State.PASSED, "queue " + " under ".join(parts))


def withheld_links(withheld: Iterable[Withheld]) -> list[Link]:
    """The objects that are not created, because a policy withholds them."""
    return [Link(Step.ORDER, State.BLOCKED, str(each), StepReason.WITHHELD) for each in withheld]


def order_links(planned: PlannedDemand, status: GPUDemandStatus) -> Iterator[Link]:
    """The request of a demand, and what is answered."""
    state = State.BLOCKED if status.phase in _REFUSED else State.WAITING
    created = {each.key.of_demand for each in planned.creations}
    names: dict[bool, list[str]] = {}
    for each in status.objects:
        names.setdefault(each in created, []).append(f"{each.kind} {each.namespace}/{each.name}".replace(" /", " "))
    parts = [f"the next round of the controller requests {shortlist(names[True]) if True in names else 'it'}"]
    if False in names:
        ends = f", given up at {status.deadline}" if status.deadline else ""
        parts = [f"{shortlist(names[False])}{ends}", *(parts if True in names else ())]
    text = "; ".join(parts)
    if status.failures:
        text += f"; failed {counted(status.failures, 'time')} in a row"
    yield Link(Step.ORDER, State.WAITING if state is State.WAITING else State.PASSED, text, status.phase.value)
    for claim in status.node_claims:
        failed = claim.stage is ClaimStage.FAILED
        said = f": {claim.message}" if claim.message else ""
        answer = State.BLOCKED if failed else State.PASSED if claim.stage is ClaimStage.READY else State.WAITING
        yield Link(Step.ANSWER, answer, f"NodeClaim {claim.name} is {claim.stage.value}{said}", claim.stage.value)
    if state is State.BLOCKED:
        text = "; ".join(status.reasons) or f"the demand is {status.phase.value}"
        yield Link(Step.ANSWER, State.BLOCKED, text, status.phase.value)


def _price(planned: PlannedDemand, node: PlannedNode) -> Link:
    price, basis = planned.prices.of_type(node.instance_type), planned.prices.basis([node.instance_type])
    if price is None:
        return Link(Step.COST, State.PASSED, f"no price of {node.instance_type} is known: set catalog.prices")
    currency = f" {basis.currency}" if basis.currency else ""
    return Link(Step.COST, State.PASSED, f"{figure(price)}{currency} an hour for the node ({basis})")


def remedies(planned: PlannedDemand, asked: Collection[str]) -> tuple[Remedy, ...]:
    """Changes by which pods of these UIDs get capacity that have none; of many pods, those of a few classes and reasons
    are looked at."""
    wanting = planned.unserved & frozenset(asked)
    changes = [change for uids in _alike(planned, wanting)[:_ASKED] for change in pod_changes(planned, uids[0])]
    return _proven(planned, wanting, changes, MOST_PLANS)


def proven_remedies(planned: PlannedDemand, asked: Collection[str], plans: int) -> dict[str, Remedy]:
    """The first change for each of these pods that has none of its capacity, by UID, as its tenant may be told: it
    names no queues and namespaces of others. At most so many plans are made, and of many pods a few classes and reasons
    are looked at."""
    found: dict[str, Remedy] = {}
    several = _alike(planned, planned.unserved & frozenset(asked))[:_ASKED]
    for uids in several:
        changes = [change for change in pod_changes(planned, uids[0]) if not change.names_others]
        proven = _proven(planned, frozenset(uids), changes, plans // len(several))
        found |= dict.fromkeys(uids, proven[0]) if proven else {}
    return found


def _alike(planned: PlannedDemand, wanting: Collection[str]) -> list[list[str]]:
    """The pods by demand, namespace and reason."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for uid in sorted(wanting):
        demand = planned.by_pod[uid]
        why = demand.refused.get(uid) or demand.kept_out.get(uid)
        key = (demand.name, demand.pods[uid].pod.namespace if uid in demand.pods else "", str(why and why.reason))
        found.setdefault(key, []).append(uid)
    return list(found.values())


def _proven(
    planned: PlannedDemand, wanting: Collection[str], changes: Iterable[Change], plans: int
) -> tuple[Remedy, ...]:
    planner = DemandPlanner()

    def outcome(snapshot: Snapshot) -> Outcome:
        after = plan_demand(snapshot, planned.now, planner, planned)
        waiting = after.by_pod.keys()
        helped = sum(uid in waiting and uid not in after.unserved for uid in wanting)
        displaced = len(after.unserved - planned.unserved)
        price, before = after.price, planned.price
        return Outcome(
            helped,
            displaced,
            len(after.requested) - len(planned.requested),
            sum(node.gpus for node in after.requested) - sum(node.gpus for node in planned.requested),
            None if price is None or before is None else price - before,
        )

    once = {(change.obj, change.field, str(change.values)): change for change in changes}
    return Prover(planned.snapshot, outcome, plans).remedies(once.values())
