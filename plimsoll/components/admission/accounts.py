"""What the accounts of the controller and of the share binder may write.

Their roles, which know no labels, allow more: whoever has stolen such a token still changes no object that the account
has not made.
"""

from typing import Any, Final

from plimsoll.components.access import NAMESPACE, SERVICE_ACCOUNT
from plimsoll.components.admission.changed_keys import changed_keys
from plimsoll.components.admission.policy import AdmissionPolicy, denying, resource_rule
from plimsoll.labels import (
    DEMAND,
    GPU_GROUP,
    GPU_GROUP_PREFIX,
    OWNER_NAMESPACE,
    OWNER_QUEUE,
    RESERVED_GPU,
    SELECTED_NODE,
    SHARD,
    WORKSPACE_UID,
)
from plimsoll.model.api import GATE_REMOVED_REASON, MODELS_NAME
from plimsoll.model.cluster import NVIDIA_VISIBLE_DEVICES, config_map_names
from plimsoll.policy import text, texts

CONTROLLER_POLICY: Final = "plimsoll-controller-account"
BINDER_POLICY: Final = "plimsoll-binder-account"

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_CONFIG_MAP_KEYS: Final = (NVIDIA_VISIBLE_DEVICES, "RUNAI-VISIBLE-DEVICES", "GPU_PORTION", "RUNAI_NUM_OF_GPUS")
"""Those that the binder writes (`plimsoll.bind.config_maps`)."""
_CHANGES: Final = ("CREATE", "UPDATE", "DELETE")
_SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")
_NAMESPACE: Final = "(has(request.namespace) ? request.namespace : '')"
_NOT_SYSTEM: Final = f"!({_NAMESPACE} in {texts(_SYSTEM_NAMESPACES)})"
_IS_POD_UPDATE: Final = "request.resource.resource == 'pods' && request.operation == 'UPDATE'"
_SAME_CONTAINERS: Final = " && ".join(
    f"object.spec.?{field}.orValue([]) == oldObject.spec.?{field}.orValue([])"
    for field in ("containers", "initContainers", "tolerations")
)
"""The fields of a pod's spec that an update may change, beside its scheduling gates."""


def controller_policy() -> AdmissionPolicy:
    """The policy for the controller: objects with its labels, its ConfigMap, of other pods the capacity gate, the
    deletion cost and what it says of them, and of other NodeClaims whom they are for. The spec of a NodeClaim never
    changes: Karpenter's definition refuses it."""
    changed = " + ".join(
        [
            changed_keys("labels", (), others=True),
            changed_keys("annotations", (DELETION_COST, GATE_REMOVED_REASON), others=True),
        ]
    )
    owners = " + ".join(
        [
            changed_keys("labels", (DEMAND, OWNER_NAMESPACE, OWNER_QUEUE), others=True),
            changed_keys("annotations", (), others=True),
        ]
    )
    variables = {
        "ours": f"{texts((SHARD, WORKSPACE_UID))}.exists(key, key in"
        " (oldObject != null ? oldObject : object).metadata.?labels.orValue({}))",
        "podUpdate": _IS_POD_UPDATE,
        "namesOwner": "request.resource.resource == 'nodeclaims' && request.operation == 'UPDATE'"
        " && object.metadata.?finalizers == oldObject.metadata.?finalizers"
        " && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences"
        f" && size({owners}) == 0",
    }
    rules = [
        resource_rule("apps", "deployments", "statefulsets", operations=_CHANGES),
        resource_rule("", "services", "pods", "podtemplates", operations=_CHANGES),
        resource_rule("", "configmaps"),
        resource_rule("resource.k8s.io", "resourceclaimtemplates", operations=_CHANGES),
        resource_rule("leaderworkerset.x-k8s.io", "leaderworkersets", operations=_CHANGES),
        resource_rule("karpenter.sh", "nodeclaims", "nodepools", operations=_CHANGES),
    ]
    validations = [
        (_NOT_SYSTEM, "'writes to ' + request.namespace"),
        (
            "request.resource.resource == 'configmaps' || variables.podUpdate || variables.ours"
            " || variables.namesOwner",
            "'writes to ' + request.resource.resource + ' without the label ' + " + text(SHARD),
        ),
        (
            f"request.resource.resource != 'configmaps' || ({_NAMESPACE} == {text(NAMESPACE)}"
            f" && object.metadata.name == {text(MODELS_NAME)})",
            "'writes to another ConfigMap than ' + " + text(MODELS_NAME),
        ),
        (
            f"!variables.podUpdate || variables.ours || ({_SAME_CONTAINERS} && size({changed}) == 0)",
            "'changes more of a pod than its capacity gate and its deletion cost'",
        ),
    ]
    return _policy("the controller", SERVICE_ACCOUNT, rules, variables, validations)


def binder_policy(account: str, scheduler_name: str, reservations: str) -> AdmissionPolicy:
    """The policy for the share binder: of pods with its scheduler name the group labels and the chosen node, of
    reservations the GPU, and ConfigMaps of pods that hold nothing but GPUs."""
    changed = " + ".join(
        [
            changed_keys("labels", (GPU_GROUP,), (GPU_GROUP_PREFIX,), others=True),
            changed_keys("annotations", (SELECTED_NODE, RESERVED_GPU), others=True),
        ]
    )
    single, direct = config_map_names("")
    keys = texts(_CONFIG_MAP_KEYS)
    variables = {
        "podUpdate": _IS_POD_UPDATE,
        "handed": "request.resource.resource == 'configmaps'",
    }
    rules = [
        resource_rule("", "pods", "pods/status", operations=_CHANGES),
        resource_rule("", "pods/binding", "pods/eviction", operations=("CREATE",)),
        resource_rule("", "configmaps"),
    ]
    of_pods = "{0}.metadata.?ownerReferences.orValue([]).all(owner, owner.kind == 'Pod')"
    validations = [
        (_NOT_SYSTEM, "'writes to ' + request.namespace"),
        (
            f"!variables.podUpdate || {_NAMESPACE} == {text(reservations)}"
            f" || oldObject.spec.schedulerName == {text(scheduler_name)}",
            f"'writes to a pod of another scheduler than ' + {text(scheduler_name)}",
        ),
        (
            f"!variables.podUpdate || ({_SAME_CONTAINERS} && size({changed}) == 0)",
            "'changes more of a pod than its node and its GPUs'",
        ),
        (
            f"!variables.handed || ([{text(single)}, {text(direct)}].exists(end, object.metadata.name.endsWith(end))"
            f" && object.?data.orValue({{}}).all(key, key in {keys}) && !has(object.binaryData)"
            f" && {of_pods.format('object')}"
            f" && (oldObject == null || (oldObject.?data.orValue({{}}).all(key, key in {keys})"
            f" && {of_pods.format('oldObject')})))",
            "'writes to a ConfigMap that does not hold the GPUs of a pod'",
        ),
    ]
    return _policy("the share binder", account, rules, variables, validations)


def _policy(
    who: str,
    account: str,
    rules: list[dict[str, Any]],
    variables: dict[str, str],
    validations: list[tuple[str, str]],
) -> AdmissionPolicy:
    user = text(f"system:serviceaccount:{NAMESPACE}:{account}")
    begin = text(f"the account of {who} ")
    return denying(
        rules,
        *((expression, f"{begin} + {what} + ', which it never does by itself'") for expression, what in validations),
        variables=variables,
        conditions={"account": f"request.userInfo.username == {user}"},
    )
