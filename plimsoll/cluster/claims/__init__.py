"""Devices that pods get by claims (Dynamic Resource Allocation): what is published, what is free, what is asked for."""

from plimsoll.cluster.claims.counters import Divided, divided_devices, together
from plimsoll.cluster.claims.expression import NotEvaluatedError, SelectorError, selects
from plimsoll.cluster.claims.joining import ClaimObjects, Joining
from plimsoll.cluster.claims.parts import Part, free_part, part_of, whole_by_default
from plimsoll.cluster.claims.pod_claims import PodClaims
from plimsoll.cluster.claims.pools import served
from plimsoll.cluster.claims.selected import Selection, may_be_gpus, may_serve_gpus, selection

__all__ = [
    "ClaimObjects",
    "Divided",
    "Joining",
    "NotEvaluatedError",
    "Part",
    "PodClaims",
    "Selection",
    "SelectorError",
    "divided_devices",
    "free_part",
    "may_be_gpus",
    "may_serve_gpus",
    "part_of",
    "selection",
    "selects",
    "served",
    "together",
    "whole_by_default",
]
