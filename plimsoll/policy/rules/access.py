"""The rule on which queues and instance types an Environment allows the Workspaces of a namespace to use.

Allowed NodePools and total GPUs, and the types of existing nodes, depend on nodes: only the controller checks them.
"""

from collections.abc import Iterator
from typing import Any, Final

from plimsoll.labels import GROUP, QUEUE
from plimsoll.model.api import NAMESPACE_NOT_NAMED, NONE_ALLOWED, QUEUE_NOT_ALLOWED, TYPE_NOT_ALLOWED, tenancy_violation
from plimsoll.model.kai import PROJECT
from plimsoll.model.meta import section
from plimsoll.policy.cel import message, setting, value
from plimsoll.policy.cel import text as quoted
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, text
from plimsoll.policy.rule import Cel, Family, Fault, Needs, Rule, Subject
from plimsoll.policy.workspaces import template_labels, workspace_of


def _allowed(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    workspace = workspace_of(manifest)
    if context.tenancy is None or workspace is None or not is_kind(manifest, GROUP, "Workspace"):
        return
    violation = tenancy_violation(
        context.tenancy,
        text(section(manifest, "metadata"), "namespace") or "default",
        queue=text(section(manifest, "spec"), "queue"),
        labels=template_labels(manifest),
        instance_types=workspace.instance_types,
    )
    if violation is not None:
        yield Fault(violation.field, violation.message)


def _label(key: str) -> str:
    """The pods' label whose key is the value of an expression."""
    return f"({key} in variables.podLabels ? variables.podLabels[{key}] : '')"


_ENTRY: Final = "variables.access[0]"
_VARIABLES: Final = {
    "accessEntries": setting("access"),
    # The entry that names the namespace comes before the one for every other.
    "access": "variables.accessEntries.filter(each, object.metadata.namespace in each.namespaces)"
    " + variables.accessEntries.filter(each, '*' in each.namespaces)",
    "namespaceNamed": "size(variables.accessEntries) == 0 || size(variables.access) > 0",
    "ownQueue": value("object", "spec.queue", "''"),
    "podLabels": value("object", "spec.inference.template.metadata.labels", "{}"),
    "nodePool": _label(setting("node_pool_label_key")),
    "projectLabel": _label(quoted(PROJECT)),
    "project": "variables.projectLabel != '' && variables.nodePool != ''"
    " ? variables.projectLabel + '-' + variables.nodePool : variables.projectLabel",
    "queueLabel": _label(quoted(QUEUE)),
    "requestedQueue": "variables.ownQueue != '' ? variables.ownQueue"
    " : variables.queueLabel != '' ? variables.queueLabel : variables.project",
    "queueAllowed": f"variables.requestedQueue == '' || size(variables.access) == 0 || !has({_ENTRY}.queues)"
    f" || variables.requestedQueue in {_ENTRY}.queues",
    "requestedTypes": f"[{value('object', 'spec.resource.instanceType', quoted(''))}].filter(each, each != '')"
    f" + {value('object', 'spec.resource.instanceTypes', '[]')}",
    "typeMatters": f"{setting('node_auto_provisioning')} == 'enabled' || {setting('byo_instance_type')} == 'narrow'",
    "typesRefused": f"!variables.typeMatters || size(variables.access) == 0 || !has({_ENTRY}.instanceTypes) ? []"
    f" : variables.requestedTypes.filter(asked, !{_ENTRY}.instanceTypes.exists(each,"
    " each.lowerAscii() == asked.lowerAscii()))",
}


def _message(template: str, listed: str, **values: str) -> str:
    """The message, with what the entry allows."""
    allowed = f"(size({_ENTRY}.{listed}) == 0 ? {quoted(NONE_ALLOWED)} : {_ENTRY}.{listed}.join(', '))"
    return message(template, namespace="object.metadata.namespace", allowed=allowed, **values)


RULES: Final = (
    Rule(
        "workspace-access",
        Family.QUEUES,
        "A Workspace uses only queues and instance types that the Environment's `access` allows its namespace.",
        "Use an allowed queue and instance type, or change the Environment's `access`.",
        ("Workspace",),
        _allowed,
        needs=Needs.ENVIRONMENT,
        cel=Cel(
            (Subject.WORKSPACES,),
            "variables.namespaceNamed && variables.queueAllowed && size(variables.typesRefused) == 0",
            _VARIABLES,
            f"!variables.namespaceNamed ? ({message(NAMESPACE_NOT_NAMED, namespace='object.metadata.namespace')})"
            f" : !variables.queueAllowed ? ({_message(QUEUE_NOT_ALLOWED, 'queues', queue='variables.requestedQueue')})"
            f" : ({_message(TYPE_NOT_ALLOWED, 'instanceTypes', instance_type='variables.typesRefused[0]')})",
        ),
    ),
)
"""The rules of this module."""
