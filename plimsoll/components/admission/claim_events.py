"""Who may write the Events by which NodeClaims count as failed for lack of capacity: whoever writes the statuses of
NodeClaims, as Karpenter does.

Events about objects of the cluster are in `default`, and a tenant with the role `edit` there may write Events.
"""

from typing import Final

from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.labels import NAMESPACE_NAME

CLAIM_EVENT_POLICY: Final = "plimsoll-node-claim-events"

_ABOUT: Final = "object.?involvedObject.kind.orValue(object.?regarding.kind.orValue('')) == 'NodeClaim'"
_MAY: Final = "authorizer.group('karpenter.sh').resource('nodeclaims').subresource('status').check('patch').allowed()"
_MESSAGE: Final = (
    "request.userInfo.username + ' may not say of a NodeClaim that there is no capacity: only who may patch the status"
    " of NodeClaims, such as Karpenter, may'"
)


def claim_event_policy() -> AdmissionPolicy:
    """The policy for Events `InsufficientCapacityError` in `default`."""
    return denying(
        [resource_rule(group, "events") for group in ("", "events.k8s.io")],
        (_MAY, _MESSAGE),
        conditions={"no-capacity": f"object.?reason.orValue('') == 'InsufficientCapacityError' && {_ABOUT}"},
        constraints={"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: "default"}}},
    )
