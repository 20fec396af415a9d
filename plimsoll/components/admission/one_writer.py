"""Admission of the controller's writes: only from the pod that holds the Lease.

A process that was paused past the end of its Lease continues where it stopped, before it can look at its Lease. The
apiserver knows the pod of a request by its token, which is bound to the pod, and the pod of the holder by the end of
`spec.holderIdentity` (see `Lease.identify`), so it refuses what a former holder writes.
"""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.components.access import NAMESPACE, SERVICE_ACCOUNT
from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.labels import SHARD
from plimsoll.policy import text

LEASE_NAME: Final = "plimsoll"
_POD: Final = "authentication.kubernetes.io/pod-{}"
_BOUND: Final = text("[.][0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""Pattern of the end of a holder's identity that names a pod by its UID."""
_MESSAGE: Final = (
    "'the Lease plimsoll is held by ' + (variables.holder == '' ? 'nobody' : variables.holder) + ', and this request of"
    " the controller comes from ' + (variables.uid == '' ? 'outside of a pod' : 'the pod ' + variables.name)"
    " + ': only the holder may write; if the Lease says another one, these policies were deleted and created again:"
    " restart the apiservers'"
)
_NODES: Final = {"karpenter.sh": ("nodeclaims", "nodepools")}
_LABELLED: Final = {
    "": ("pods", "podtemplates", "services"),
    "apps": ("deployments", "statefulsets"),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "resource.k8s.io": ("resourceclaimtemplates",),
    "autoscaling.x-k8s.io": ("capacitybuffers", "provisioningrequests"),
}


def one_writer_policies() -> dict[str, AdmissionPolicy]:
    """By name: the policy for nodes, and that for other objects with the label of a stack.

    Two, because the second leaves other objects of these common kinds alone, even where it cannot be evaluated. A
    NodeClaim that Karpenter creates from a NodePool of the controller has no such label.
    """
    labelled = {"objectSelector": {"matchExpressions": [{"key": SHARD, "operator": "Exists"}]}}
    return {"plimsoll-one-writer-nodes": _policy(_NODES), "plimsoll-one-writer": _policy(_LABELLED, labelled)}


def _policy(kinds: Mapping[str, tuple[str, ...]], selected: dict[str, Any] | None = None) -> AdmissionPolicy:
    account = text(f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}")
    variables = {
        "holder": "has(params.spec.holderIdentity) ? params.spec.holderIdentity : ''",
        "name": _extra("name"),
        "uid": _extra("uid"),
        # Release 0.1 named its pod by the hostname alone.
        "holds": "variables.uid == '' ? variables.holder != '' && !variables.holder.matches("
        f"{_BOUND}) : variables.holder.endsWith('.' + variables.uid) || (!variables.holder.matches({_BOUND})"
        " && variables.holder.startsWith(variables.name + '_'))",
    }
    rules = [
        resource_rule(group, *resources, operations=("CREATE", "UPDATE", "DELETE"))
        for group, resources in kinds.items()
    ]
    made = denying(
        rules,
        ("variables.holds", _MESSAGE),
        variables=variables,
        conditions={"controller": f"request.userInfo.username == {account}"},
        constraints=selected,
    )
    made["policy"]["paramKind"] = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    # Before the first controller has made the Lease, there is none to wait for; Deny would refuse everybody's writes.
    made["binding"]["paramRef"] = {"name": LEASE_NAME, "namespace": NAMESPACE, "parameterNotFoundAction": "Allow"}
    return made


def _extra(attribute: str) -> str:
    """CEL expression: an attribute of the pod to which the user's token is bound; empty if there is none."""
    key = text(_POD.format(attribute))
    extra = "request.userInfo.extra"
    return f"has({extra}) && {key} in {extra} && size({extra}[{key}]) > 0 ? {extra}[{key}][0] : ''"
