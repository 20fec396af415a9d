"""Reports a climb as a DemandPlan: the places of each class's pods, and the nodes to request."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from plimsoll.labels import HOSTNAME
from plimsoll.model.meta import NodeRequirement
from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.nodes import HOST, FilledNode, PodNeed
from plimsoll.plan.classes import milli_of, share_milli
from plimsoll.plan.demand.climb import Climb
from plimsoll.plan.demand.demand import Demand, DemandPlan, PlannedNode
from plimsoll.plan.demand.hosts import ShapeOffer
from plimsoll.plan.demand.joint import Part, filled
from plimsoll.plan.demand.rungs import ClassRungs, DemandProblem
from plimsoll.plan.demand.usable import fits
from plimsoll.plan.owned import parse_time

_Place = str | int
"""Where a pod is planned: the name of an existing node or of a requested node, or the index of a new node."""


def report(climbed: Climb) -> DemandPlan:
    problem = climbed.standing.problem
    parts = (*climbed.parts, *climbed.parts_in_grace)
    needs = {need.name: need for part in parts for need in part.needs}
    nodes, requested = filled(parts), problem.usable.requested
    kept, awaiting = list[FilledNode](), set[str]()
    for part in parts:
        of_part, waiting = _requested_now(part, problem, lambda uid: _may_wait(problem, uid))
        kept += of_part
        awaiting |= waiting
    planned = _planned_nodes(kept, problem, needs)
    places: dict[str, _Place] = {uid: node.node for node in nodes if node.node is not None for uid in node.pods}
    places |= {uid: number for number, node in enumerate(planned) for uid in node.pods}
    needed = requested.keys() & places.values()
    needed |= {
        node.name
        for node in problem.usable.free
        if node.name in requested and any(node.kind in needs[uid].milli for uid in awaiting)
    }
    ends = [end for uid, end in problem.grace_ends.items() if uid not in climbed.standing.refused]
    report = _Report(climbed, places, awaiting, _weights(problem, nodes, planned, needs))
    return DemandPlan(
        demands=tuple(sorted((report.demand(rungs) for rungs in problem.classes), key=lambda demand: demand.name)),
        nodes=planned,
        places=tuple(node for node in nodes if node.node is not None and node.node not in requested),
        needed=frozenset(needed),
        least_gpus=sum(part.packing.least for part in parts),
        lower_bound=sum(part.packing.lower_bound for part in parts),
        next_deadline=min(ends).isoformat() if ends else "",
    )


def _may_wait(problem: DemandProblem, uid: str) -> bool:
    """Whether the pod may wait for requested nodes, if the lower bound says that they suffice: not if it is older than
    all requested nodes that it could use, and `waitSeconds` have passed since the oldest of these was requested. Rules
    about other pods are not in the bound."""
    if problem.rules is not None and problem.rules.concern(uid):
        return False
    need, requested, now = problem.need(uid), problem.usable.requested, problem.inputs.now
    able = [requested[node.name] for node in problem.usable.free if node.name in requested and fits(node, need)]
    if not able or now is None:
        return bool(able)
    since = parse_time(problem.class_of[uid].members.shares[uid].pod.creation_timestamp)
    times = [parse_time(node.since) for node in able]
    oldest = min((time for time in times if time is not None), default=None)
    if since is None or oldest is None or since > oldest:
        return True
    return now <= oldest + timedelta(seconds=problem.inputs.settings.wait_seconds)


def _weights(
    problem: DemandProblem, nodes: Iterable[FilledNode], planned: Iterable[PlannedNode], needs: Mapping[str, PodNeed]
) -> Mapping[str, float]:
    """The part of the GPUs of new and requested nodes that each pod accounts for, in thousandths of a GPU, by UID."""
    found: dict[str, float] = {}
    requested = problem.usable.requested
    in_parts = [(node.pods, node.gpus) for node in planned]
    in_parts += [(node.pods, requested[node.node].gpus) for node in nodes if node.node and node.node in requested]
    for pods, gpus in in_parts:
        sizes = {uid: milli_of(needs[uid]) for uid in pods}
        total = sum(sizes.values())
        found |= {uid: float(gpus * GPU_MILLI * size / total) for uid, size in sizes.items()}
    return found


@dataclass(frozen=True)
class _Report:
    climbed: Climb
    places: Mapping[str, _Place]
    awaiting: Collection[str]
    weights: Mapping[str, float]

    def demand(self, rungs: ClassRungs) -> Demand:
        standing, shares = self.climbed.standing, rungs.members.shares
        problem = standing.problem
        on_nodes, on_requested = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        on_new: dict[str, int] = {}
        pods = sorted(shares)
        for uid in pods:
            place = self.places.get(uid) if uid not in self.awaiting else None
            if isinstance(place, int):
                on_new[uid] = place
            elif place is not None:
                (on_requested if place in problem.usable.requested else on_nodes)[place].append(uid)
        waiting = tuple(uid for uid in pods if uid in self.awaiting)
        requested_pods = [uid for held in on_requested.values() for uid in held] + list(on_new)
        able = sorted((*pods, *rungs.members.unreadable))
        refused = {uid: standing.refused[uid] for uid in able if uid in standing.refused}
        grace = (uid for uid in pods if uid in standing.in_grace and uid not in self.places and uid not in refused)
        return Demand(
            demand_class=rungs.demand_class,
            pods=shares,
            on_nodes={name: tuple(held) for name, held in sorted(on_nodes.items())},
            on_requested={name: tuple(held) for name, held in sorted(on_requested.items())},
            on_new=on_new,
            awaiting=waiting,
            in_grace=tuple(grace),
            refused=refused,
            whole_gpu_pods=rungs.members.whole,
            refused_with_event={uid: pod for uid, (pod, _) in rungs.members.unreadable.items()},
            kept_out={uid: why for uid, why in standing.kept_out.items() if uid in rungs.members.whole},
            gpu_milli=round(sum(self.weights.get(uid, 0.0) for uid in requested_pods)),
            requested_shares=_sizes(rungs, (*requested_pods, *waiting)),
            warnings=(*problem.inputs.warnings, *rungs.on_all.warnings),
        )


def _sizes(rungs: ClassRungs, uids: Iterable[str]) -> Mapping[Milli, int]:
    """Number of shares of these pods by size, in thousandths of a GPU on the kind where a share is smallest."""
    found = Counter[Milli]()
    for uid in uids:
        need = rungs.needs[uid]
        found[share_milli(rungs.members.shares[uid], need, rungs.rungs[-1])] += need.devices
    return found


def _requested_now(
    part: Part, problem: DemandProblem, may_wait: Callable[[str], bool]
) -> tuple[Sequence[FilledNode], set[str]]:
    """The new nodes of a part to request, and the UIDs of the pods that wait for nodes that were requested before.

    While requested nodes are outstanding, new nodes are requested only up to the lower bound. The remaining pods may
    fit the requested nodes in another way, because the scheduler places pods, not the plan. `may_wait` says whether the
    pod with this UID may wait.
    """
    usable, new_nodes = problem.usable, part.packing.new_nodes
    if not any(node.name in usable.requested for node in part.free):
        return new_nodes, set()
    needs = {need.name: need for need in part.needs}
    kept, waiting, gpus = list[FilledNode](), set[str](), 0
    for node in sorted(new_nodes, key=lambda node: (-_used(node, needs), node.shape or "", node.pods)):
        if gpus >= part.packing.least and all(map(may_wait, node.pods)):
            waiting.update(node.pods)
        else:
            kept.append(node)
            gpus += usable.offers[node.shape or ""].shape.gpus
    return kept, waiting


def _planned_nodes(
    nodes: Iterable[FilledNode], problem: DemandProblem, needs: Mapping[str, PodNeed]
) -> tuple[PlannedNode, ...]:
    """The nodes to request, sorted by NodePool, instance type and pods."""
    found = [_planned(node, problem, [needs[uid] for uid in node.pods]) for node in nodes]
    return tuple(sorted(found, key=lambda node: (node.node_pool, node.instance_type, node.held)))


def _used(node: FilledNode, needs: Mapping[str, PodNeed]) -> float:
    """Used fraction of the node's devices."""
    used = sum(needs[uid].milli[node.kind] for held in node.devices for uid in held)
    return float(used) / GPU_MILLI / len(node.devices)


def _planned(node: FilledNode, problem: DemandProblem, pods: Sequence[PodNeed]) -> PlannedNode:
    offer = problem.usable.offers[node.shape or ""]
    classes = {problem.class_of[uid].demand_class for uid in node.pods}
    placements, shape = {demand_class.placement for demand_class in classes}, offer.shape
    requires = offer.requires(placements)
    domains = [NodeRequirement(key, "In", (value,)) for key, value in node.domains if key != HOSTNAME]
    others = {
        other.shape.instance_type
        for other in problem.usable.offers.values()
        if other.shape.node_pool == shape.node_pool
        and other.shape.instance_type != shape.instance_type
        and _holds(other, node, offer, pods)
        and other.requires(placements) == requires
        and all(other.may_have(each) for each in domains)
    }
    return PlannedNode(
        instance_type=shape.instance_type,
        node_pool=shape.node_pool,
        gpus=shape.gpus,
        kind=shape.device.product,
        held=_by_gpu(node.devices, shape.device.replicas),
        **{name: sum(getattr(need, name) for need in pods) for name in HOST},
        alternatives=tuple(sorted(others)),
        demands=tuple(sorted(demand_class.name for demand_class in classes)),
        gpu_memory_mib=offer.kind.gpus.memory_mib,
        requires=offer.with_domains(requires, domains),
        resource=shape.device.resource,
        scheduler=offer.kind.scheduler,
    )


def _holds(other: ShapeOffer, node: FilledNode, offer: ShapeOffer, pods: Sequence[PodNeed]) -> bool:
    """Whether another shape with as many GPUs has room for the pods that are planned on a node of the offer, on the
    same devices."""
    shape, needs = other.packed, {need.name: need for need in pods}
    reservations = 0 if offer.shape.device.resource else len(node.devices)
    return (
        other.shape.gpus == offer.shape.gpus
        and other.shape.device.resource == offer.shape.device.resource
        and other.shape.device.replicas == offer.shape.device.replicas
        and other.shape.device.claimable == offer.shape.device.claimable
        and all(getattr(shape, name) >= sum(getattr(need, name) for need in pods) for name in HOST)
        and shape.pods >= len(pods) + reservations
        and all(_fits_device([needs[uid] for uid in held], shape.kind) for held in node.devices)
    )


def _fits_device(needs: Sequence[PodNeed], kind: str) -> bool:
    return all(kind in need.milli for need in needs) and sum(need.milli[kind] for need in needs) <= GPU_MILLI


def _by_gpu(devices: Sequence[tuple[str, ...]], per_gpu: int) -> tuple[tuple[str, ...], ...]:
    """The pods on each GPU that is used, as if devices were taken from one GPU after the other."""
    gpus = [{name for held in devices[at : at + per_gpu] for name in held} for at in range(0, len(devices), per_gpu)]
    return tuple(sorted((tuple(sorted(held)) for held in gpus if held), key=lambda held: (-len(held), held)))
