"""Plans of demand, and what tests read from them."""

from collections.abc import Collection, Sequence
from typing import Any

from plimsoll.plan.demand import Demand, DemandPlan, DemandPlanner, PlannedNode, RequestedNode
from plimsoll.plan.requests import NodeRequest
from tests.builders import a_snapshot


def planned(
    *objects: Any,
    requested: Sequence[RequestedNode] = (),
    blocked: Collection[tuple[str, str]] = (),
    failed_claims: Collection[str] = (),
    environment: Any = None,
    **more: Any,
) -> DemandPlan:
    """The plan of these objects."""
    return DemandPlanner().plan(
        a_snapshot(*objects, environment=environment), requested, blocked, failed_claims, **more
    )


def only(plan: DemandPlan) -> Demand:
    """The only demand."""
    (demand,) = plan.demands
    return demand


def types(plan: DemandPlan) -> list[str]:
    """Instance types of the new nodes, sorted."""
    return sorted(node.instance_type for node in plan.nodes)


def on_new(plan: DemandPlan) -> set[str]:
    """UIDs of the pods on new nodes."""
    return {uid for demand in plan.demands for uid in demand.on_new}


def refused(plan: DemandPlan) -> dict[str, str]:
    """The reason by UID of each refused pod."""
    return {uid: str(why) for demand in plan.demands for uid, why in demand.refused.items()}


def on_nodes(plan: DemandPlan) -> dict[str, str]:
    """The name of the node or NodeClaim by UID of each pod that is planned there."""
    return {uid: name for demand in plan.demands for name, uids in demand.on_nodes.items() for uid in uids}


def requests_of(nodes: Sequence[PlannedNode], prefix: str = "request") -> list[RequestedNode]:
    """The planned nodes as requested nodes."""
    return [NodeRequest.of(node).requested_node(f"{prefix}-{number:03}") for number, node in enumerate(nodes)]
