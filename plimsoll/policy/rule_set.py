"""All rules, and their settings for one check."""

import difflib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from plimsoll.errors import PlimsollError
from plimsoll.model.api import Policies
from plimsoll.model.meta import Declared, Severity, describe_errors
from plimsoll.policy.rule import Rule
from plimsoll.policy.rules import RULES as ALL_RULES

RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in ALL_RULES}


class InvalidPoliciesError(PlimsollError):
    """Invalid settings of rules; the message names the rule and the option."""


class SetRule(NamedTuple):
    """A rule with its settings."""

    rule: Rule
    severity: Severity | None
    """None: the rule is off."""
    options: Declared


def settled(policies: Policies) -> dict[str, SetRule]:
    """Every rule with its severity and options. Raises InvalidPoliciesError."""
    for where, names in (("rules", policies.rules), ("exemptions", [each.rule for each in policies.exemptions])):
        for name in names:
            if name not in RULES:
                near = difflib.get_close_matches(name, RULES, 1)
                hint = f"did you mean {near[0]}?" if near else "`plimsoll policy list` lists the rules"
                raise InvalidPoliciesError(f"{where}: there is no rule {name!r}", hint)
    found = {}
    for name, rule in RULES.items():
        setting = policies.rules.get(name)
        severity = rule.severity
        if setting is not None:
            chosen = setting.severity or rule.severity or Severity.ERROR
            severity = None if chosen == "off" else Severity(chosen)
        found[name] = SetRule(rule, severity, options_of(rule, setting.options if setting is not None else {}))
    return found


def usable(policies: Policies) -> tuple[Policies, tuple[str, ...]]:
    """The settings without those that are invalid, and what is wrong with these: the others stay in force."""
    rules, problems = {}, []
    for name, setting in policies.rules.items():
        if name not in RULES:
            problems.append(f"rules: there is no rule {name!r}")
            continue
        try:
            options_of(RULES[name], setting.options)
        except InvalidPoliciesError as error:
            problems.append(f"{error.message}: its default options are used")
            rules[name] = setting.model_copy(update={"options": {}})
        else:
            rules[name] = setting
    known = tuple(each for each in policies.exemptions if each.rule in RULES)
    problems += [f"exemptions: there is no rule {each.rule!r}" for each in policies.exemptions if each not in known]
    return policies.model_copy(update={"rules": rules, "exemptions": known}), tuple(problems)


def options_of(rule: Rule, given: Mapping[str, Any]) -> Declared:
    """The rule's options. Raises InvalidPoliciesError that names the rule and each invalid option."""
    try:
        return rule.options.model_validate(given)
    except ValidationError as error:
        known = ", ".join(field.alias or name for name, field in rule.options.model_fields.items())
        raise InvalidPoliciesError(
            f"options of rule {rule.id}: {describe_errors(error)}", f"its options: {known or 'none'}"
        ) from None
