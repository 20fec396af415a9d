"""Reads what waiting pods need and which nodes they could use, in the order in which they climb to them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, cached_property

from plimsoll.cluster.pods import PodShare
from plimsoll.cluster.queues import placed_in_shard
from plimsoll.model.cluster import Pod
from plimsoll.model.meta import HostRequest, Placement, condition_of
from plimsoll.packing.nodes import PodNeed, Rules
from plimsoll.plan.classes import ClassMembers, ClassNeeds, DemandClass, Kinds, KnownNeeds, Refusal, gang_levels
from plimsoll.plan.demand.hosts import FREE
from plimsoll.plan.demand.inputs import DemandInputs
from plimsoll.plan.demand.joint import JointPacking
from plimsoll.plan.demand.neighbours import rules_of, with_too_many_rules
from plimsoll.plan.demand.refusals import (
    BLOCKED,
    kept_apart,
    no_allowed_node,
    no_level,
    no_node,
    no_shard,
    not_planned,
    other_shard,
    selector_ends,
)
from plimsoll.plan.demand.single_pod_claims import single_pod_claims, waiting_for_claims
from plimsoll.plan.demand.usable import Usable, kinds_of, rank
from plimsoll.plan.owned import parse_time


@dataclass(frozen=True)
class Packers:
    """What remembers results from one plan to the next; that does not affect them."""

    needs: KnownNeeds
    packing: JointPacking
    """For the pods that share GPUs."""
    others: JointPacking
    """For the pods that get what these leave, or what these get the rest of."""


@dataclass(frozen=True)
class ClassRungs:
    """What the pods of one class need, and the nodes that they could use."""

    demand_class: DemandClass
    members: ClassMembers
    rungs: tuple[Kinds, ...]
    """Kinds of node. The first rung has the existing and requested nodes, and each further one adds the new nodes that
    pods prefer next."""
    blocked: Kinds
    """Kinds of new nodes that are skipped for now."""
    known: KnownNeeds = field(repr=False)

    @cached_property
    def on_all(self) -> ClassNeeds:
        """The needs of the pods for the kinds of all rungs."""
        kinds = self.rungs[-1]
        return self.known.of(self.demand_class, self.members, kinds) if kinds else ClassNeeds()

    @cached_property
    def on_blocked(self) -> ClassNeeds:
        return self.known.of(self.demand_class, self.members, self.blocked) if self.blocked else ClassNeeds()

    @property
    def needs(self) -> Mapping[str, PodNeed]:
        """By UID, for the kinds of all rungs."""
        return self.on_all.needs

    @property
    def last(self) -> int:
        return len(self.rungs) - 1

    @property
    def start(self) -> int:
        """The first rung with new nodes, if there is one."""
        return min(1, self.last)

    def needs_on(self, rung: int) -> Mapping[str, PodNeed]:
        """By UID; without the pods that no kind on this rung or below could serve."""
        if rung == self.last:
            return self.needs
        return self.known.of(self.demand_class, self.members, self.rungs[rung]).needs

    def rung_from(self, uid: str, rung: int) -> int:
        """The first rung from this one on whose nodes could serve the pod."""
        return next((each for each in range(rung, self.last) if uid in self.needs_on(each)), self.last)

    def pod(self, uid: str) -> PodShare:
        return self.members.shares.get(uid) or self.members.whole[uid]


@dataclass(frozen=True)
class DemandProblem:
    """The classes of waiting pods, and the capacity that they may use."""

    inputs: DemandInputs
    usable: Usable
    classes: tuple[ClassRungs, ...]
    class_of: Mapping[str, ClassRungs]
    """By UID, of the pods that share GPUs."""
    refused: Mapping[str, Refusal]
    """Pods that nothing could serve, by UID."""
    grace_ends: Mapping[str, datetime]
    """When the grace period of a pod ends, by UID; only of those that are in theirs."""
    packers: Packers = field(compare=False, repr=False)
    rules: Rules | None = None
    """Rules of the pods about other pods; None if none concern them."""
    holders: frozenset[str] = frozenset()
    """UIDs of the pods whose claims others wait for."""

    def need(self, uid: str) -> PodNeed:
        """For the kinds of all rungs."""
        return self.class_of[uid].needs[uid]

    def order(self, uid: str) -> tuple[int, str, str]:
        """Sort key: highest priority first, then oldest."""
        pod = self.class_of[uid].members.shares[uid].pod
        return -pod.priority, pod.creation_timestamp, uid

    def is_known(self, uid: str) -> bool:
        """Whether it is known what the pod needs."""
        return uid in self.class_of[uid].needs

    def why_no_node(self, uid: str) -> Refusal:
        """Why no node has room for the pod, whatever limits allow."""
        rungs = self.class_of[uid]
        placement, pod = rungs.demand_class.placement, rungs.members.shares[uid].pod
        ruled = self.rules is not None and self.rules.concern(uid) and self.is_known(uid)
        if ruled and self.usable.with_room((self.need(uid),)):
            levels = gang_levels(pod, self.inputs.group_of(pod)).values()
            return kept_apart(pod.rules, (each.required for each in levels))
        if self.fits_blocked(uid):
            return BLOCKED
        if self.inputs.environment.access:
            of_pod = self._without_access(pod)
            if placement != of_pod and not self._offered(placement) and self._offered(of_pod):
                return no_allowed_node(pod.namespace, self.inputs.environment)
        return self._no_node(placement, pod.host)

    def _without_access(self, pod: Pod) -> Placement:
        inputs = self.inputs
        return placed_in_shard(pod, inputs.group_of(pod), inputs.environment, sharded=inputs.cluster.sharded)

    def _offered(self, placement: Placement) -> bool:
        """Whether pods of this placement can use a node that the cluster has or may have."""
        nodes = (node for node in self.inputs.cluster.snapshot.nodes if node.usable)
        free = any(placement.admits(node.labels, node.taints, node.name) for node in nodes)
        return free or any(shape.serves(placement) for shape in self.inputs.shapes)

    def fits_blocked(self, uid: str) -> bool:
        """Whether an instance type that is skipped for now could serve the pod."""
        need = self.class_of[uid].on_blocked.needs.get(uid)
        return need is not None and self.usable.is_blocked(need)

    @cached_property
    def _no_node(self) -> Callable[[Placement, HostRequest], Refusal]:
        inputs = self.inputs  # the problem itself would be part of a cycle, and stay in memory
        return cache(lambda placement, host: no_node(placement, host, inputs))


def read(inputs: DemandInputs, usable: Usable, packers: Packers) -> DemandProblem:
    """The classes with their rungs, and the pods that nothing could serve."""
    classes = tuple(_rungs(*members, usable, packers) for members in inputs.classes.items())
    class_of = {uid: rungs for rungs in classes for uid in rungs.members.shares}
    many = with_too_many_rules(inputs)
    grace, rules = dict(_grace_ends(inputs)), rules_of(inputs, usable, many)
    problem = DemandProblem(inputs, usable, classes, class_of, {}, grace, packers, rules)
    refused = {**dict(_unserved(problem)), **inputs.without_place, **many}
    later, holders = _in_turn(problem, refused)
    return replace(problem, refused={**later, **refused}, holders=holders)


def _in_turn(problem: DemandProblem, refused: Mapping[str, Refusal]) -> tuple[Mapping[str, Refusal], frozenset[str]]:
    """As `waiting_for_claims`, of the pods that are not refused."""
    claims = single_pod_claims(problem.inputs)
    if not claims:
        return {}, frozenset()
    able = sorted(problem.class_of.keys() - refused.keys(), key=problem.order)
    return waiting_for_claims(
        claims, problem.inputs, {uid: problem.class_of[uid].members.shares[uid].pod for uid in able}
    )


def _rungs(demand_class: DemandClass, members: ClassMembers, usable: Usable, packers: Packers) -> ClassRungs:
    offers = [offer for offer in usable.offers.values() if offer.kind.serves(demand_class)]
    rungs: list[Kinds] = [{name: kind.gpus for name, kind in usable.kinds.items() if kind.serves(demand_class)}]
    ranks = {offer.packed.name: rank(offer, demand_class) for offer in offers}
    for level in sorted(set(ranks.values())):
        more = kinds_of((offer for offer in offers if ranks[offer.packed.name] == level), demand_class)
        rungs.append({**rungs[-1], **more})
    blocked = kinds_of(usable.blocked.values(), demand_class)
    return ClassRungs(demand_class, members, tuple(rungs), blocked, packers.needs)


def _unserved(problem: DemandProblem) -> Iterator[tuple[str, Refusal]]:
    present = {free.kind for free in problem.usable.free if free.tier == FREE}
    for rungs in problem.classes:
        yield from ((uid, refusal) for uid, (_, refusal) in rungs.members.unreadable.items())
        yield from _not_planned(rungs.members)
        yield from _without_level(rungs.members, problem.inputs)
        yield from _ended(rungs, present)
        if rungs.rungs[-1]:
            for uid, too_large in rungs.on_all.refused.items():
                yield uid, BLOCKED if problem.fits_blocked(uid) else too_large
        else:
            yield from ((uid, problem.why_no_node(uid)) for uid in rungs.members.shares)
        # Last, as it counts before all others: whatever nodes there are, no scheduler sees such a pod.
        yield from _of_other_shard(rungs, problem.inputs)


def _not_planned(members: ClassMembers) -> Iterator[tuple[str, Refusal]]:
    for uid, pod in members.ruled.items():
        obstacle = next((rule.obstacle for rule in pod.rules if rule.obstacle), "")
        if obstacle:
            yield uid, not_planned(obstacle)


def _without_level(members: ClassMembers, inputs: DemandInputs) -> Iterator[tuple[str, Refusal]]:
    """Pods whose PodGroup requires a level that its Topology does not have: KAI places them nowhere."""
    for uid, pod in members.ruled.items() if inputs.topologies else ():
        for level in gang_levels(pod, inputs.group_of(pod)).values():
            topology = inputs.topologies.get(level.topology)
            if topology is None or not topology.down_to(level.required):
                yield uid, no_level(level, topology)


def _ended(rungs: ClassRungs, present: Collection[str]) -> Iterator[tuple[str, Refusal]]:
    """Pods with claims whose selectors end in an error on devices that exist: the scheduler places them nowhere.
    `present` are the kinds of nodes that exist."""
    kinds = {name: kind for name, kind in rungs.rungs[0].items() if name in present}
    if kinds and any(share.share.claims for share in rungs.members.shares.values()):
        sizes = rungs.known.of(rungs.demand_class, rungs.members, kinds).sizes
        for uid, share in rungs.members.shares.items():
            size = sizes.get(share.share)
            if size is not None and size.ends:
                yield uid, selector_ends(share.share, size.ends)


def _of_other_shard(rungs: ClassRungs, inputs: DemandInputs) -> Iterator[tuple[str, Refusal]]:
    """Pods whose queue is of another node pool of KAI, or whose node pool has no SchedulingShard: no scheduler sees
    both."""
    label, pools = inputs.environment.node_pool_label, rungs.members.node_pools
    if label.key and inputs.shards and rungs.demand_class.scheduler == inputs.environment.queue_scheduler:
        without = {uid: pools.get(uid, "") for uid in rungs.members.shares}
        yield from ((uid, no_shard(label, pool)) for uid, pool in without.items() if pool not in inputs.shards)
    queue = inputs.queue(rungs.demand_class.queue)
    if queue is not None:
        pool_of_queue = label.of(queue.labels)
        for uid in rungs.members.shares if pool_of_queue else pools:
            pool = pools.get(uid, "")
            if pool != pool_of_queue:
                yield uid, other_shard(label, queue.name, pool_of_queue, pool)


def _grace_ends(inputs: DemandInputs) -> Iterator[tuple[str, datetime]]:
    grace = inputs.settings.grace_seconds
    if not grace or inputs.now is None:
        return
    for members in inputs.classes.values():
        for uid, share in members.shares.items():
            condition = condition_of(share.pod.conditions, "PodScheduled")
            since = parse_time(condition.last_transition_time) if condition is not None else None
            if since is not None and (end := since + timedelta(seconds=grace)) > inputs.now:
                yield uid, end
