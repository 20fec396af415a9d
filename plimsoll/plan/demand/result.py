"""Builds the DemandPlan from a packing: the places of each class's pods, and the nodes to request."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from plimsoll.packing import GPU_MILLI, Milli
from plimsoll.packing.nodes import PodNeed
from plimsoll.plan.classes import milli_of, share_milli
from plimsoll.plan.demand.class_plan import ClassPlan
from plimsoll.plan.demand.demand import Demand, DemandPlan, PlannedNode
from plimsoll.plan.demand.joint import Part, filled
from plimsoll.plan.demand.new_nodes import NewNodes
from plimsoll.plan.demand.usable import DemandInputs, Usable, fits
from plimsoll.plan.owned import parse_time

_Place = str | int
"""Where a pod is planned: the name of an existing node or of a requested node, or the index of a new node."""


class Result:
    """The state of a round after packing, from which the DemandPlan is built."""

    def __init__(
        self,
        inputs: DemandInputs,
        usable: Usable,
        classes: Sequence[ClassPlan],
        class_of: Mapping[str, ClassPlan],
        in_grace: Collection[str],
    ) -> None:
        self._inputs = inputs
        self._settings = inputs.snapshot.environment.spec.demand
        self._usable = usable
        self._classes = classes
        self._class_of = class_of
        self._in_grace = in_grace

    def plan(self, parts: Sequence[Part], deadline: datetime | None) -> DemandPlan:
        """`deadline` is the end of the first grace period."""
        by_name = {need.name: need for part in parts for need in part.needs}
        new = NewNodes(self._usable.offers, self._class_of, by_name)
        requested = self._usable.requested
        awaiting: set[str] = set()
        places: dict[str, _Place] = {}
        least, lower_bound = 0, 0.0
        for part in parts:
            awaiting |= new.add(part, requested, self._may_wait)
            least, lower_bound = least + part.packing.least, lower_bound + part.packing.lower_bound
            for node in part.packing.nodes:
                if node.node is not None:
                    places |= dict.fromkeys(node.pods, node.node)
        planned = new.planned()
        for number, new_node in enumerate(planned):
            places |= dict.fromkeys(new_node.pods, number)
        needed = self._usable.requested.keys() & places.values()
        needed |= {
            node.name
            for node in self._usable.free
            if node.name in requested and any(node.kind in by_name[uid].milli for uid in awaiting)
        }
        weights = self._weights(parts, planned, by_name)
        demands = sorted(
            (self._demand(each, places, awaiting, weights) for each in self._classes), key=lambda d: d.name
        )
        return DemandPlan(
            demands=tuple(demands),
            nodes=planned,
            places=tuple(node for node in filled(parts) if node.node is not None and node.node not in requested),
            needed=frozenset(needed),
            least_gpus=least,
            lower_bound=lower_bound,
            next_deadline=deadline.isoformat() if deadline else "",
        )

    def _may_wait(self, uid: str) -> bool:
        """Whether the pod may wait for requested nodes, if the lower bound says that they suffice: not if it is older
        than all requested nodes that it could use, and `waitSeconds` have passed since the oldest of these was
        requested."""
        need = self._class_of[uid].needs[uid]
        usable = [
            self._usable.requested[node.name]
            for node in self._usable.free
            if node.name in self._usable.requested and fits(node, need)
        ]
        if not usable:
            return False
        if self._inputs.now is None:
            return True
        pod = self._class_of[uid].members.shares[uid].pod
        since = parse_time(pod.creation_timestamp)
        times = [parse_time(each.since) for each in usable]
        oldest = min((each for each in times if each is not None), default=None)
        if since is None or oldest is None or since > oldest:
            return True
        return self._inputs.now <= oldest + timedelta(seconds=self._settings.wait_seconds)

    def _weights(
        self, parts: Iterable[Part], planned: Sequence[PlannedNode], needs: Mapping[str, PodNeed]
    ) -> Mapping[str, float]:
        """The part of the GPUs of new and requested nodes that each pod accounts for, in thousandths of a GPU, by
        UID."""
        found: dict[str, float] = {}
        nodes = [(node.pods, node.gpus) for node in planned]
        requested = self._usable.requested
        nodes += [(node.pods, requested[node.node].gpus) for node in filled(parts) if node.node in requested]
        for pods, gpus in nodes:
            sizes = {uid: milli_of(needs[uid]) for uid in pods}
            total = sum(sizes.values())
            found |= {uid: float(gpus * GPU_MILLI * size / total) for uid, size in sizes.items()}
        return found

    def _demand(
        self, each: ClassPlan, places: Mapping[str, _Place], awaiting: Collection[str], weights: Mapping[str, float]
    ) -> Demand:
        shares = each.members.shares
        on_nodes, on_requested = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        on_new: dict[str, int] = {}
        uids = sorted(shares)
        for uid in uids:
            place = places.get(uid)
            if place is None or uid in awaiting:
                continue
            if isinstance(place, int):
                on_new[uid] = place
            else:
                (on_requested if place in self._usable.requested else on_nodes)[place].append(uid)
        waiting = tuple(uid for uid in uids if uid in awaiting)
        grace = tuple(uid for uid in uids if uid in self._in_grace and uid not in places)
        requested_pods = [uid for held in on_requested.values() for uid in held] + list(on_new)
        none_admitted = shares and shares.keys() <= each.by_queue.keys()
        return Demand(
            demand_class=each.demand_class,
            pods=shares,
            on_nodes={name: tuple(held) for name, held in sorted(on_nodes.items())},
            on_requested={name: tuple(held) for name, held in sorted(on_requested.items())},
            on_new=on_new,
            awaiting=waiting,
            in_grace=grace,
            refused=dict(sorted(each.refused.items())),
            redacted=each.redacted,
            unfit=each.unfit,
            queue_refusal=next(iter(each.by_queue.values())) if none_admitted else "",
            whole_gpu_pods=each.members.whole,
            kept_out=each.kept_out,
            gpu_milli=round(sum(weights.get(uid, 0.0) for uid in requested_pods)),
            requested_shares=_sizes(each, (*requested_pods, *waiting)),
            warnings=(*self._inputs.warnings, *each.warnings),
        )


def _sizes(each: ClassPlan, uids: Iterable[str]) -> Mapping[Milli, int]:
    """Number of shares of these pods by size, in thousandths of a GPU on the kind where a share is smallest."""
    found = Counter[Milli]()
    for uid in uids:
        need = each.needs[uid]
        found[share_milli(each.members.shares[uid], need, each.levels[-1])] += need.devices
    return found
