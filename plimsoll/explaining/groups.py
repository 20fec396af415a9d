"""Why a demand, the pods of a queue, or those of a namespace have capacity, or none."""

from collections import Counter
from collections.abc import Collection, Iterator

from plimsoll.cluster.queues import NOTHING, Resource, queue_of, queue_usage
from plimsoll.errors import PlimsollError
from plimsoll.explaining.chain import Chain, Link, State, Step, StepReason
from plimsoll.explaining.planned_demand import PlannedDemand
from plimsoll.explaining.pods import NOTHING_REQUESTS, order_links, queue_link, remedies, withheld_links
from plimsoll.model import Verdict
from plimsoll.model.api import DemandPhase, DemandProvisioner
from plimsoll.plan.classes import RefusalReason, uid_of
from plimsoll.plan.demand import Demand
from plimsoll.text import counted, did_you_mean, figure, nearest, shortlist


def why_demand(planned: PlannedDemand, name: str) -> Chain:
    """Raises PlimsollError if there is no such demand."""
    demand = next((each for each in planned.plan.demands if each.name == name), None)
    if demand is None:
        _require(name, [*planned.statuses, *(each.name for each in planned.snapshot.gpu_demands)], "GPUDemand")
        text = (
            f"no pod waits for it ({planned.statuses[name].phase.value})" if name in planned.statuses else "it is over"
        )
        return Chain(f"GPUDemand {name}", (Link(Step.END, State.PASSED, text, DemandPhase.COMPLETED.value),))
    status = planned.statuses[name]
    links = [Link(Step.REQUEST, State.PASSED, counted(status.pod_count, "pod"))]
    links.append(queue_link(planned.snapshot, demand.demand_class.queue, demand.queue_refusal))
    links += _places(planned, [demand])
    if status.objects and not planned.withheld_of(demand):
        links += order_links(planned, status)
    return Chain(f"GPUDemand {name}", tuple(links), remedies(planned, _uids([demand])))


def why_queue(planned: PlannedDemand, name: str) -> Chain:
    """Raises PlimsollError if there is no such Queue and no pod of it."""
    snapshot = planned.snapshot
    demands = [each for each in planned.plan.demands if each.demand_class.queue == name]
    if not demands:
        _require(name, [each.name for each in snapshot.queues], "Queue")
    usage = queue_usage(snapshot)
    links = [queue_link(snapshot, name, next(filter(None, (each.queue_refusal for each in demands)), None))]
    if name in usage.tree:
        used, waiting = usage.allocated.get(name, NOTHING), usage.waiting.get(name, NOTHING)
        fair = usage.fair[name][Resource.GPU] if name in usage.fair else None
        share = "" if fair is None else f", its fair share now is {figure(float(fair) / 1000)}"
        text = f"{figure(float(used.gpu) / 1000)} GPUs allocated, {figure(float(waiting.gpu) / 1000)} requested{share}"
        links.append(Link(Step.REQUEST, State.PASSED, text))
        broken = usage.tree.broken_at(name)
        if broken:
            links.append(Link(Step.QUEUE, State.BLOCKED, f"it reaches no root, {broken}", RefusalReason.QUEUE.value))
        elif not usage.tree.is_leaf(name):
            children = shortlist(usage.tree.children[name])
            links.append(Link(Step.QUEUE, State.PASSED, f"pods belong to its child queues: {children}"))
    links += _places(planned, demands)
    return Chain(f"Queue {name}", tuple(links), remedies(planned, _uids(demands)))


def why_namespace(planned: PlannedDemand, name: str, verdicts: Collection[Verdict]) -> Chain:
    """`verdicts` are those on all Workspaces. Raises PlimsollError if nothing of the namespace is known."""
    snapshot = planned.snapshot
    own = [each for each in verdicts if each.workspace.namespace == name]
    pods = [each for each in snapshot.pods if each.namespace == name]
    if not own and not pods:
        known = {each.namespace for each in snapshot.pods} | {each.workspace.namespace for each in verdicts}
        _require(name, [*(each.name for each in snapshot.namespaces), *known], "namespace")
    links = [Link(Step.REQUEST, State.PASSED, f"{counted(len(pods), 'pod')} with GPUs, "
                  f"{counted(len(own), 'Workspace')}"), _access(planned, name)]  # fmt: skip
    for verdict in own:
        if not verdict.accepted:
            text = f"Workspace {verdict.workspace}: {verdict.message}"
            links.append(Link(Step.PLACE, State.BLOCKED, text, verdict.reason.value))
    uids = {uid_of(pod) for pod in pods}
    demands = [
        each for each in planned.plan.demands if not uids.isdisjoint((*each.pods, *each.refused, *each.kept_out))
    ]
    links += _places(planned, demands, uids)
    queues = sorted({queue_of(pod, snapshot.environment.spec) for pod in pods} - {""})
    if queues:
        links.append(Link(Step.QUEUE, State.PASSED, f"queues of its pods: {shortlist(queues)}"))
    return Chain(f"namespace {name}", tuple(links), remedies(planned, uids))


def _access(planned: PlannedDemand, name: str) -> Link:
    spec = planned.snapshot.environment.spec
    try:
        entry = spec.access_of(name)
    except KeyError:
        text = f"access of the Environment names neither namespace {name!r} nor '*': add an entry"
        return Link(Step.QUEUE, State.BLOCKED, text, RefusalReason.NOT_ALLOWED.value)
    gpus = "" if entry is None or entry.gpus is None else f", at most {entry.gpus} GPUs"
    return Link(Step.QUEUE, State.PASSED, ("no access is declared" if entry is None else "access allows it") + gpus)


def _places(planned: PlannedDemand, demands: Collection[Demand], only: Collection[str] | None = None) -> Iterator[Link]:
    """How many pods have which place, and why others have none."""
    refused = Counter(
        (str(why), why.reason.value)
        for demand in demands
        for uid, why in (*demand.refused.items(), *demand.kept_out.items())
        if only is None or uid in only
    )
    for (text, reason), number in refused.most_common():
        yield Link(Step.PLACE, State.BLOCKED, f"{counted(number, 'pod')}: {text}", reason)
    requested = [uid for each in demands for uids in each.on_requested.values() for uid in uids]
    whole = [uid for each in demands for uid in each.whole_gpu_pods if uid not in each.kept_out]
    for words, uids in (
        ("free GPUs fit, and their scheduler is awaited", [uid for each in demands for uid in _on_nodes(each)]),
        ("requested nodes are awaited", [*requested, *(uid for each in demands for uid in each.awaiting)]),
        ("new nodes are needed", [uid for each in demands for uid in each.on_new]),
        ("in the grace period", [uid for each in demands for uid in each.in_grace]),
        ("whole GPUs, whose nodes the autoscaler provides", whole),
    ):
        number = len(uids) if only is None else sum(uid in only for uid in uids)
        if number:
            yield Link(Step.PLACE, State.WAITING, f"{counted(number, 'pod')}: {words}", StepReason.SEVERAL_WAIT)
    on_new = [each for each in demands if any(only is None or uid in only for uid in each.on_new)]
    if on_new and planned.snapshot.environment.spec.demand.provisioner is DemandProvisioner.NONE:
        yield NOTHING_REQUESTS
    # One request may be for several demands.
    yield from withheld_links(dict.fromkeys(each for demand in on_new for each in planned.withheld_of(demand)))
    if not demands:
        yield Link(Step.PLACE, State.PASSED, "no pod waits for capacity")


def _on_nodes(demand: Demand) -> Iterator[str]:
    for uids in demand.on_nodes.values():
        yield from uids


def _uids(demands: Collection[Demand]) -> set[str]:
    return {uid for each in demands for uid in (*each.pods, *each.refused, *each.kept_out)}


def _require(name: str, names: Collection[str], what: str) -> None:
    if name not in names:
        near = did_you_mean(nearest(name, sorted(set(names))))
        raise PlimsollError(f"{what} {name!r} not found", near or f"known: {shortlist(sorted(set(names))) or '(none)'}")
