"""JobSet (jobset.x-k8s.io/v1alpha2) as a template: what Kubeflow Trainer creates from a runtime for each TrainJob."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, field_validator, model_validator

from plimsoll.model.meta import Declared, check_pod_template, check_quantities, dig

ANCESTOR_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of a Job's template: the step of a TrainJob that it runs."""
_CONTAINERS: Final = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}
"""The name of the container that Trainer configures, by step."""


class TemplateMetadata(Declared):
    """Labels and annotations of the JobSet."""

    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class ReplicatedJob(Declared):
    """One kind of Job, with the template of its Pods."""

    name: str = Field(min_length=1, max_length=63)
    replicas: int | None = Field(default=None, ge=0)
    """Number of Jobs; JobSet's default is 1, and Trainer accepts only 1 for a step of a TrainJob."""
    group_name: str | None = None
    depends_on: tuple[dict[str, Any], ...] | None = None
    """`name` and `status` (`Ready`, `Complete`) of another Job that comes first."""
    template: dict[str, Any]
    """A JobTemplateSpec, passed on unchanged except for the form of quantities."""

    @field_validator("template")
    @classmethod
    def _job_template(cls, template: dict[str, Any]) -> dict[str, Any]:
        pods = dig(template, "spec.template")
        if not isinstance(pods, dict):
            raise ValueError("spec.template, the pod template, is required")
        metadata = template.get("metadata") or {}
        if not isinstance(metadata, dict) or not isinstance(metadata.get("labels") or {}, dict):
            raise ValueError("metadata, and its labels, must be objects")
        try:
            check_pod_template(pods)
            check_quantities(pods["spec"], "spec")
        except ValueError as error:
            raise ValueError(f"spec.template.{error}") from None
        return template

    @model_validator(mode="after")
    def _step(self) -> "ReplicatedJob":
        step = self.step
        if step not in _CONTAINERS:
            return self
        if self.replicas not in (None, 1):
            raise ValueError(f"replicas must be 1 for the step {step!r}; nodes are counted by mlPolicy.numNodes")
        if not any(container["name"] == _CONTAINERS[step] for container in self.pod_template["spec"]["containers"]):
            raise ValueError(f"the step {step!r} needs a container with the name {_CONTAINERS[step]!r}")
        return self

    @property
    def step(self) -> str | None:
        """The step of a TrainJob that it runs; None if the template has no such label."""
        labels = (self.template.get("metadata") or {}).get("labels") or {}
        step: str | None = labels.get(ANCESTOR_STEP)
        return step

    @property
    def pod_template(self) -> Mapping[str, Any]:
        pods: Mapping[str, Any] = self.template["spec"]["template"]
        return pods


class JobSetSpec(Declared):
    """Only `replicatedJobs` is validated here; the apiserver validates the rest."""

    replicated_jobs: Annotated[tuple[ReplicatedJob, ...], Field(min_length=1)]
    network: dict[str, Any] | None = None
    success_policy: dict[str, Any] | None = None
    failure_policy: dict[str, Any] | None = None
    startup_policy: dict[str, Any] | None = None
    suspend: bool | None = None
    coordinator: dict[str, Any] | None = None
    managed_by: str | None = None
    ttl_seconds_after_finished: Annotated[int, Field(ge=0)] | None = None

    @field_validator("replicated_jobs")
    @classmethod
    def _names_once(cls, jobs: tuple[ReplicatedJob, ...]) -> tuple[ReplicatedJob, ...]:
        names = [job.name for job in jobs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two have the name {name!r}")
        return jobs


class JobSetTemplate(Declared):
    """The JobSet of each TrainJob."""

    metadata: TemplateMetadata | None = None
    spec: JobSetSpec
