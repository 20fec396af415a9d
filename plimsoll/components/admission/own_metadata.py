"""Who may write Plimsoll's labels, annotations and finalizers, who takes its gate from a pod, and who may say on which
GPU a pod's share is.

The controller finds its objects by labels, and the share binder and KAI record in labels where shares are. Tenants may
write the labels of their own objects, so the apiserver refuses these keys to everybody else. Objects of the cluster,
such as nodes and NodeClaims, are left to RBAC: the roles `edit` and `admin` do not include them.
"""

from typing import Final

from plimsoll.components.access import NAMESPACE
from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.components.binder import BINDER
from plimsoll.labels import DEVICE_CLASS_PREFIX, GPU_GROUP, GPU_GROUP_PREFIX, GROUP
from plimsoll.model.kai import CONTAINER_PREFIXES, SHARE_ANNOTATIONS
from plimsoll.model.tensor_fusion import GPU_IDS
from plimsoll.policy import text, texts, value

OWN_METADATA_POLICY: Final = "plimsoll-own-metadata"
PLACEMENT_POLICY: Final = "plimsoll-share-placement"

UNCHECKED: Final = {
    "": ("persistentvolumeclaims", "resourcequotas", "events"),
    "autoscaling": ("horizontalpodautoscalers",),
    "policy": ("poddisruptionbudgets",),
    "resource.k8s.io": ("resourceclaims",),
    "scheduling.run.ai": ("podgroups",),
}
"""Kinds in namespaces, by API group, that the controller lists and never creates: it reads none of its own keys of
them, so that a forged one has no effect. Their writes, which are many, do not wait for the policy."""

_OWN: Final = f"key.startsWith('{GROUP}/')"
_ADMINISTERS: Final = (
    f"(authorizer.group('{GROUP}').resource('gpudemands').subresource('status').check('patch').allowed()"
    f" || authorizer.group('{GROUP}').resource('environments').check('update').allowed())"
)
"""The controller has the first right, and administrators of the environment have the second."""
_BINDER: Final = text(f"system:serviceaccount:{NAMESPACE}:{BINDER}")
_OF_WORKLOADS: Final = (
    "(request.userInfo.username in ['system:kube-controller-manager',"
    " 'system:serviceaccount:lws-system:lws-controller-manager'] || (has(request.userInfo.groups)"
    " && request.userInfo.groups.exists(each, each in ['system:serviceaccounts:kube-system', 'system:nodes'])))"
)
"""Controllers that copy the labels of a template, which was checked when the workload was written, and the kubelets."""
_MAY_BIND: Final = "authorizer.group('').resource('pods').subresource('binding').check('create').allowed()"
"""In every namespace: schedulers and binders may, KAI's among them."""


def own_metadata_policy() -> AdmissionPolicy:
    """The policy for objects in namespaces that the controller lists, but those UNCHECKED, and for workloads whose pods
    it would list."""
    names = f"[{_BINDER}]"
    variables = {
        "changed": " + ".join((_changed("labels", _OWN), _changed("annotations", _OWN), _finalizers(), _gates())),
        "templates": _templates("object"),
        "templatesBefore": f"oldObject == null ? [] : ({_templates('oldObject')})",
        "inTemplates": f"!({' && '.join(map(_kept_in_templates, ('labels', 'annotations')))})",
    }
    message = (
        "request.userInfo.username + ' may not write ' + (size(variables.changed) > 0 ? variables.changed[0] :"
        f" 'keys of {GROUP} in a pod template') + ' of ' + request.resource.resource + ': only Plimsoll and the"
        " administrators of its Environment may; remove it'"
    )
    return denying(
        [
            resource_rule("", "pods", "services", "podtemplates", "replicationcontrollers"),
            resource_rule("apps", "deployments", "statefulsets", "daemonsets", "replicasets"),
            resource_rule("batch", "jobs", "cronjobs"),
            resource_rule("leaderworkerset.x-k8s.io", "leaderworkersets"),
            resource_rule("autoscaling.x-k8s.io", "capacitybuffers", "provisioningrequests"),
            resource_rule("resource.k8s.io", "resourceclaimtemplates"),
            resource_rule(GROUP, "workspaces"),
        ],
        (
            f"(size(variables.changed) == 0 && !variables.inTemplates) || {_OF_WORKLOADS}"
            f" || request.userInfo.username in {names} || {_ADMINISTERS}",
            message,
        ),
        variables=variables,
    )


def placement_policy() -> AdmissionPolicy:
    """The policy for pods: a share of a GPU is where the scheduler or binder that placed it says, not the tenant."""
    group = f"key == {text(GPU_GROUP)} || key.startsWith({text(GPU_GROUP_PREFIX)})"
    # As `is_device`: other vendors' devices, and those of sharedDevices and DeviceClasses, have any name.
    device = f"name.contains('/') && (!name.contains('kubernetes.io/') || name.startsWith({text(DEVICE_CLASS_PREFIX)}))"
    devices = " || ".join(
        f"{value('each', f'resources.{amounts}', '{}')}.exists(name, {device})" for amounts in ("limits", "requests")
    )
    shares = (
        "object.metadata.?annotations.orValue({}).exists(key,"
        f" key in {texts(SHARE_ANNOTATIONS)} || {texts((*CONTAINER_PREFIXES, 'tensor-fusion.ai/'))}.exists(prefix,"
        " key.startsWith(prefix)))"
    )
    claims = "size(object.spec.?resourceClaims.orValue([])) > 0"
    variables = {
        "changed": f"{_changed('labels', group)} + {_changed('annotations', f'key == {text(GPU_IDS)}')}",
        "devices": f"(object.spec.containers + {value('object', 'spec.initContainers', '[]')}).exists(each, {devices})",
        "named": "request.operation == 'CREATE' && object.spec.?nodeName.orValue('') != ''"
        f" && ({shares} || variables.devices || {claims})",
    }
    message = (
        "request.userInfo.username + ' may not say where pod ' + object.metadata.?name.orValue('') + ' uses a GPU, by '"
        " + (size(variables.changed) > 0 ? variables.changed[0] : 'spec.nodeName') + ': the scheduler or the share"
        " binder does; remove it'"
    )
    # The cost of an expression allows two questions of rights at most.
    allowed = (
        f"(size(variables.changed) == 0 && !variables.named) || request.userInfo.username == {_BINDER} || {_MAY_BIND}"
    )
    return denying([resource_rule("", "pods")], (allowed, message), variables=variables)


def _changed(field: str, meant: str) -> str:
    """CEL expression: the keys of labels or annotations that the request sets, changes or removes, of those meant."""
    old = f"(oldObject == null ? {{}} : oldObject.metadata.?{field}.orValue({{}}))"
    new = f"object.metadata.?{field}.orValue({{}})"
    differs = f"(key in {old}) != (key in {new}) || {old}[?key].orValue('') != {new}[?key].orValue('')"
    return f"({old}.map(key, key) + {new}.map(key, key)).filter(key, ({meant}) && ({differs}))"


def _finalizers() -> str:
    old = "(oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([]))"
    new = "object.metadata.?finalizers.orValue([])"
    return f"({old} + {new}).filter(key, {_OWN} && (key in {old}) != (key in {new}))"


def _gates() -> str:
    """CEL expression: our gates that the request takes from a pod. Whoever sets one only holds back its own pod."""
    gates = "{}.?spec.?schedulingGates.orValue([])"
    kept = f"{gates.format('object')}.exists(each, each.name == key)"
    return (
        f"(oldObject == null ? [] : {gates.format('oldObject')}.map(each, string(each.name))"
        f".filter(key, {_OWN} && !{kept}))"
    )


def _templates(whole: str) -> str:
    """CEL expression: the pod templates of a workload; none of another object."""
    groups = f"{whole}.spec.leaderWorkerTemplate"
    return (
        f"{whole}.kind == 'CronJob' ? [{whole}.spec.jobTemplate.spec.template]"
        f" : {whole}.kind == 'LeaderWorkerSet' ? [{groups}.workerTemplate]"
        f" + (has({groups}.leaderTemplate) ? [{groups}.leaderTemplate] : [])"
        f" : {whole}.kind in ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job']"
        f" ? [{whole}.spec.template] : {whole}.kind == 'PodTemplate' ? [{whole}.template] : []"
    )


def _kept_in_templates(field: str) -> str:
    """CEL expression: whether each of our keys in a template was there before, with its value."""
    values = f"metadata.?{field}.orValue({{}})"
    return (
        f"variables.templates.all(each, each.?{values}.all(key, !({_OWN})"
        f" || variables.templatesBefore.exists(old, key in old.?{values}"
        f" && old.metadata.{field}[key] == each.metadata.{field}[key])))"
    )
