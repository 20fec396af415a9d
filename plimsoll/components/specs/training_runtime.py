"""TrainingRuntime and ClusterTrainingRuntime of Kubeflow Trainer (trainer.kubeflow.org/v1alpha1), as they are declared.

If a runtime names a queue of KAI, its Pods get the queue's label and the scheduler's name, and nothing else: KAI
follows the owners from the Pod through Job and JobSet to the TrainJob, and creates the PodGroup itself.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from plimsoll.components.specs.job_set import JobSetTemplate
from plimsoll.components.specs.ml_policy import MLPolicy
from plimsoll.components.specs.pod_group_policy import PodGroupPolicy
from plimsoll.components.specs.topology import Placement
from plimsoll.labels import QUEUE
from plimsoll.model.meta import Declared, dig, with_canonical_quantities

TRAINER_API_VERSION: Final = "trainer.kubeflow.org/v1alpha1"

Kind = Literal["TrainingRuntime", "ClusterTrainingRuntime"]

_NOT_OURS: Final = ("scheduling.kai.io/queue", "scheduling.kai.io/pod-group")
"""Labels and annotations of an early proposal, which no version of KAI reads."""


class TrainingRuntimeSpec(Declared):
    """How TrainJobs run: `spec` of both kinds, and the settings `near`, `schedulerName` and `kaiSchedulerField`, which
    change how it is written."""

    ml_policy: MLPolicy | None = None
    pod_group_policy: PodGroupPolicy | None = None
    template: JobSetTemplate
    near: Placement | None = None
    """Pods near which the training is placed, such as a DataCache's. The steps before the training are not affected."""
    scheduler_name: str = Field(default="kai-scheduler", min_length=1, max_length=253)
    """The name under which KAI schedules in the cluster."""
    kai_scheduler_field: bool | None = None
    """Whether the cluster's Trainer has `podGroupPolicy.kaiScheduler`, so that it is passed on.

    Absent: no; if a stack declares the runtime, as the cluster's CustomResourceDefinition shows. The Pods get the label
    and the scheduler's name in either case.
    """

    @model_validator(mode="after")
    def _no_other_queue(self) -> "TrainingRuntimeSpec":
        conflicts = list(self._conflicts())
        if conflicts:
            raise ValueError("; ".join(conflicts))
        return self

    @property
    def queue(self) -> str | None:
        """The queue of KAI that the runtime names; None if it names none."""
        policy = self.pod_group_policy
        return policy.kai_scheduler.queue if policy is not None and policy.kai_scheduler is not None else None

    def trainer_manifest(self) -> dict[str, Any]:
        """`spec` as it is written for Trainer."""
        manifest = {key: value for key, value in self.manifest().items() if key not in _SETTINGS}
        # As Trainer writes them back when it updates a runtime to add its finalizer. Not at validation, which skips a
        # template with a value that is not known yet.
        known_jobs = dig(manifest, "template.spec.replicatedJobs")
        for job in known_jobs if isinstance(known_jobs, list) else ():
            pods = dig(job, "template.spec.template")
            if isinstance(pods, dict):
                job["template"]["spec"]["template"] = with_canonical_quantities(pods)
        if self.near is not None:
            jobs = zip(manifest["template"]["spec"]["replicatedJobs"], self.template.spec.replicated_jobs, strict=True)
            for job, declared in jobs:
                if declared.step in (None, "trainer"):
                    job["template"]["spec"]["template"] = self.near.with_affinity(job["template"]["spec"]["template"])
        if self.queue is None:
            return manifest
        if not self.kai_scheduler_field:
            del manifest["podGroupPolicy"]
        for job in manifest["template"]["spec"]["replicatedJobs"]:
            job["template"]["spec"]["template"] = self._queued(self.queue, job["template"]["spec"]["template"])
        return manifest

    def _queued(self, queue: str, pods: Mapping[str, Any]) -> dict[str, Any]:
        metadata = pods.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), QUEUE: queue}
        spec = {**pods["spec"], "schedulerName": self.scheduler_name}
        return {**pods, "metadata": {**metadata, "labels": labels}, "spec": spec}

    def _conflicts(self) -> Iterator[str]:
        """Fields of the templates that contradict the queue of the runtime."""
        if self.queue is None:
            return
        template = self.template
        labels = template.metadata.labels if template.metadata is not None else {}
        yield from self._label_conflicts("template.metadata", {"labels": labels})
        for position, job in enumerate(template.spec.replicated_jobs):
            at = f"template.spec.replicatedJobs[{position}].template"
            yield from self._label_conflicts(f"{at}.metadata", dig(job.template, "metadata") or {})
            pods = job.pod_template
            yield from self._label_conflicts(f"{at}.spec.template.metadata", pods.get("metadata") or {})
            scheduler = pods["spec"].get("schedulerName")
            if scheduler not in (None, self.scheduler_name):
                yield (
                    f"{at}.spec.template.spec.schedulerName is {scheduler!r}, and podGroupPolicy.kaiScheduler needs "
                    f"{self.scheduler_name!r}: remove one of the two"
                )

    def _label_conflicts(self, at: str, metadata: Mapping[str, Any]) -> Iterator[str]:
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        if labels.get(QUEUE, self.queue) != self.queue:
            yield (
                f"{at}.labels: {QUEUE} is {labels[QUEUE]!r}, and podGroupPolicy.kaiScheduler.queue is {self.queue!r}: "
                "remove the label"
            )
        for kept, where in ((labels, "labels"), (annotations, "annotations")):
            for key in _NOT_OURS:
                if key in kept:
                    yield f"{at}.{where}: KAI does not read {key}: remove it, podGroupPolicy.kaiScheduler is enough"


_SETTINGS: Final = frozenset({"schedulerName", "kaiSchedulerField", "near"})
