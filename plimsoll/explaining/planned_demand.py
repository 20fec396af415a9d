"""PlannedDemand: the demand of one snapshot, as the controller would plan it, with the statuses of its GPUDemands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from plimsoll.cost import Prices
from plimsoll.model import Change, ObjectKey, Plan, Snapshot, Withheld
from plimsoll.model.api import DemandObject, DemandProvisioner, GPUDemandStatus
from plimsoll.plan.classes import Refusal
from plimsoll.plan.demand import Demand, DemandPlan, DemandPlanner, PlannedNode
from plimsoll.plan.limits import NamespaceBudget, environment_room
from plimsoll.plan.owned import PlanBuilder
from plimsoll.plan.requests import RequestPlanner
from plimsoll.plan.view import ClusterView
from plimsoll.policy import withhold


@dataclass(frozen=True)
class PlannedDemand:
    view: ClusterView
    plan: DemandPlan
    statuses: Mapping[str, GPUDemandStatus]
    """By name of the demand, once the plan is applied."""
    now: datetime
    creations: tuple[Change, ...] = ()
    """The requests that would be created."""
    before: "PlannedDemand | None" = None
    """The plan without a change that is tried: what a policy allows there need not be checked again."""

    @property
    def snapshot(self) -> Snapshot:
        return self.view.observed

    @cached_property
    def by_pod(self) -> Mapping[str, Demand]:
        """The demand of each pod that waits for GPUs, by UID."""
        return {
            uid: demand
            for demand in self.plan.demands
            for uid in (*demand.pods, *demand.whole_gpu_pods, *demand.refused, *demand.kept_out)
        }

    @cached_property
    def withheld(self) -> Mapping[DemandObject, Withheld]:
        """The requests that a policy withholds."""
        allowed: Mapping[ObjectKey, Change] = {}
        if self.before is not None and self.before.snapshot.environment.spec == self.snapshot.environment.spec:
            refused = {each.key for each in self.before.withheld.values()}
            allowed = {each.key: each for each in self.before.creations if each.key not in refused}
        new = tuple(each for each in self.creations if each != allowed.get(each.key))
        found = withhold(Plan(creations=new), self.snapshot, self.now) if new else Plan()
        return {each.key.of_demand: each for each in found.withheld}

    def withheld_of(self, demand: Demand) -> tuple[Withheld, ...]:
        """The requests of the demand that a policy withholds."""
        status = self.statuses.get(demand.name)
        objects = status.objects if status is not None and self.withheld else ()
        return tuple(self.withheld[each] for each in objects if each in self.withheld)

    @cached_property
    def unserved(self) -> frozenset[str]:
        """UIDs of the pods for which there is no capacity, and none is requested."""
        idle = self.snapshot.environment.spec.demand.provisioner is DemandProvisioner.NONE
        return frozenset(
            uid
            for demand in self.plan.demands
            for uid in (
                *demand.refused,
                *demand.kept_out,
                *(demand.on_new if idle or self.withheld_of(demand) else ()),
            )
        )

    @cached_property
    def prices(self) -> Prices:
        return Prices.of(self.snapshot)

    @property
    def requested(self) -> Sequence[PlannedNode]:
        """The new nodes that are requested: none without a provisioner."""
        idle = self.snapshot.environment.spec.demand.provisioner is DemandProvisioner.NONE
        return () if idle else self.plan.nodes

    @property
    def price(self) -> float | None:
        """Of these nodes, an hour; None if that of one is not known."""
        found = [self.prices.of_type(node.instance_type) for node in self.requested]
        return None if None in found else sum(each for each in found if each is not None)


class Kept(NamedTuple):
    """Pods that have no capacity for one reason."""

    why: str
    number: int
    names: tuple[str, ...]
    """Sorted; none where the reason is why a request cannot be read, which names its pod itself."""


def pods_by_reason(demand: Demand, whys: Mapping[str, Refusal]) -> tuple[Kept, ...]:
    """`whys` are those of pods of the demand, by UID. The reason of the most pods first."""
    shares = {**demand.whole_gpu_pods, **demand.pods}
    found: dict[str, list[str]] = {}
    for uid, why in whys.items():
        found.setdefault(str(why), []).append(uid)
    return tuple(
        Kept(
            text,
            len(uids),
            tuple(sorted("/".join(shares[uid].pod.key) for uid in uids if uid in shares)),
        )
        for text, uids in sorted(found.items(), key=lambda item: -len(item[1]))
    )


def plan_demand(
    observed: Snapshot | ClusterView,
    now: datetime,
    planner: DemandPlanner | None = None,
    before: PlannedDemand | None = None,
) -> PlannedDemand:
    """The plan of the demand alone. `planner` may have planned other snapshots before, and `before` be the plan of a
    like one: this one is then quicker, and no different."""
    view = ClusterView.of(observed)
    builder = PlanBuilder()
    requesting = RequestPlanner(
        view.observed,
        planner or DemandPlanner(),
        builder,
        now,
        room=environment_room(view),
        namespaces=NamespaceBudget(view),
        requests=view.requests,
        progress=view.progress,
        known=view.known,
    )
    statuses = {each.name: each.status for each in requesting.plan() if each.status is not None}
    return PlannedDemand(view, requesting.demand, statuses, now, tuple(builder.creations), before)
