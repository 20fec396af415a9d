"""Keeps what running pods that share GPUs say about their GPUs.

The share binder reads from labels and annotations which GPU a running pod uses, and how much of it, and anyone who may
change the pod could change these: the GPU would then be assigned to other pods as well.
"""

from collections.abc import Iterable
from typing import Any, Final

from plimsoll.components.admission.policy import AdmissionPolicy
from plimsoll.labels import GPU_GROUP, GPU_GROUP_PREFIX, GPU_PORTION, VISIBLE_DEVICES
from plimsoll.model.kai import CONTAINER_PREFIXES, SHARE_ANNOTATIONS
from plimsoll.model.tensor_fusion import GPU_IDS
from plimsoll.policy import text, texts

SHARE_POD_POLICY: Final = "plimsoll-share-pods"

_MESSAGE: Final = (
    "'Pod ' + object.metadata.name + ' runs on GPUs that ' + variables.changed[0] + ' tells, which cannot be changed:"
    " delete the pod, and create it anew'"
)


def share_pod_policy(scheduler_name: str) -> AdmissionPolicy:
    """The policy for bound pods with this scheduler name, which the share binder has bound. The binder itself writes to
    pods before they are bound, and with the binding."""
    conditions = {
        "ours": f"has(oldObject.spec.schedulerName) && oldObject.spec.schedulerName == {text(scheduler_name)}",
        "bound": "has(oldObject.spec.nodeName) && oldObject.spec.nodeName != ''",
    }
    labels = _changed("labels", [GPU_GROUP], [GPU_GROUP_PREFIX])
    own = [VISIBLE_DEVICES, GPU_PORTION, *SHARE_ANNOTATIONS, GPU_IDS]
    annotations = _changed("annotations", own, CONTAINER_PREFIXES)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    policy: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": name, "expression": each} for name, each in conditions.items()],
        "variables": [{"name": "changed", "expression": f"{labels} + {annotations}"}],
        "validations": [
            {"expression": "size(variables.changed) == 0", "messageExpression": _MESSAGE, "reason": "Invalid"}
        ],
    }
    return {"policy": policy, "binding": {"validationActions": ["Deny"]}}


def _changed(field: str, keys: Iterable[str], prefixes: Iterable[str]) -> str:
    """CEL expression: the keys of labels or annotations that the request changes, of these and with these prefixes."""
    old, new = (f"{whole}.metadata.?{field}.orValue({{}})" for whole in ("oldObject", "object"))
    meant = f"key in {texts(keys)} || {texts(prefixes)}.exists(prefix, key.startsWith(prefix))"
    return (
        f"({old}.map(key, key) + {new}.map(key, key))"
        f".filter(key, ({meant}) && {old}[?key].orValue('') != {new}[?key].orValue(''))"
    )
