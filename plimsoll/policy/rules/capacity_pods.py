"""Rules on pods that represent capacity: trigger pods request a node, reservation pods reserve a GPU."""

import re
from collections.abc import Iterator
from typing import Any, Final

from plimsoll.labels import DO_NOT_DISRUPT, MANAGED_BY, SHARE_BINDER
from plimsoll.model.meta import section
from plimsoll.policy.cel import POD_VARIABLES, matches, setting, value
from plimsoll.policy.context import KAI_SCHEDULER, PolicyContext
from plimsoll.policy.fields import (
    Manifest,
    annotations_of,
    is_kind,
    items,
    join,
    labels_of,
    name_of,
    namespace_of,
    text,
)
from plimsoll.policy.pod_templates import DEFAULT_SCHEDULER, SHARE_ANNOTATIONS
from plimsoll.policy.rule import Cel, Family, Fault, Rule, Subject
from plimsoll.quantity import parse_quantity

TRIGGER_LABEL: Final = "/trigger-type"
"""The suffix of the label of trigger pods, Plimsoll's and TensorFusion's."""
GPU_GROUP: Final = "runai-gpu-group"
RESERVATION_APP: Final = "kai-resource-reservation"
FORMER_APP: Final = "runai-reservation"
FORMER_LABEL: Final = "app.runai.resource.reservation"
SCALING_NAMESPACE: Final = "kai-scale-adjust"
SCALING_APP: Final = "scaling-pod"
"""KAI's own trigger pods, which its node scale adjuster creates."""

_NAME: Final = r"gpu-reservation-[0-9a-f]{16}"
_NAME_BEFORE: Final = r"gpu-reservation-.+-[bcdfghjklmnpqrstvwxz2456789]{5}"
"""Of KAI 0.12, with the name of the node: `createGPUReservationPod` in `pkg/binder/binding/resourcereservation`."""
_AROUND_NODE: Final = len("gpu-reservation-" + "-00000")
_FORMER_NAME: Final = r"(?:runai-reservation-gpu|gpu-reservation)-[a-z0-9.-]+"
_NAMESPACES: Final = (RESERVATION_APP, FORMER_APP)


def is_trigger(manifest: Manifest) -> bool:
    return is_kind(manifest, "", "Pod") and any(key.endswith(TRIGGER_LABEL) for key in labels_of(manifest))


def is_reservation(manifest: Manifest) -> bool:
    """Decided by the labels of reservations: pods with a share also have the label of the GPU group."""
    if not is_kind(manifest, "", "Pod"):
        return False
    labels = labels_of(manifest)
    return text(labels, "app") in _NAMESPACES or FORMER_LABEL in labels


def is_capacity_pod(manifest: Manifest) -> bool:
    scaling = text(labels_of(manifest), "app") == SCALING_APP and namespace_of(manifest) == SCALING_NAMESPACE
    scaling = scaling and is_kind(manifest, "", "Pod")
    return scaling or is_trigger(manifest) or is_reservation(manifest)


def _deadlines(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if is_trigger(manifest) and not section(manifest, "spec").get("activeDeadlineSeconds"):
        yield Fault(
            "spec.activeDeadlineSeconds",
            "spec.activeDeadlineSeconds is not set, and a trigger pod that is never deleted requests its node forever: "
            "set it, for example to 600",
        )


def _never_bound(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if not is_trigger(manifest):
        return
    spec = section(manifest, "spec")
    if text(spec, "nodeName"):
        yield Fault(
            "spec.nodeName",
            f"spec.nodeName is {text(spec, 'nodeName')!r}: a trigger pod that runs occupies the GPUs that it "
            "requested; remove the field",
        )
        return
    scheduler = text(spec, "schedulerName") or DEFAULT_SCHEDULER
    if scheduler in _serving(context):
        yield Fault(
            "spec.schedulerName",
            f"schedulerName is {scheduler!r}, which would bind the trigger pod to the GPUs that it requested: "
            "set the name of a scheduler that does not exist, such as 'plimsoll-trigger'",
        )


def _serving(context: PolicyContext) -> tuple[str, ...]:
    return (DEFAULT_SCHEDULER, KAI_SCHEDULER, context.queue_scheduler)


def _trigger_names(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    name, namespace = name_of(manifest), namespace_of(manifest)
    if not is_trigger(manifest):
        return
    if len(name) > 63 or "." in name:
        yield Fault(
            "metadata.name",
            f"the name {name!r:.100} cannot be used as a label value: use at most 63 characters and no dots",
        )
    if namespace in (SCALING_NAMESPACE, *_NAMESPACES):
        yield Fault("metadata.namespace", _foreign(namespace))


def _foreign(namespace: str) -> str:
    return (
        f"the namespace {namespace} belongs to KAI: a pod there that is not scheduled blocks every new "
        "reservation, and KAI deletes pods that it did not create; use another namespace"
    )


def _foreign_pods(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if not is_kind(manifest, "", "Pod") or is_trigger(manifest):
        return
    namespace, app = namespace_of(manifest), text(labels_of(manifest), "app")
    scaling = namespace == SCALING_NAMESPACE and app != SCALING_APP
    if scaling or (namespace in _NAMESPACES and not is_reservation(manifest)):
        yield Fault("metadata.namespace", _foreign(namespace))


def _reservation_nodes(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if is_reservation(manifest) and not text(section(manifest, "spec"), "nodeName"):
        yield Fault(
            "spec.nodeName",
            "spec.nodeName is not set: a reservation pod reserves a GPU of one node and is not scheduled; set "
            "the name of the node",
        )


def _reservation_gpus(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if not is_reservation(manifest):
        return
    resource = context.gpu_resource
    path, amount = "spec.containers[0].resources.limits", 0
    for number, container in items(section(manifest, "spec"), "containers"):
        given = section(container, "resources", "limits").get(resource)
        if given is not None:
            path = join("spec.containers", number, "resources", "limits")
            amount += _whole(given)
    shares = [name for name in SHARE_ANNOTATIONS if name in annotations_of(manifest)]
    if shares:
        yield Fault(
            join("metadata.annotations", shares[0]),
            f"{shares[0]} is set on a reservation pod, which reserves a whole GPU for shares: remove it",
        )
    elif amount != 1:
        yield Fault(
            join(path, resource),
            f"the limit is {amount} {resource}, and a reservation pod reserves exactly one GPU: set it to 1",
        )


def _whole(amount: Any) -> int:
    try:
        return int(parse_quantity(amount))
    except (ValueError, ArithmeticError):
        return 0


def _do_not_disrupt(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    given = annotations_of(manifest).get(DO_NOT_DISRUPT)
    if is_reservation(manifest) and given != "true":
        shown = "is not set" if given is None else f"is {given!r:.60}"
        yield Fault(
            join("metadata.annotations", DO_NOT_DISRUPT),
            f"{DO_NOT_DISRUPT} {shown}: Karpenter may delete the node while shares of its GPU run; set it to 'true'",
        )


def _reservation_names(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if not is_reservation(manifest):
        return
    name, namespace = name_of(manifest), namespace_of(manifest)
    # The share binder looks for its own where its settings say, and names further attempts differently.
    of_kai = text(labels_of(manifest), MANAGED_BY) != SHARE_BINDER
    if of_kai and namespace not in _NAMESPACES:
        yield Fault(
            "metadata.namespace",
            f"the namespace is {namespace!r:.80}, and KAI looks for reservation pods in {RESERVATION_APP} (formerly in "
            f"{FORMER_APP}): move it there",
        )
    elif of_kai and not _is_name(name, namespace, text(section(manifest, "spec"), "nodeName")):
        yield Fault(
            "metadata.name",
            f"the name is {name!r:.80}: use gpu-reservation- and 16 hexadecimal digits, so that each GPU group has one "
            "reservation on a node (KAI 0.12: the name of the node, and five random characters)",
        )
    if not text(labels_of(manifest), GPU_GROUP):
        yield Fault(
            join("metadata.labels", GPU_GROUP),
            f"the label {GPU_GROUP} is not set: set it to the GPU group whose shares use the GPU",
        )


def _is_name(name: str, namespace: str, node: str) -> bool:
    if namespace != RESERVATION_APP:
        return re.fullmatch(_FORMER_NAME, name) is not None
    if re.fullmatch(_NAME, name):
        return True
    of_node = name.startswith(f"gpu-reservation-{node}-") and len(name) == len(node) + _AROUND_NODE
    return of_node and re.fullmatch(_NAME_BEFORE, name) is not None


_NAMESPACE: Final = value("object", "metadata.namespace", "''")
_TRIGGER: Final = f"variables.ownLabels.exists(key, key.endsWith('{TRIGGER_LABEL}'))"
_RESERVATION: Final = (
    f"('app' in variables.ownLabels && variables.ownLabels['app'] in ['{RESERVATION_APP}', '{FORMER_APP}'])"
    f" || '{FORMER_LABEL}' in variables.ownLabels"
)
CAPACITY_POD: Final = (
    f"object.kind == 'Pod' && (variables.trigger || variables.reservation"
    f" || ('app' in variables.ownLabels && variables.ownLabels['app'] == '{SCALING_APP}'"
    f" && {_NAMESPACE} == '{SCALING_NAMESPACE}'))"
)
"""In CEL: whether the object represents capacity."""
CAPACITY_VARIABLES: Final = {
    **POD_VARIABLES,
    "ownLabels": value("object", "metadata.labels", "{}"),
    "namespaceName": _NAMESPACE,
    "trigger": f"object.kind == 'Pod' && {_TRIGGER}",
    "reservation": f"object.kind == 'Pod' && ({_RESERVATION})",
    "capacityPod": CAPACITY_POD,
    "gpuResource": setting("gpu_resource"),
    "gpuLimits": "variables.pod.spec.containers.filter(each, has(each.resources) && has(each.resources.limits)"
    " && variables.gpuResource in each.resources.limits)"
    ".map(each, string(each.resources.limits[variables.gpuResource]))",
}

_OF_NODE: Final = (
    "(has(object.spec.nodeName) && object.metadata.name.startsWith('gpu-reservation-' + object.spec.nodeName + '-')"
    f" && size(object.metadata.name) == size(object.spec.nodeName) + {_AROUND_NODE}"
    f" && {matches('object.metadata.name', _NAME_BEFORE)})"
)
_READS: Final = ("Pod",)
_KAI_NAMESPACES: Final = f"['{RESERVATION_APP}', '{FORMER_APP}']"


def _cel(holds: str) -> Cel:
    return Cel((Subject.PODS,), holds, CAPACITY_VARIABLES)


RULES: Final = (
    Rule(
        "trigger-pod-deadline",
        Family.PODS,
        "A trigger pod has a deadline.",
        "Set spec.activeDeadlineSeconds.",
        _READS,
        _deadlines,
        cel=_cel("!variables.trigger || has(object.spec.activeDeadlineSeconds)"),
    ),
    Rule(
        "trigger-pod-never-bound",
        Family.PODS,
        "A trigger pod is never bound: it has no node name, and the name of a scheduler that does not exist.",
        "Remove spec.nodeName, and set spec.schedulerName to a scheduler that does not exist, such as "
        "plimsoll-trigger.",
        _READS,
        _never_bound,
        cel=_cel(
            "!variables.trigger || (!has(object.spec.nodeName) && !(variables.scheduler in"
            f" ['{DEFAULT_SCHEDULER}', '{KAI_SCHEDULER}']) && variables.scheduler != {setting('queue_scheduler')})"
        ),
    ),
    Rule(
        "trigger-pod-name",
        Family.PODS,
        "A trigger pod has a name of at most 63 characters, and is not in a namespace of KAI.",
        "Shorten the name; use another namespace.",
        _READS,
        _trigger_names,
        cel=_cel(
            "!variables.trigger || (size(object.metadata.name) <= 63 && !object.metadata.name.contains('.')"
            f" && !(variables.namespaceName in {_KAI_NAMESPACES}) && variables.namespaceName != '{SCALING_NAMESPACE}')"
        ),
    ),
    Rule(
        "kai-namespace",
        Family.PODS,
        "The namespaces of KAI contain only KAI's own pods.",
        "Use another namespace.",
        _READS,
        _foreign_pods,
        cel=_cel(
            "object.kind != 'Pod' || variables.trigger || ("
            f"(variables.namespaceName != '{SCALING_NAMESPACE}' || ('app' in variables.ownLabels"
            f" && variables.ownLabels['app'] == '{SCALING_APP}'))"
            f" && (!(variables.namespaceName in {_KAI_NAMESPACES}) || variables.reservation))"
        ),
    ),
    Rule(
        "reservation-pod-node",
        Family.PODS,
        "A reservation pod has a node name.",
        "Set spec.nodeName.",
        _READS,
        _reservation_nodes,
        cel=_cel("!variables.reservation || has(object.spec.nodeName)"),
    ),
    Rule(
        "reservation-pod-gpu",
        Family.PODS,
        "A reservation pod reserves exactly one whole GPU.",
        "Set the limit to one device, and remove the annotations of GPU shares.",
        _READS,
        _reservation_gpus,
        cel=_cel(
            "!variables.reservation || (variables.gpuLimits == ['1'] && !('gpu-fraction' in variables.annotations)"
            " && !('gpu-memory' in variables.annotations))"
        ),
    ),
    Rule(
        "reservation-pod-do-not-disrupt",
        Family.PODS,
        f"A reservation pod has the annotation {DO_NOT_DISRUPT}: 'true'.",
        "Set the annotation.",
        _READS,
        _do_not_disrupt,
        cel=_cel(
            f"!variables.reservation || ('{DO_NOT_DISRUPT}' in variables.annotations"
            f" && variables.annotations['{DO_NOT_DISRUPT}'] == 'true')"
        ),
    ),
    Rule(
        "reservation-pod-name",
        Family.PODS,
        "A reservation pod, except those of `plimsoll bind`, has the name and namespace that KAI expects; each has the "
        "label of its GPU group.",
        f"Use the name gpu-reservation- and 16 hexadecimal digits, or as KAI 0.12 the node and five characters, in "
        f"{RESERVATION_APP}, and set the label {GPU_GROUP}.",
        _READS,
        _reservation_names,
        cel=_cel(
            f"!variables.reservation || ('{GPU_GROUP}' in variables.ownLabels"
            f" && variables.ownLabels['{GPU_GROUP}'] != ''"
            f" && (('{MANAGED_BY}' in variables.ownLabels && variables.ownLabels['{MANAGED_BY}'] == '{SHARE_BINDER}')"
            f" || (variables.namespaceName == '{RESERVATION_APP}' && ({matches('object.metadata.name', _NAME)}"
            f" || {_OF_NODE}))"
            f" || (variables.namespaceName == '{FORMER_APP}' && {matches('object.metadata.name', _FORMER_NAME)})))"
        ),
    ),
)
