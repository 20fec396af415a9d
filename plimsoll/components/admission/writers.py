"""Who may write a Workspace whose pods are of the writer's making: who may create pods in the namespace.

The controller creates the pods of Workspaces. Without this rule, whoever may write Workspaces, and no pods, could run
any pod there: as any service account of the namespace, and with its Secrets and volumes. Whoever may create pods can do
all of that without a Workspace; Pod Security and ResourceQuotas of the namespace apply to the pods either way.
"""

from typing import Final

from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.labels import GROUP

WRITER_POLICY: Final = "plimsoll-workspace-writers"

_FIELDS: Final = (
    "inference.template",
    "inference.weights",
    "inference.adapters",
    "inference.config",
    "inference.pods",
    "inference.preset.presetOptions",
)
"""Fields by which a Workspace decides what its pods run, mount or read."""
_MAY: Final = "authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()"
_MESSAGE: Final = (
    "request.userInfo.username + ' may not create pods in namespace ' + request.namespace + ', and ' +"
    " variables.written.join(', ') + ' of Workspace ' + object.metadata.name + ' decides what its pods run, mount or"
    " read: remove it, or have the right to create pods there granted'"
)


def writer_policy() -> AdmissionPolicy:
    """The policy. Who changes other fields of a Workspace, such as its replicas, needs no right to create pods."""
    return denying(
        [resource_rule(GROUP, "workspaces")],
        (f"size(variables.written) == 0 || {_MAY}", _MESSAGE),
        variables={"written": " + ".join(map(_written, _FIELDS))},
    )


def _written(field: str) -> str:
    """CEL expression: a list with the field if the request sets it anew."""
    new, old = (f"{whole}.?spec.?{field.replace('.', '.?')}" for whole in ("object", "oldObject"))
    return f"({new}.hasValue() && (oldObject == null || {old} != {new}) ? ['{field}'] : [])"
