"""Capacity that was reserved: a Workspace that may use nothing else is refused without it, and told when it ends."""

from plimsoll.cluster.catalog import OfferedType
from plimsoll.labels import CAPACITY_TYPE
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import NodeClassRef, Workspace
from plimsoll.model.karpenter import EC2_GROUP, Ec2NodeClass, NodePool, Reservation
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces.inherited import capacity_types
from plimsoll.text import shortlist

RESERVED = ("reserved",)


def reserved_capacity(
    workspace: Workspace, offered: OfferedType, node_class: NodeClassRef, pool: NodePool | None, view: ClusterView
) -> tuple[str, ...] | Refusal:
    """When the reservations end that new nodes of the Workspace may use; a refusal if there is none.

    Only where its nodes may be nothing else, and where the node class says which reservations it has.
    """
    types = capacity_types(workspace, view.settings, pool)
    types = types or (pool.allowed_values.get(CAPACITY_TYPE, ()) if pool is not None else ())
    of_class = ec2_node_class(node_class, view)
    if types != RESERVED or of_class is None or not of_class.reports_reservations:
        return ()
    usable = [each for each in of_class.reservations if _usable(each, workspace, offered, pool)]
    if not usable:
        has = shortlist([f"{each} of {each.instance_type} in {each.zone}" for each in of_class.reservations])
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


def ec2_node_class(node_class: NodeClassRef, view: ClusterView) -> Ec2NodeClass | None:
    """The node class as it was observed; None if it was not, or is of another provider."""
    if node_class.group != EC2_GROUP:
        return None
    return next((each for each in view.observed.node_classes if each.name == node_class.name), None)


def _usable(reservation: Reservation, workspace: Workspace, offered: OfferedType, pool: NodePool | None) -> bool:
    labels = reservation.labels
    required = (item for item in workspace.spec.resource.selector.requirements() if item.key in labels)
    return (
        reservation.instance_type.casefold() == offered.name.casefold()
        and all(item.matches(labels) for item in required)
        and (pool is None or pool.forbids({key: (value,) for key, value in labels.items()}) is None)
    )
