"""Rules on pods in queues: pods with GPUs have a queue, and a scheduler that supports queues."""

from collections.abc import Iterator
from typing import Any, Final

from plimsoll.labels import GROUP, QUEUE
from plimsoll.model.kai import PROJECT
from plimsoll.model.meta import Declared, section
from plimsoll.policy.cel import has_controller, option, setting
from plimsoll.policy.context import KAI_SCHEDULER, PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, items, join, labels_of, text
from plimsoll.policy.pod_templates import SHARE_ANNOTATIONS, PodTemplate, pod_templates
from plimsoll.policy.rule import Cel, Family, Fault, Needs, Rule, Subject
from plimsoll.policy.rules.capacity_pods import CAPACITY_VARIABLES, is_capacity_pod
from plimsoll.policy.workspaces import template_labels, workspace_of

SCHEDULER_RULE: Final = "queue-scheduler"
_READS: Final = ("Pod", "objects with a pod template")


class SchedulerOptions(Declared):
    schedulers: tuple[str, ...] = ()
    """Schedulers that support queues, in addition to kai-scheduler and the Environment's `queueScheduler`."""

    def known(self, context: PolicyContext) -> frozenset[str]:
        return frozenset((KAI_SCHEDULER, context.queue_scheduler, *self.schedulers))


def _unnamed(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if is_kind(manifest, GROUP, "Workspace"):
        named = text(section(manifest, "spec"), "queue") or context.node_pool_label.queue_in(template_labels(manifest))
        if context.queues is not None and not named:
            yield Fault("spec.queue", "spec.queue is not set: set it to the leaf queue of its pods")
        return
    if not _chooses_queue(manifest) or text(labels_of(manifest), QUEUE) or text(labels_of(manifest), PROJECT):
        return
    for template in pod_templates(manifest):
        by_kai = template.wants_share or template.scheduler == KAI_SCHEDULER
        named = template.queue or text(template.labels, PROJECT)
        if template.wants_gpus and not named and (by_kai or context.queues is not None):
            yield Fault(
                join(template.path, "metadata", "labels", QUEUE),
                f"the pod requests GPUs and has no queue: set the label {QUEUE} to a leaf queue",
            )


def _chooses_queue(manifest: Manifest) -> bool:
    """Whether the object itself sets the queue, rather than its owner or an object that uses it."""
    owners = items(section(manifest, "metadata"), "ownerReferences")
    return (
        workspace_of(manifest) is None
        and manifest.get("kind") not in ("DaemonSet", "TrainingRuntime", "ClusterTrainingRuntime")
        and not is_capacity_pod(manifest)
        and not any(owner.get("controller") is True for _, owner in owners)
    )


def _schedulers(manifest: Manifest, context: PolicyContext, options: SchedulerOptions) -> Iterator[Fault]:
    if workspace_of(manifest) is not None or is_capacity_pod(manifest):
        return
    known = options.known(context)
    owner = text(labels_of(manifest), QUEUE)
    for template in pod_templates(manifest):
        if template.scheduler in known:
            continue
        what = _for_kai(template, owner)
        if what:
            given = text(template.spec, "schedulerName")
            shown = f"is {given!r:.60}" if given else "is not set"
            yield Fault(
                join(template.path, "spec", "schedulerName"),
                f"schedulerName {shown}, and only a scheduler that supports queues reads {what}: set it to "
                f"{context.queue_scheduler!r}",
            )


def _for_kai(template: PodTemplate, owner_queue: str) -> str:
    """What in the pod only KAI reads; empty if there is nothing."""
    for name in SHARE_ANNOTATIONS:
        if name in template.annotations:
            return f"the annotation {name} {template.annotations[name]!r:.60}"
    queue = template.queue or (owner_queue if template.wants_gpus else "")
    return f"the queue {queue!r:.80}" if queue else ""


_CONTROLLER: Final = (
    "request.userInfo.username.startsWith('system:')"
    " && (!request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')"
    " || request.namespace == 'kube-system')"
)
"""Whether a controller may have sent the request. Anyone can set an owner: neither people nor the service accounts of
a namespace's own workloads are exempt by one."""
_VARIABLES: Final = {
    **CAPACITY_VARIABLES,
    "owned": f"{has_controller()} && {_CONTROLLER}",
    "share": "'gpu-fraction' in variables.annotations || 'gpu-memory' in variables.annotations",
    "wantsGpus": "variables.share || variables.wantsDevices",
    "queue": f"'{QUEUE}' in variables.labels ? variables.labels['{QUEUE}'] : ''",
    "ownerQueue": f"'{QUEUE}' in variables.ownLabels ? variables.ownLabels['{QUEUE}'] : ''",
    "project": f"'{PROJECT}' in variables.labels ? variables.labels['{PROJECT}'] : "
    f"('{PROJECT}' in variables.ownLabels ? variables.ownLabels['{PROJECT}'] : '')",
    "readsQueues": f"variables.scheduler == '{KAI_SCHEDULER}' || variables.scheduler == {setting('queue_scheduler')}"
    f" || variables.scheduler in {option(SCHEDULER_RULE, 'schedulers', '[]')}",
}

RULES: Final = (
    Rule(
        "gpu-workload-names-queue",
        Family.QUEUES,
        "A workload with GPUs has a queue if KAI schedules it, or if queues are declared.",
        f"Set the label {QUEUE}, or spec.queue of a Workspace, to a leaf queue.",
        ("Workspace", *_READS),
        _unnamed,
        cel=Cel(
            (Subject.PODS,),
            "variables.owned || object.kind == 'DaemonSet' || variables.capacityPod || variables.queue != ''"
            " || variables.ownerQueue != '' || variables.project != '' || !variables.wantsGpus"
            f" || !(variables.share || variables.scheduler == '{KAI_SCHEDULER}')",
            _VARIABLES,
        ),
        loop=False,
    ),
    Rule(
        SCHEDULER_RULE,
        Family.QUEUES,
        "A pod with a queue or a GPU share uses a scheduler that supports queues.",
        f"Set schedulerName to {KAI_SCHEDULER}, or to the Environment's queueScheduler.",
        _READS,
        _schedulers,
        options=SchedulerOptions,
        needs=Needs.ENVIRONMENT,
        cel=Cel(
            (Subject.PODS,),
            "variables.capacityPod || variables.readsQueues || !(variables.share"
            " || variables.queue != '' || (variables.ownerQueue != '' && variables.wantsGpus))",
            _VARIABLES,
        ),
    ),
)
