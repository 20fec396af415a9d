"""Admission of TrainJobs by their queue: what names a queue that the environment does not know is refused.

A ValidatingAdmissionPolicy, so that no webhook server runs. It looks at TrainJobs, at runtimes, and at the JobSet that
Trainer makes of both: so a TrainJob whose runtime names the queue has no Pod either. What was wrong before and is left
as it is refuses no update.
"""

import json
from collections.abc import Iterable
from typing import Final, Literal, TypedDict

import pulumi
from pulumi_kubernetes.admissionregistration.v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)

from plimsoll.components.admission import ACTIONS
from plimsoll.components.declaration import child_of, metadata
from plimsoll.components.guard import AdmissionPolicy
from plimsoll.labels import QUEUE

NAME: Final = "plimsoll-train-job-queue"

_RESOURCES: Final = {
    "trainer.kubeflow.org": ["trainjobs", "trainingruntimes", "clustertrainingruntimes"],
    "jobset.x-k8s.io": ["jobsets"],
}
_OWNED_BY_TRAIN_JOB: Final = (
    "request.resource.resource != 'jobsets' || "
    "object.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind == 'TrainJob')"
)


class QueueAdmissionArgs(TypedDict):
    leaves: Iterable[str]
    """Leaf queues."""
    parents: Iterable[str]
    """Queues with child queues, which pods cannot use."""
    action: Literal["deny", "audit"]


class QueueAdmission(pulumi.ComponentResource):
    """The policy and its binding."""

    def __init__(self, name: str, args: QueueAdmissionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plimsoll:index:QueueAdmission", name, {}, opts)
        admission = train_job_policy(args["leaves"], args["parents"], args["action"])
        policy = ValidatingAdmissionPolicy(NAME, metadata=metadata(NAME), spec=admission["policy"], opts=child_of(self))
        ValidatingAdmissionPolicyBinding(
            NAME,
            metadata=metadata(NAME),
            spec={"policyName": NAME, **admission["binding"]},
            opts=child_of(self, policy),
        )
        self.register_outputs({})


def train_job_policy(
    leaves: Iterable[str], parents: Iterable[str], action: Literal["deny", "audit"]
) -> AdmissionPolicy:
    """`spec` of the policy and of its binding, for an environment with these queues."""
    known = sorted(set(leaves))
    among = f"(known: {', '.join(known) or 'none'})"
    of_a_parent = f", which has child queues and schedules nothing itself: name a leaf {among}"
    of_nobody = f", which is not declared: declare it, or list it in clusterQueues {among}"
    variables = {
        "leaves": _literal(known),
        "parents": _literal(sorted(set(parents))),
        "jobs": _jobs("object"),
        "named": _named("object", "variables.jobs"),
        "jobsBefore": f"oldObject == null ? [] : {_jobs('oldObject')}",
        "before": f"oldObject == null ? [] : {_named('oldObject', 'variables.jobsBefore')}",
        "wrong": "variables.named.filter(queue, !(queue in variables.leaves) && !(queue in variables.before))",
    }
    message = (
        "object.kind + ' ' + object.metadata.?name.orValue('') + ' names Queue ' + variables.wrong[0] + "
        f"(variables.wrong[0] in variables.parents ? {_literal(of_a_parent)} : {_literal(of_nobody)})"
    )
    return {
        "policy": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": resources,
                    }
                    for group, resources in _RESOURCES.items()
                ]
            },
            "matchConditions": [
                {"name": "of-a-train-job", "expression": _OWNED_BY_TRAIN_JOB},
                {"name": "stays", "expression": "!has(object.metadata.deletionTimestamp)"},
            ],
            "variables": [{"name": name, "expression": expression} for name, expression in variables.items()],
            "validations": [
                {"expression": "size(variables.wrong) == 0", "messageExpression": message, "reason": "Invalid"}
            ],
        },
        "binding": {"validationActions": ACTIONS[action]},
    }


def _jobs(whole: str) -> str:
    """The replicated Jobs of a runtime or of a JobSet."""
    return f"{whole}.?spec.?template.?spec.?replicatedJobs.orValue([]) + {whole}.?spec.?replicatedJobs.orValue([])"


def _named(whole: str, jobs: str) -> str:
    """Every queue that an object names: a label of its own, of a template or of an override, or Trainer's own field."""
    single = [
        _label(whole),
        _label(f"{whole}.?spec.?template"),
        f"string({whole}.?spec.?podGroupPolicy.?kaiScheduler.?queue.orValue(''))",
    ]
    lists = [
        f"[{', '.join(single)}]",
        f"{jobs}.map(job, {_label('job.?template')})",
        f"{jobs}.map(job, {_label('job.?template.?spec.?template')})",
        f"{whole}.?spec.?podTemplateOverrides.orValue([]).map(change, {_label('change')})",
    ]
    return f"({' + '.join(lists)}).filter(queue, queue != '')"


def _label(whole: str) -> str:
    return f"string({whole}.?metadata.?labels[?'{QUEUE}'].orValue(''))"


def _literal(value: str | list[str]) -> str:
    """JSON's texts and lists are CEL's too."""
    return json.dumps(value, ensure_ascii=False)
