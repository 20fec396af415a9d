"""Unschedulable pods, grouped by the GPUs that could serve them."""

from plimsoll.plan.classes.admission import Asked, Gate, NamespaceLimits, refused_by_gate
from plimsoll.plan.classes.demand_class import DemandClass
from plimsoll.plan.classes.gang import Gang, gang_levels, gangs, in_order
from plimsoll.plan.classes.left_out import LEFT_OUT, LeftOut, PlannedClasses
from plimsoll.plan.classes.members import Classes, ClassMembers, NamespaceClasses, uid_of
from plimsoll.plan.classes.needs import (
    ClassNeeds,
    Kinds,
    KnownNeeds,
    class_needs,
    milli_of,
    queue_counted,
    share_milli,
)
from plimsoll.plan.classes.refusal import Refusal, RefusalReason
from plimsoll.plan.classes.whole_pods import WholeGpus, whole_gpus

__all__ = [
    "LEFT_OUT",
    "Asked",
    "ClassMembers",
    "ClassNeeds",
    "Classes",
    "DemandClass",
    "Gang",
    "Gate",
    "Kinds",
    "KnownNeeds",
    "LeftOut",
    "NamespaceClasses",
    "NamespaceLimits",
    "PlannedClasses",
    "Refusal",
    "RefusalReason",
    "WholeGpus",
    "class_needs",
    "gang_levels",
    "gangs",
    "in_order",
    "milli_of",
    "queue_counted",
    "refused_by_gate",
    "share_milli",
    "uid_of",
    "whole_gpus",
]
