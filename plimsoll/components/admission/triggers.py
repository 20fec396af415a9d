"""Admission in the namespace of capacity requests: only Plimsoll and cluster administrators may create or change them.

An autoscaler launches nodes for the objects in that namespace, and the controller reads them as its own earlier
requests. Whoever writes there must have the right to patch the status of GPUDemands. The controller has this right, and
cluster administrators have it. The roles `admin` and `edit` of the namespace do not include it, and controllers that
create pods for others, such as that of ReplicaSets, do not have it.
"""

from typing import Final

import pulumi

from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.labels import GROUP, NAMESPACE_NAME

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
    " + ', where only Plimsoll requests capacity: use another namespace'"
)


def trigger_policy(namespace: pulumi.Input[str]) -> AdmissionPolicy:
    """The policy for the namespace of capacity requests.

    The scheduler, the kubelets and the controllers of the control plane may write bindings and statuses of pods, too.
    Two kinds of requests are not checked here but by RBAC alone: deletions, and writes to the statuses of
    CapacityBuffers and ProvisioningRequests, which their autoscalers write.
    """
    rules = [
        resource_rule("", "pods", "pods/binding", "pods/ephemeralcontainers", "pods/resize", "pods/status", "bindings"),
        resource_rule("", "podtemplates"),
        resource_rule("autoscaling.x-k8s.io", "capacitybuffers", "provisioningrequests"),
    ]
    binding_or_status = "(variables.part in ['binding', 'status'] || request.resource.resource == 'bindings')"
    return denying(
        rules,
        (f"({binding_or_status} && {_OF_CLUSTER}) || {_TRUSTED}", _MESSAGE),
        variables={"part": "has(request.subResource) ? request.subResource : ''"},
        constraints={"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: namespace}}},
    )
