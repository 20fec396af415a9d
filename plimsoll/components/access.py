"""RBAC rules of the controller, and of users on Plimsoll's kinds."""

from typing import Final

from plimsoll.labels import GROUP
from plimsoll.model.api import MODELS_NAME

NAMESPACE: Final = "plimsoll-system"
SERVICE_ACCOUNT: Final = "plimsoll"
CONTROLLER_NAME: Final = "plimsoll-controller"
"""Name of the controller's Deployment and of its roles."""

Rule = dict[str, list[str]]

_READ: Final = ["get", "list", "watch"]
_SEE: Final = ["list", "watch"]
_OWN: Final = [*_READ, "create", "patch", "delete"]
_KINDS: Final = ["workspaces", "environments"]
_AUTOSCALING: Final = "autoscaling.x-k8s.io"
_RESOURCE: Final = "resource.k8s.io"
_OF_DRA: Final = ["resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"]


def _rule(group: str, resources: list[str], verbs: list[str]) -> Rule:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


CONTROLLER: Final[list[Rule]] = [
    _rule("", ["nodes", "pods"], _SEE),
    # For the pod deletion cost and the capacity gate. It gives no more rights than creating Deployments does.
    _rule("", ["pods"], ["patch"]),
    _rule("scheduling.run.ai", ["queues", "podgroups"], _SEE),
    _rule("kai.scheduler", ["topologies", "schedulingshards"], _SEE),
    _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _SEE),
    _rule("karpenter.sh", ["nodepools", "nodeclaims"], _OWN),
    # NodeOverlays list shared GPUs and MIG slices, which pods request.
    _rule("karpenter.sh", ["nodeoverlays"], _SEE),
    # They say how large the disk is, and which capacity is reserved until when.
    _rule("karpenter.k8s.aws", ["ec2nodeclasses"], _SEE),
    _rule("karpenter.azure.com", ["aksnodeclasses"], _SEE),
    _rule("apps", ["deployments", "statefulsets"], _OWN),
    _rule("", ["services"], _OWN),
    # For the resources that DaemonSets request on each new node.
    _rule("apps", ["daemonsets"], _SEE),
    # For the zones of the pods' volumes.
    _rule("", ["persistentvolumes", "persistentvolumeclaims"], _SEE),
    _rule("storage.k8s.io", ["storageclasses"], _SEE),
    # For Pod Security of namespaces, and for what their quotas leave.
    _rule("", ["namespaces", "resourcequotas"], _SEE),
    # They say why a node is not drained.
    _rule("policy", ["poddisruptionbudgets"], _SEE),
    _rule("leaderworkerset.x-k8s.io", ["leaderworkersets"], _OWN),
    _rule("autoscaling", ["horizontalpodautoscalers"], _SEE),
    # The UID of kube-system identifies the cluster: the controller refuses the Pulumi state of another cluster.
    {**_rule("", ["namespaces"], ["get"]), "resourceNames": ["kube-system"]},
    _rule(GROUP, _KINDS, _READ),
    _rule(GROUP, [f"{kind}/status" for kind in _KINDS], ["patch"]),
    _rule(GROUP, ["workspaces"], ["patch"]),
    _rule("", ["events"], _SEE),
    _rule("events.k8s.io", ["events"], ["create", "patch"]),
    _rule(GROUP, ["gpudemands"], [*_SEE, "create", "patch", "delete"]),
    _rule(GROUP, ["gpudemands/status"], ["patch"]),
    # What is learned of nodes is kept where a NodePool has none left.
    _rule(GROUP, ["nodeprofiles"], [*_SEE, "create", "patch"]),
    _rule(GROUP, ["nodeprofiles/status"], ["patch"]),
    # Devices that pods get by claims.
    _rule(_RESOURCE, _OF_DRA, _SEE),
    # For Workspaces whose pods get GPUs by claims.
    _rule(_RESOURCE, ["resourceclaimtemplates"], _OWN),
    _rule("", ["podtemplates"], _SEE),
    _rule(_AUTOSCALING, ["capacitybuffers", "provisioningrequests"], _SEE),
]
"""Rules in all namespaces: for what the controller reads, creates and writes statuses and events of. It needs each of
them, see tests/e2e/production/test_least_rights.py."""

CONTROLLER_FOR_WORKSPACES: Final[list[Rule]] = [
    _rule("", ["pods"], ["patch"]),
    *(
        _rule(group, resources, ["get", "create", "patch", "delete"])
        for group, resources in (
            ("apps", ["deployments", "statefulsets"]),
            ("", ["services"]),
            ("leaderworkerset.x-k8s.io", ["leaderworkersets"]),
            (_RESOURCE, ["resourceclaimtemplates"]),
        )
    ),
    _rule(GROUP, ["workspaces"], ["patch"]),
]
"""Those of `CONTROLLER` that it needs only in the namespaces that it serves: what it writes there, beside statuses and
events, which also say why a namespace is not served. Pods, nodes and volumes must be read in all namespaces: a GPU that
a pod of an unread namespace uses would count as free."""


def _verbs_elsewhere(rule: Rule) -> list[str]:
    """The verbs of a rule that no rule in the served namespaces grants."""
    own = [each for each in CONTROLLER_FOR_WORKSPACES if each["apiGroups"] == rule["apiGroups"]]
    granted = {verb for each in own if set(rule["resources"]) <= set(each["resources"]) for verb in each["verbs"]}
    return [verb for verb in rule["verbs"] if verb not in granted]


CONTROLLER_ELSEWHERE: Final[list[Rule]] = [
    {**rule, "verbs": verbs} for rule in CONTROLLER if (verbs := _verbs_elsewhere(rule))
]
"""The rest of `CONTROLLER`, which it needs in all namespaces."""

CONTROLLER_IN_ITS_NAMESPACE: Final[list[Rule]] = [
    _rule("coordination.k8s.io", ["leases"], ["create"]),
    {**_rule("coordination.k8s.io", ["leases"], ["get", "update"]), "resourceNames": ["plimsoll"]},
    # The name of a new object is not known to RBAC: an admission policy of the account checks it.
    _rule("", ["configmaps"], ["create"]),
    {**_rule("", ["configmaps"], ["get", "patch"]), "resourceNames": [MODELS_NAME]},
]
"""Rules in the controller's own namespace: for the Lease, so that only one controller writes, and for the ConfigMap
with the data of models that it has read from a hub."""

CONTROLLER_FOR_DEMAND: Final[list[Rule]] = [
    _rule("", ["pods", "podtemplates"], ["get", "create", "patch", "delete"]),
    _rule("", ["pods/status"], ["patch"]),
    _rule(_AUTOSCALING, ["capacitybuffers", "provisioningrequests"], ["get", "create", "patch", "delete"]),
]
"""Rules in the namespace of trigger pods only, so that the controller cannot delete other pods."""

SHARE_BINDER: Final[list[Rule]] = [
    _rule("", ["nodes"], _SEE),
    _rule("", ["pods"], [*_SEE, "patch"]),
    _rule("", ["pods/status"], ["patch"]),
    _rule("", ["pods/binding", "pods/eviction"], ["create"]),
    _rule("", ["configmaps"], ["get", "create", "patch"]),
    _rule("apps", ["deployments"], ["list"]),
    _rule("scheduling.run.ai", ["bindrequests"], ["list"]),
]
"""Rules in all namespaces, because share pods may be in any. Deployments and BindRequests show whether KAI's binder
runs."""
SHARE_BINDER_FOR_RESERVATIONS: Final[list[Rule]] = [_rule("", ["pods"], ["create", "delete"])]
"""Rules in the namespace of reservations only."""
SHARE_BINDER_IN_ITS_NAMESPACE: Final[list[Rule]] = [
    _rule("coordination.k8s.io", ["leases"], ["create"]),
    {**_rule("coordination.k8s.io", ["leases"], ["get", "update"]), "resourceNames": ["plimsoll-bind"]},
]
"""Rules in the namespace of the binder's Lease."""
RESERVATION: Final[list[Rule]] = [_rule("", ["pods"], ["patch"])]
"""Rules of the service account of reservations, in their namespace: each writes its GPU to its own pod."""

UI_IN_ITS_NAMESPACE: Final[list[Rule]] = [
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [MODELS_NAME], "verbs": ["get"]},
]
"""The data of models that the controller has read from a hub: the pages do not ask the hub for them again."""

UI: Final[list[Rule]] = [
    _rule("", ["nodes", "pods", "services", "podtemplates", "events", "namespaces", "resourcequotas"], _READ),
    _rule("", ["persistentvolumes", "persistentvolumeclaims"], _READ),
    _rule("policy", ["poddisruptionbudgets"], _READ),
    _rule("storage.k8s.io", ["storageclasses"], _READ),
    _rule("apps", ["deployments", "statefulsets", "daemonsets"], _READ),
    _rule("leaderworkerset.x-k8s.io", ["leaderworkersets"], _READ),
    _rule("autoscaling", ["horizontalpodautoscalers"], _READ),
    _rule("scheduling.run.ai", ["queues", "podgroups"], _READ),
    _rule("kai.scheduler", ["topologies", "schedulingshards"], _READ),
    _rule("karpenter.sh", ["nodepools", "nodeclaims", "nodeoverlays"], _READ),
    _rule("karpenter.k8s.aws", ["ec2nodeclasses"], _READ),
    _rule("karpenter.azure.com", ["aksnodeclasses"], _READ),
    _rule(_AUTOSCALING, ["capacitybuffers", "provisioningrequests"], _READ),
    _rule(_RESOURCE, _OF_DRA, _READ),
    _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _READ),
    _rule("events.k8s.io", ["events"], ["list"]),
    _rule(GROUP, [*_KINDS, "gpudemands", "nodeprofiles"], _READ),
]
"""Rules in all namespaces: for what the pages of `plimsoll ui` show. They read no Secrets and no ConfigMaps, and write
nothing."""

VIEW: Final[list[Rule]] = [_rule(GROUP, [*_KINDS, "gpudemands", "nodeprofiles"], _READ)]
EDIT: Final[list[Rule]] = [
    _rule(GROUP, ["workspaces"], ["create", "update", "patch", "delete", "deletecollection"]),
]

AGGREGATED: Final[dict[str, list[Rule]]] = {"view": VIEW, "edit": EDIT}
"""Aggregated to the cluster's roles of these names: `edit` includes `view`, `admin` includes `edit`."""
