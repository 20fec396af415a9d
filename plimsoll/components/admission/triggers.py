"""Trigger admission: only who may say what demand is may ask for its capacity in the namespace of triggers.

What is made there buys nodes, and the loop reads it back as what was asked for before. The right that counts is that
to write the status of GPUDemands: the controller has it, and cluster administrators, by the cluster's own roles; nobody
gets it by `admin` or `edit` of the namespace, nor do controllers that make pods for others, such as ReplicaSet's.
"""

from typing import Any, Final

import pulumi

from plimsoll.components.admission.guard import AdmissionPolicy
from plimsoll.labels import GROUP

TRIGGER_POLICY: Final = "plimsoll-trigger-namespace"

_TRUSTED: Final = f"authorizer.group('{GROUP}').resource('gpudemands').subresource('status').check('patch').allowed()"
_OF_CLUSTER: Final = (
    "(request.userInfo.username in ['system:kube-scheduler', 'system:kube-controller-manager']"
    " || (has(request.userInfo.groups)"
    " && request.userInfo.groups.exists(each, each in ['system:serviceaccounts:kube-system', 'system:nodes'])))"
)
_MESSAGE: Final = (
    "request.userInfo.username + ' may not write ' + request.resource.resource"
    " + (variables.part == '' ? '' : '/' + variables.part) + ' in ' + request.namespace"
    " + ', where only Plimsoll asks for capacity: put it into another namespace'"
)


def trigger_policy(namespace: pulumi.Input[str]) -> AdmissionPolicy:
    """Of the namespace in which capacity is asked for.

    Bindings and statuses of pods are also the scheduler's, the nodes' and the node lifecycle's; deletions are judged by
    the cluster's roles alone, and the statuses of buffers and requests, which their autoscalers write.
    """
    rules = [
        _rule("", "pods", "pods/binding", "pods/ephemeralcontainers", "pods/resize", "pods/status", "bindings"),
        _rule("", "podtemplates"),
        _rule("autoscaling.x-k8s.io", "capacitybuffers", "provisioningrequests"),
    ]
    lived = "(variables.part in ['binding', 'status'] || request.resource.resource == 'bindings')"
    policy: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceRules": rules,
        },
        "variables": [{"name": "part", "expression": "has(request.subResource) ? request.subResource : ''"}],
        "validations": [
            {
                "expression": f"({lived} && {_OF_CLUSTER}) || {_TRUSTED}",
                "messageExpression": _MESSAGE,
                "reason": "Forbidden",
            }
        ],
    }
    return {"policy": policy, "binding": {"validationActions": ["Deny"]}}


def _rule(group: str, *resources: str) -> dict[str, Any]:
    operations = ["CREATE", "UPDATE"]
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": [*resources]}
