"""Capacity that was reserved: a Workspace that may use nothing else is refused without it, and told when it ends."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from plimsoll.cluster.catalog import WITHOUT_RESERVATIONS, OfferedType
from plimsoll.labels import CAPACITY_TYPE
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import NodeClassRef, Workspace
from plimsoll.model.karpenter import RESERVATION_LABELS, Ec2NodeClass, NodeClass, NodePool, Reservation
from plimsoll.plan.owned import parse_time
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.inherited import capacity_types
from plimsoll.text import shortlist

RESERVED = ("reserved",)
_HAVING: Final = ("In", "Exists")
"""Operators that only nodes with the label match."""


def ended_reservations(node_classes: Iterable[NodeClass], now: datetime | None) -> frozenset[str]:
    """The ids of reservations that ended before `now`; without `now`, none has.

    No plan is due at the end of one: Karpenter writes the status again before it.
    """
    if now is None:
        return frozenset()
    every = (each for found in node_classes if isinstance(found, Ec2NodeClass) for each in found.reservations)
    return frozenset(each.id for each in every if (end := parse_time(each.end or "")) is not None and end <= now)


def reserved_capacity(
    workspace: Workspace,
    offered: OfferedType,
    node_class: NodeClassRef,
    pool: NodePool | None,
    view: ClusterView,
    *,
    ended: frozenset[str],
) -> tuple[str, ...] | Refusal:
    """When the reservations end that new nodes of the Workspace may use; a refusal if there is none.

    Only where its nodes may be nothing else. Of a provider that has reservations, only where the node class says which;
    how many instances are free there no status says: Karpenter counts them, and its NodeClaims report it. `ended` has
    the ids of those that have ended.
    """
    types = capacity_types(workspace, view.settings, pool)
    types = types or (pool.allowed_values.get(CAPACITY_TYPE, ()) if pool is not None else ())
    if types and not set(RESERVED) & set(types):
        return _outside_reservations(workspace, types, pool) or ()
    if types != RESERVED:
        return ()
    if node_class.group in WITHOUT_RESERVATIONS:
        return Refusal(
            Reason.UNSUPPORTED_INSTANCE_TYPE,
            f"its nodes may be reserved capacity only, and Karpenter launches none by a {node_class.kind} "
            f"({node_class.group}), on-demand and spot only: change resource.capacityType, or capacityType of the "
            "Environment or NodePool that requires it",
        )
    of_class = seen_node_class(node_class, view)
    if not isinstance(of_class, Ec2NodeClass) or not of_class.reports_reservations:
        return ()
    allowed = [each for each in of_class.reservations if _allowed(each, workspace, offered, pool)]
    usable = [each for each in allowed if not _over(each, ended)]
    if not usable:
        has = shortlist(
            [f"{each} of {each.instance_type} in {each.zone}{_over(each, ended)}" for each in of_class.reservations]
        )
        return Refusal(
            Reason.UNSUPPORTED_INSTANCE_TYPE,
            f"its nodes may be reserved capacity only, and EC2NodeClass {of_class.name} has none of instance type "
            f"{offered.name!r} that NodePool and Workspace allow (it has {has or 'no reservation'}): change "
            "resource.instanceType or resource.capacityType, or select the reservation in the EC2NodeClass",
        )
    ending = [each for each in usable if each.end is not None]
    return tuple(
        f"{each} of {each.instance_type} ends at {each.end}, and Karpenter drains its nodes before that: its replicas "
        "wait for capacity then"
        for each in ending
    )


def _outside_reservations(workspace: Workspace, types: tuple[str, ...], pool: NodePool | None) -> Refusal | None:
    """A refusal of nodes outside reservations where a label of reservations is required, which these do not have
    (`createOfferings` in pkg/providers/instancetype/offering of karpenter-provider-aws): none would be launched."""
    of_pool = (str(each.get("key")) for each in (pool.requirements if pool else ()) if each.get("operator") in _HAVING)
    chosen = workspace.spec.resource.label_selector.requirements()
    of_workspace = (each.key for each in chosen if each.operator in _HAVING)
    fields = [(f"NodePool {pool.name}", key) for key in of_pool] if pool is not None else []
    fields += [("resource.labelSelector", key) for key in of_workspace]
    field, key = next((each for each in fields if each[1].startswith(RESERVATION_LABELS)), ("", ""))
    if not field:
        return None
    return Refusal(
        Reason.INVALID_SPEC,
        f"its nodes are {' or '.join(types)}, and {field} requires {key}, a label of reserved capacity only: change "
        "resource.capacityType, or use a NodePool and a selector without it",
    )


def seen_node_class(node_class: NodeClassRef, view: ClusterView) -> NodeClass | None:
    """The node class as it was observed; None if it was not, or its kind is not."""
    named = node_class.group, node_class.kind, node_class.name
    return next((each for each in view.observed.node_classes if (each.group, each.kind, each.name) == named), None)


def _over(reservation: Reservation, ended: frozenset[str]) -> str:
    """That Karpenter launches nothing in the reservation, and why; empty if it does."""
    if reservation.id in ended:
        return f", ended at {reservation.end}"
    if reservation.state != "active":
        until = f" until {reservation.end}" if reservation.end else ""
        return f", {reservation.state}{until}: nothing is launched there any more"
    return ""


def _allowed(reservation: Reservation, workspace: Workspace, offered: OfferedType, pool: NodePool | None) -> bool:
    labels = reservation.labels
    required = (item for item in workspace.spec.resource.selector.requirements() if item.key in labels)
    return (
        reservation.instance_type.casefold() == offered.name.casefold()
        and all(item.matches(labels) for item in required)
        and (pool is None or pool.forbids({key: (value,) for key, value in labels.items()}) is None)
    )
