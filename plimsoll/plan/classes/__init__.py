"""Unschedulable pods, grouped by the GPUs that could serve them."""

from plimsoll.plan.classes.admission import refused_by_queues
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.plan.classes.gang import Gang, gangs, in_order
from plimsoll.plan.classes.members import Classes, ClassMembers
from plimsoll.plan.classes.needs import Kinds, KnownNeeds, class_needs, milli_of, queue_milli, share_milli
from plimsoll.plan.classes.pods import is_ours, uid_of, waits

__all__ = [
    "ClassMembers",
    "Classes",
    "DemandClass",
    "Gang",
    "Kinds",
    "KnownNeeds",
    "class_needs",
    "gangs",
    "in_order",
    "is_ours",
    "milli_of",
    "queue_milli",
    "refused_by_queues",
    "share_milli",
    "uid_of",
    "waits",
]
