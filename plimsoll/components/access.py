"""RBAC rules of the controller, and of users on Plimsoll's kinds."""

from typing import Any, Final

from plimsoll.labels import GROUP

NAMESPACE: Final = "plimsoll-system"
SERVICE_ACCOUNT: Final = "plimsoll"

Rule = dict[str, list[str]]

_READ: Final = ["get", "list", "watch"]
_SEE: Final = ["list", "watch"]
_OWN: Final = [*_READ, "create", "patch", "delete"]
_KINDS: Final = ["workspaces", "environments"]
_AUTOSCALING: Final = "autoscaling.x-k8s.io"


def _rule(group: str, resources: list[str], verbs: list[str]) -> Rule:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


CONTROLLER: Final[list[Rule]] = [
    _rule("", ["nodes", "pods"], _SEE),
    # For the pod deletion cost and the capacity gate. It gives no more rights than creating Deployments does.
    _rule("", ["pods"], ["patch"]),
    _rule("scheduling.run.ai", ["queues", "podgroups"], _SEE),
    _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _SEE),
    _rule("karpenter.sh", ["nodepools", "nodeclaims"], _OWN),
    # For pods that request the devices which they list.
    _rule("karpenter.sh", ["nodeoverlays"], _SEE),
    _rule("apps", ["deployments", "statefulsets"], _OWN),
    _rule("", ["services"], _OWN),
    # For the resources that DaemonSets request on each new node.
    _rule("apps", ["daemonsets"], _SEE),
    _rule("leaderworkerset.x-k8s.io", ["leaderworkersets"], _OWN),
    _rule("autoscaling", ["horizontalpodautoscalers"], _SEE),
    # Its UID says which cluster it is: the state of another is refused.
    {**_rule("", ["namespaces"], ["get"]), "resourceNames": ["kube-system"]},
    _rule(GROUP, _KINDS, _READ),
    _rule(GROUP, [f"{kind}/status" for kind in _KINDS], ["patch"]),
    _rule(GROUP, ["workspaces"], ["patch"]),
    _rule("", ["events"], _SEE),
    _rule("events.k8s.io", ["events"], ["create", "patch"]),
    _rule(GROUP, ["gpudemands"], [*_SEE, "create", "patch", "delete"]),
    _rule(GROUP, ["gpudemands/status"], ["patch"]),
    _rule("", ["podtemplates"], _SEE),
    _rule(_AUTOSCALING, ["capacitybuffers", "provisioningrequests"], _SEE),
]
"""In all namespaces: what the controller reads, owns and reports to. Each right is used, see
tests/e2e/production/test_least_rights.py."""

CONTROLLER_IN_ITS_NAMESPACE: Final[list[Rule]] = [
    _rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
    _rule("", ["configmaps"], ["get", "create", "patch"]),
]
"""In its own namespace: the Lease, so that each environment has one writer, and the models that a hub said of."""

CONTROLLER_FOR_DEMAND: Final[list[Rule]] = [
    _rule("", ["pods", "podtemplates"], ["get", "create", "patch", "delete"]),
    _rule("", ["pods/status"], ["patch"]),
    _rule(_AUTOSCALING, ["capacitybuffers", "provisioningrequests"], ["get", "create", "patch", "delete"]),
]
"""In the namespace of trigger pods only, so that the controller cannot delete other pods."""

UI: Final[list[Rule]] = [
    _rule("", ["nodes", "pods", "services", "podtemplates", "events"], _READ),
    _rule("apps", ["deployments", "statefulsets", "daemonsets"], _READ),
    _rule("leaderworkerset.x-k8s.io", ["leaderworkersets"], _READ),
    _rule("autoscaling", ["horizontalpodautoscalers"], _READ),
    _rule("scheduling.run.ai", ["queues", "podgroups"], _READ),
    _rule("karpenter.sh", ["nodepools", "nodeclaims", "nodeoverlays"], _READ),
    _rule(_AUTOSCALING, ["capacitybuffers", "provisioningrequests"], _READ),
    _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),
    _rule("events.k8s.io", ["events"], ["list"]),
    _rule(GROUP, [*_KINDS, "gpudemands"], _READ),
]
"""In all namespaces: what the pages of `plimsoll ui` show. No Secrets, no ConfigMaps, and nothing is written."""

VIEW: Final[list[Rule]] = [_rule(GROUP, [*_KINDS, "gpudemands"], _READ)]
EDIT: Final[list[Rule]] = [
    _rule(GROUP, ["workspaces"], ["create", "update", "patch", "delete", "deletecollection"]),
]

AGGREGATED: Final[dict[str, list[Rule]]] = {"view": VIEW, "edit": EDIT}
"""Aggregated to the cluster's roles of these names: `edit` includes `view`, `admin` includes `edit`."""


def controller_subject() -> dict[str, Any]:
    return {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
