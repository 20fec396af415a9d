"""PlannedDemand: the demand of one snapshot, as the controller would plan it, with the statuses of its GPUDemands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from plimsoll.cost import Prices
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandProvisioner, GPUDemandStatus
from plimsoll.plan.classes import Refusal
from plimsoll.plan.demand import Demand, DemandPlan, DemandPlanner, PlannedNode
from plimsoll.plan.limits import NamespaceBudget, environment_room
from plimsoll.plan.owned import PlanBuilder
from plimsoll.plan.requests import RequestPlanner
from plimsoll.plan.view import ClusterView


@dataclass(frozen=True)
class PlannedDemand:
    view: ClusterView
    plan: DemandPlan
    statuses: Mapping[str, GPUDemandStatus]
    """By name of the demand, once the plan is applied."""
    now: datetime

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
    def unserved(self) -> frozenset[str]:
        """UIDs of the pods for which there is no capacity, and none is requested."""
        idle = self.snapshot.environment.spec.demand.provisioner is DemandProvisioner.NONE
        return frozenset(
            uid
            for demand in self.plan.demands
            for uid in (*demand.refused, *demand.kept_out, *(demand.on_new if idle else ()))
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
    found: dict[str, list[str]] = {}
    for uid, why in whys.items():
        found.setdefault(str(why), []).append(uid)
    return tuple(
        Kept(
            text,
            len(uids),
            tuple(sorted("/".join(demand.pods[uid].pod.key) for uid in uids if uid in demand.pods)),
        )
        for text, uids in sorted(found.items(), key=lambda item: -len(item[1]))
    )


def plan_demand(observed: Snapshot | ClusterView, now: datetime, planner: DemandPlanner | None = None) -> PlannedDemand:
    """The plan of the demand alone. `planner` may have planned other snapshots before, which makes this one quicker and
    changes nothing of it."""
    view = ClusterView.of(observed)
    requesting = RequestPlanner(
        view.observed,
        planner or DemandPlanner(),
        PlanBuilder(),
        now,
        room=environment_room(view),
        namespaces=NamespaceBudget(view),
        requests=view.requests,
        progress=view.progress,
        known=view.known,
    )
    statuses = {each.name: each.status for each in requesting.plan() if each.status is not None}
    return PlannedDemand(view, requesting.demand, statuses, now)
