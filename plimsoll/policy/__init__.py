"""Policies: one set of rules on manifests, enforced by the policy pack, the controller, admission and `plimsoll policy
check`.

Pure, as `plimsoll.plan` is: the date and everything else that a rule depends on are arguments.
"""

from plimsoll.policy.cel import has, has_controller, setting, text, texts, value
from plimsoll.policy.checking import Checker
from plimsoll.policy.context import KAI_GROUP, PolicyContext, Queues, assumes_mode, context_of, environment_of
from plimsoll.policy.declared import declared_policies, merged, with_declared
from plimsoll.policy.fields import Manifest, is_kind, is_list, namespace_of, whole
from plimsoll.policy.junit_report import cases, junit
from plimsoll.policy.located import Located
from plimsoll.policy.pod_templates import PodTemplate, count_of
from plimsoll.policy.pod_templates import pod_templates as templates_of
from plimsoll.policy.reading import UNREAD_GROUPS, is_read
from plimsoll.policy.reference import described, markdown
from plimsoll.policy.rule import Cel, Needs, Rule, Subject
from plimsoll.policy.rule_set import RULES, settled
from plimsoll.policy.rules import CHART_FILE_KIND, EXPIRED, VALUES_KIND
from plimsoll.policy.sarif_report import sarif
from plimsoll.policy.withholding import withhold

__all__ = [
    "CHART_FILE_KIND",
    "EXPIRED",
    "KAI_GROUP",
    "RULES",
    "UNREAD_GROUPS",
    "VALUES_KIND",
    "Cel",
    "Checker",
    "Located",
    "Manifest",
    "Needs",
    "PodTemplate",
    "PolicyContext",
    "Queues",
    "Rule",
    "Subject",
    "assumes_mode",
    "cases",
    "context_of",
    "count_of",
    "declared_policies",
    "described",
    "environment_of",
    "has",
    "has_controller",
    "is_kind",
    "is_list",
    "is_read",
    "junit",
    "markdown",
    "merged",
    "namespace_of",
    "sarif",
    "setting",
    "settled",
    "templates_of",
    "text",
    "texts",
    "value",
    "whole",
    "with_declared",
    "withhold",
]
