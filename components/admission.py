"""Admission of Workspaces: what does not fit the environment's mode is refused by the cluster itself.

ValidatingAdmissionPolicies with the Environment object as their parameter, so that no webhook server runs and a change
of the mode counts at once. The messages are those of the engine's verdicts. What was wrong before and is left as it is
refuses no update: a Workspace from another mode can still be scaled, labelled and deleted.
"""

import re
from typing import Any, Final, Literal

from components.guard import AdmissionPolicy
from plimsoll.model.environment import EnvironmentSpec
from plimsoll.model.labels import API_VERSION, GROUP
from plimsoll.model.mode import INSTANCE_TYPE_GIVEN, INSTANCE_TYPE_REQUIRED, PARTITION_FORBIDDEN
from plimsoll.model.reserved import SELECTOR_RESERVED, TEMPLATE_RESERVED

NAME: Final = "plimsoll-workspace"

ACTIONS: Final[dict[Literal["deny", "audit"], list[str]]] = {"deny": ["Deny"], "audit": ["Audit", "Warn"]}

_FIELDS: Final = EnvironmentSpec.model_fields


def workspace_policies() -> dict[str, AdmissionPolicy]:
    """By name: one policy refuses where the Environment's `admission` is deny, the other warns where it is audit."""
    return {f"{NAME}-{setting}": _policy(setting, actions) for setting, actions in ACTIONS.items()}


def _policy(setting: str, actions: list[str]) -> AdmissionPolicy:
    policy = {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": API_VERSION, "kind": "Environment"},
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [GROUP],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["workspaces"],
                }
            ]
        },
        "matchConditions": [
            {"name": "setting", "expression": f"{_setting('admission')} == {_text(setting)}"},
            {"name": "stays", "expression": "!has(object.metadata.deletionTimestamp)"},
        ],
        "variables": [{"name": name, "expression": expression} for name, expression in _variables().items()],
        "validations": _validations(),
    }
    binding = {
        "validationActions": actions,
        "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
    }
    return {"policy": policy, "binding": binding}


def _variables() -> dict[str, str]:
    """Read in this order: each may name those before it."""
    reserved = "filter(key, variables.prefixes.exists(prefix, key.startsWith(prefix)))"
    return {
        "provisioned": f"{_setting('node_auto_provisioning')} == 'enabled'",
        "prefixes": _setting("reserved_label_prefixes"),
        "instanceType": _value("object", "resource.instanceType", "''"),
        "instanceTypeBefore": "oldObject == null ? '' : " + _value("oldObject", "resource.instanceType", "''"),
        "typeChanges": "oldObject == null || variables.instanceType != variables.instanceTypeBefore",
        "matchLabels": _value("object", "resource.labelSelector.matchLabels", "{}"),
        "matchExpressions": _value("object", "resource.labelSelector.matchExpressions", "[]"),
        "reservedInSelector": "(variables.matchLabels.map(key, key) + variables.matchExpressions.map(each, each.key))"
        f".{reserved}",
        "templateLabels": _value("object", "inference.template.metadata.labels", "{}"),
        "templateLabelsBefore": "oldObject == null ? {} : "
        + _value("oldObject", "inference.template.metadata.labels", "{}"),
        "reservedInTemplate": "variables.templateLabels.map(key, key)"
        f".filter(key, !(key in variables.templateLabelsBefore)).{reserved}",
    }


def _validations() -> list[dict[str, Any]]:
    prefixes = "variables.prefixes.join(', ')"
    return [
        _rule(
            "variables.provisioned || variables.instanceType == '' || !variables.typeChanges",
            _message(INSTANCE_TYPE_GIVEN, given="variables.instanceType"),
        ),
        _rule(
            "!variables.provisioned || variables.instanceType != '' || !variables.typeChanges",
            _message(INSTANCE_TYPE_REQUIRED),
        ),
        # Partition and selector cannot change, so that they are looked at once.
        _rule(
            f"!variables.provisioned || oldObject != null || !({_has('object', 'resource.partition')})",
            _message(PARTITION_FORBIDDEN),
        ),
        _rule(
            "oldObject != null || size(variables.reservedInSelector) == 0",
            _message(SELECTOR_RESERVED, keys="variables.reservedInSelector.join(', ')", prefixes=prefixes),
        ),
        _rule(
            "size(variables.reservedInTemplate) == 0",
            _message(TEMPLATE_RESERVED, keys="variables.reservedInTemplate.join(', ')", prefixes=prefixes),
        ),
    ]


def _rule(expression: str, message: str) -> dict[str, Any]:
    return {"expression": expression, "messageExpression": message, "reason": "Invalid"}


def _setting(field: str) -> str:
    """The Environment's value of a field, else the model's default."""
    alias, default = _FIELDS[field].alias, _FIELDS[field].default
    otherwise = f"[{', '.join(map(_text, default))}]" if isinstance(default, tuple) else _text(default)
    return f"(has(params.spec.{alias}) ? params.spec.{alias} : {otherwise})"


def _value(whole: str, path: str, otherwise: str) -> str:
    return f"({_has(whole, path)} ? {whole}.spec.{path} : {otherwise})"


def _has(whole: str, path: str) -> str:
    """That every step of a path under `spec` is there."""
    steps = path.split(".")
    return " && ".join(f"has({whole}.spec.{'.'.join(steps[: end + 1])})" for end in range(len(steps)))


def _message(template: str, **expressions: str) -> str:
    """A CEL expression that fills a message's `{fields}` with what the expressions of that name say."""
    parts = re.split(r"\{(\w+)\}", template)
    return " + ".join(expressions[part] if odd % 2 else _text(part) for odd, part in enumerate(parts) if part)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
