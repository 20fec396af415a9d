"""Parts that objects of every API have: metadata, conditions, selectors, taints, durations."""

from plimsoll.model.meta.base import (
    Declared,
    Described,
    Observed,
    ObservedObject,
    PositiveInt,
    Reported,
    describe_errors,
    identify,
    wrong_fields,
)
from plimsoll.model.meta.condition import Condition, condition_of, condition_text, without_heartbeats
from plimsoll.model.meta.duration import parse_duration
from plimsoll.model.meta.fields import dig, objects_of, section
from plimsoll.model.meta.finding import Finding, Severity, in_order
from plimsoll.model.meta.free_form import FreeForm
from plimsoll.model.meta.host_request import EPHEMERAL_STORAGE, HostRequest, counted
from plimsoll.model.meta.label_selector import LabelRequirement, Labels, LabelSelector, checked_labels, expression
from plimsoll.model.meta.lasting import CHANGING_KEYS, HASHES, MOMENTS, OWN, changes_by_itself
from plimsoll.model.meta.placement import ANYWHERE, NodeRequirement, Placement, Terms
from plimsoll.model.meta.pod_rule import PodRule, PodRules, PodSelector, read_rules
from plimsoll.model.meta.pod_template import (
    check_pod_template,
    check_quantities,
    labels_of,
    with_canonical_quantities,
)
from plimsoll.model.meta.taint import Taint, Toleration, untolerated
from plimsoll.model.meta.volume_source import check_volume_source

__all__ = [
    "ANYWHERE",
    "CHANGING_KEYS",
    "EPHEMERAL_STORAGE",
    "HASHES",
    "MOMENTS",
    "OWN",
    "Condition",
    "Declared",
    "Described",
    "Finding",
    "FreeForm",
    "HostRequest",
    "LabelRequirement",
    "LabelSelector",
    "Labels",
    "NodeRequirement",
    "Observed",
    "ObservedObject",
    "Placement",
    "PodRule",
    "PodRules",
    "PodSelector",
    "PositiveInt",
    "Reported",
    "Severity",
    "Taint",
    "Terms",
    "Toleration",
    "changes_by_itself",
    "check_pod_template",
    "check_quantities",
    "check_volume_source",
    "checked_labels",
    "condition_of",
    "condition_text",
    "counted",
    "describe_errors",
    "dig",
    "expression",
    "identify",
    "in_order",
    "labels_of",
    "objects_of",
    "parse_duration",
    "read_rules",
    "section",
    "untolerated",
    "with_canonical_quantities",
    "without_heartbeats",
    "wrong_fields",
]
