"""Admission of TrainJobs: a TrainJob that names a queue which the environment does not know is refused.

A ValidatingAdmissionPolicy, so that no webhook server runs. It checks TrainJobs, runtimes, and the JobSet that Trainer
creates from both, so a TrainJob whose runtime names an unknown queue gets no Pod either. An update is not refused for a
queue that the object named before.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import pulumi

from plimsoll.components.admission import ACTIONS, AdmissionPolicy
from plimsoll.components.args import QueueAdmissionArgs
from plimsoll.components.declaring import Component, checked, fields_of, metadata, name_of
from plimsoll.components.specs import QueueAdmissionSpec
from plimsoll.kubernetes_sdk import k8s
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


class QueueAdmission(Component):
    """The ValidatingAdmissionPolicy `policy` and its `binding`."""

    policy_name: pulumi.Output[str]
    """Name of the ValidatingAdmissionPolicy."""

    def __init__(self, name: str, args: QueueAdmissionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("QueueAdmission", name, args, opts)

        def part(convert: Callable[[AdmissionPolicy], dict[str, Any]]) -> pulumi.Input[dict[str, Any]]:
            def of_spec(spec: QueueAdmissionSpec) -> dict[str, Any]:
                return convert(train_job_policy(spec.leaves, spec.parents, spec.action))

            return checked(QueueAdmissionSpec, "QueueAdmission", name, fields_of(args), of_spec)

        self.policy = k8s.admissionregistration.v1.ValidatingAdmissionPolicy(
            self.named(NAME),
            metadata=metadata(NAME),
            spec=part(lambda made: made["policy"]),
            opts=self.child(former_name=NAME),
        )
        self.binding = k8s.admissionregistration.v1.ValidatingAdmissionPolicyBinding(
            self.named(NAME),
            metadata=metadata(NAME),
            spec=part(lambda made: {"policyName": NAME, **made["binding"]}),
            opts=self.child(self.policy, former_name=NAME),
        )
        self.policy_name = name_of(self.policy)
        self.register_outputs({"policyName": self.policy_name})


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
    """CEL expression: the replicated Jobs of a runtime or of a JobSet."""
    return f"{whole}.?spec.?template.?spec.?replicatedJobs.orValue([]) + {whole}.?spec.?replicatedJobs.orValue([])"


def _named(whole: str, jobs: str) -> str:
    """CEL expression: every queue that an object names, by its own label, by that of a template or override, or by
    Trainer's own field."""
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
    """A CEL literal. JSON's strings and lists have the same syntax."""
    return json.dumps(value, ensure_ascii=False)
