"""Admission: the rules that have a CEL expression, enforced by the apiserver.

They are ValidatingAdmissionPolicies with the Environment object as their parameter, so that no webhook server runs and
a change of a setting takes effect at once. An update is not refused if the object broke the rule before it, too: an
object that is older than a rule, or a Workspace of another mode, can still be scaled, labelled and deleted. What
Kubernetes' own controllers make of a workload is not refused for its template, which was checked when the workload was
written: an exemption, and an update that is not refused, apply to its ReplicaSets, Jobs and pods, too.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal

from plimsoll.components.admission.policy import AdmissionPolicy
from plimsoll.labels import API_VERSION
from plimsoll.policy import RULES, Cel, Rule, Subject, has, has_controller, setting, text, value

Setting = Literal["deny", "audit"]

ACTIONS: Final[dict[Setting, list[str]]] = {"deny": ["Deny"], "audit": ["Audit", "Warn"]}

_RULES: Final = "params.spec.policies.rules"
_OF_CHECKED: Final = (
    "(request.userInfo.username == 'system:kube-controller-manager'"
    " || request.userInfo.username.startsWith('system:serviceaccount:kube-system:'))"
    " && "
    + has_controller(
        "each.apiVersion in ['v1', 'apps/v1', 'batch/v1'] && each.kind in ['CronJob', 'DaemonSet', 'Deployment', 'Job',"
        " 'ReplicaSet', 'ReplicationController', 'StatefulSet']"
    )
)
"""Whether one of Kubernetes' own controllers creates the object for a workload that is a subject itself. Anyone can set
an owner: nobody else is exempt by one."""
_BEFORE: Final = "Before"
_WORD: Final = re.compile(r"\w+")
_VARIABLE: Final = re.compile(r"\bvariables\.(\w+)")


def rule_policies() -> dict[str, AdmissionPolicy]:
    """By name: for each subject one policy that denies, and one that warns and writes audit annotations.

    The Environment's `admission` applies to Plimsoll's Workspaces, its `policies.admission` to all other objects.
    """
    return {
        f"plimsoll-{subject.name.lower().replace('_', '-')}-{action}": _policy(subject, action)
        for subject in Subject
        for action in ACTIONS
    }


def rules_on(subject: Subject) -> list[tuple[Rule, Cel]]:
    """The rules on a subject that admission enforces."""
    return [(rule, rule.cel) for rule in RULES.values() if rule.cel is not None and subject in rule.cel.subjects]


def _policy(subject: Subject, action: Setting) -> AdmissionPolicy:
    rules = rules_on(subject)
    admission = _admission(subject)
    in_force = f"{admission} == 'deny'" if action == "deny" else f"{admission} != 'off'"
    variables = _variables(cel for _, cel in rules)
    changing = _about_object(variables)
    before = {f"{name}{_BEFORE}": _before(variables[name], changing) for name in variables if name in changing}
    of_checked = {"ofChecked": _OF_CHECKED} if subject is Subject.PODS else {}
    variables |= {**before, **of_checked, "exempted": _exempted(subject.variable)}
    policy = {
        # A policy that only warns must not deny if it cannot be evaluated.
        "failurePolicy": "Fail" if action == "deny" else "Ignore",
        "paramKind": {"apiVersion": API_VERSION, "kind": "Environment"},
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "operations": list(operations),
                    "resources": list(plurals),
                }
                for group, plurals, operations in subject.value
            ]
        },
        "matchConditions": [
            {"name": "setting", "expression": in_force},
            {"name": "stays", "expression": f"!has({subject.variable}.metadata.deletionTimestamp)"},
        ],
        "variables": [{"name": name, "expression": expression} for name, expression in variables.items()],
        "validations": [
            _validation(rule, cel, action, subject, _as_before(cel, subject, changing)) for rule, cel in rules
        ],
    }
    binding = {"validationActions": ACTIONS[action], "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}}
    return {"policy": policy, "binding": binding}


def _admission(subject: Subject) -> str:
    """The Environment's setting for a subject: deny, audit or off."""
    if subject is Subject.WORKSPACES:
        return setting("admission")
    return value("params", "spec.policies.admission", text("audit"))


def _variables(rules: Iterable[Cel]) -> dict[str, str]:
    """The variables of all rules, each after those that it uses."""
    found: dict[str, str] = {}
    for cel in rules:
        for name, expression in cel.variables.items():
            assert found.setdefault(name, expression) == expression, f"variable {name} has two meanings"
    return found


def _about_object(variables: Mapping[str, str]) -> set[str]:
    """The variables whose value depends on the object."""
    found: set[str] = set()
    for name, expression in variables.items():
        if "object" in _WORD.findall(expression) or found.intersection(_VARIABLE.findall(expression)):
            found.add(name)
    return found


def _before(expression: str, about_object: Collection[str]) -> str:
    """The same expression on the object before an update; evaluated only if there is one."""

    def renamed(match: re.Match[str]) -> str:
        return match[0] + _BEFORE if match[1] in about_object else match[0]

    return re.sub(r"\bobject\b", "oldObject", _VARIABLE.sub(renamed, expression))


def _same(field: str, actual: str) -> str:
    """Whether an exemption's field matches; it may be absent, or end in `*`."""
    return (
        f"(!has(each.{field}) || each.{field} == {actual} || (each.{field}.endsWith('*')"
        f" && {actual}.startsWith(each.{field}.substring(0, size(each.{field}) - 1))))"
    )


def _exempted(variable: str) -> str:
    """The rules that the object is exempted from."""
    name = (
        f"(has({variable}.metadata.name) ? {variable}.metadata.name :"
        f" has({variable}.metadata.generateName) ? {variable}.metadata.generateName : '')"
    )
    return (
        f"{value('params', 'spec.policies.exemptions', '[]')}.filter(each, "
        # The current time is known only for a new object, by its creation. An existing object keeps its exemption until
        # the controller or a check reports that the exemption has expired.
        "(oldObject != null || timestamp(object.metadata.creationTimestamp) <= timestamp(each.until + 'T23:59:59Z'))"
        f" && (!has(each.kind) || each.kind == {variable}.kind)"
        f" && {_same('namespace', value(variable, 'metadata.namespace', text('')))} && {_same('name', name)}"
        ").map(each, each.rule)"
    )


def _as_before(cel: Cel, subject: Subject, changing: Collection[str]) -> str:
    """CEL expression: whether the object broke the rule before the update, too; false for a deletion."""
    if subject.variable == "oldObject":
        return "false"
    return f"oldObject != null && !({_before(cel.holds, changing)})"


def _validation(rule: Rule, cel: Cel, action: Setting, subject: Subject, as_before: str) -> dict[str, Any]:
    at_rule = f"{_RULES}[{text(rule.id)}]"
    own = text(rule.severity.value if rule.severity is not None else "error")
    named = f"{has('params', 'spec.policies.rules')} && {text(rule.id)} in {_RULES}"
    level = f"({named} && has({at_rule}.severity) ? {at_rule}.severity : {own})"
    if rule.severity is None:
        level = f"({named} ? {level} : 'off')"
    denied = f"{level} == 'error'"
    if subject is Subject.PODS and rule.reads != ("Pod",):
        denied += " && !variables.ofChecked"
    elsewhere = (
        f"!({denied})" if action == "deny" else f"{level} == 'off' || ({denied} && {_admission(subject)} == 'deny')"
    )
    message: Mapping[str, str] = (
        {"messageExpression": f"({cel.message}) + {text(f' ({rule.id})')}"}
        if cel.message
        else {"message": f"{rule.summary} {rule.remedy} ({rule.id})"}
    )
    return {
        "expression": f"{elsewhere} || ({cel.holds}) || {text(rule.id)} in variables.exempted || ({as_before})",
        **message,
        "reason": "Invalid",
    }
