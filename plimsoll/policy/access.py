"""Rules on what an Environment lets the Workspaces of a namespace use, as far as a Workspace alone says it.

NodePools and GPUs in all depend on nodes: the loop alone judges them.
"""

from collections.abc import Iterator
from typing import Any, Final

from plimsoll.labels import GROUP
from plimsoll.model.api import NAMESPACE_NOT_NAMED, NONE_ALLOWED, QUEUE_NOT_ALLOWED, TYPE_NOT_ALLOWED, tenancy_violation
from plimsoll.policy.cel import message, setting, value
from plimsoll.policy.cel import text as quoted
from plimsoll.policy.fields import Manifest, is_kind, section, text
from plimsoll.policy.rule import Cel, Family, Fault, Needs, Rule, Subject
from plimsoll.policy.world import World


def _allowed(manifest: Manifest, world: World, _: Any) -> Iterator[Fault]:
    if world.tenancy is None or not is_kind(manifest, GROUP, "Workspace"):
        return
    violation = tenancy_violation(
        world.tenancy,
        text(section(manifest, "metadata"), "namespace") or "default",
        queue=text(section(manifest, "spec"), "queue"),
        instance_type=text(section(manifest, "spec", "resource"), "instanceType"),
    )
    if violation is not None:
        yield Fault(violation.field, violation.message)


_ENTRY: Final = "variables.access[0]"
_VARIABLES: Final = {
    "accessEntries": setting("access"),
    # The entry that names the namespace comes before the one for every other.
    "access": "variables.accessEntries.filter(each, object.metadata.namespace in each.namespaces)"
    " + variables.accessEntries.filter(each, '*' in each.namespaces)",
    "namespaceNamed": "size(variables.accessEntries) == 0 || size(variables.access) > 0",
    "askedQueue": value("object", "spec.queue", "''"),
    "queueAllowed": f"variables.askedQueue == '' || size(variables.access) == 0 || !has({_ENTRY}.queues)"
    f" || variables.askedQueue in {_ENTRY}.queues",
    "askedType": value("object", "spec.resource.instanceType", "''"),
    "typeAllowed": f"{setting('node_auto_provisioning')} != 'enabled' || variables.askedType == ''"
    f" || size(variables.access) == 0 || !has({_ENTRY}.instanceTypes)"
    f" || {_ENTRY}.instanceTypes.exists(each, each.lowerAscii() == variables.askedType.lowerAscii())",
}


def _said(template: str, listed: str, **asked: str) -> str:
    """The message with what the entry allows."""
    allowed = f"(size({_ENTRY}.{listed}) == 0 ? {quoted(NONE_ALLOWED)} : {_ENTRY}.{listed}.join(', '))"
    return message(template, namespace="object.metadata.namespace", allowed=allowed, **asked)


RULES: Final = (
    Rule(
        "workspace-access",
        Family.QUEUES,
        "A Workspace uses only the queues and instance types that the Environment's access lets its namespace use.",
        "Ask for what is allowed, or have the Environment's access changed.",
        ("Workspace",),
        _allowed,
        needs=Needs.ENVIRONMENT,
        cel=Cel(
            (Subject.WORKSPACES,),
            "variables.namespaceNamed && variables.queueAllowed && variables.typeAllowed",
            _VARIABLES,
            f"!variables.namespaceNamed ? ({message(NAMESPACE_NOT_NAMED, namespace='object.metadata.namespace')})"
            f" : !variables.queueAllowed ? ({_said(QUEUE_NOT_ALLOWED, 'queues', queue='variables.askedQueue')})"
            f" : ({_said(TYPE_NOT_ALLOWED, 'instanceTypes', instance_type='variables.askedType')})",
        ),
    ),
)
"""The rules of this module."""
