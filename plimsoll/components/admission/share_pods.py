"""Keeps what running pods that share GPUs say about their GPUs.

The share binder reads from labels and annotations which GPU a running pod uses, and how much of it, and anyone who may
change the pod could change these: the GPU would then be assigned to other pods as well.
"""

from typing import Final

from plimsoll.components.admission.changed_keys import changed_keys
from plimsoll.components.admission.policy import AdmissionPolicy, denying
from plimsoll.labels import GPU_GROUP, GPU_GROUP_PREFIX, GPU_PORTION, VISIBLE_DEVICES
from plimsoll.model.kai import CONTAINER_PREFIXES, SHARE_ANNOTATIONS
from plimsoll.model.tensor_fusion import GPU_IDS
from plimsoll.policy import text

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
    labels = changed_keys("labels", [GPU_GROUP], [GPU_GROUP_PREFIX])
    own = [VISIBLE_DEVICES, GPU_PORTION, *SHARE_ANNOTATIONS, GPU_IDS]
    annotations = changed_keys("annotations", own, CONTAINER_PREFIXES)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    return denying(
        [rule],
        ("size(variables.changed) == 0", _MESSAGE),
        conditions=conditions,
        variables={"changed": f"{labels} + {annotations}"},
        reason="Invalid",
    )
