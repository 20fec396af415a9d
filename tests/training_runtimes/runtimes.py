"""Training runtimes as users declare them, and invalid ones."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from pydantic import ValidationError

from plimsoll.components.specs import TrainingRuntimeSpec
from plimsoll.model.meta import describe_errors

QUEUE = "kai.scheduler/queue"
KAI = {"kaiScheduler": {"queue": "research"}}


def job(name: str = "node", **pods: Any) -> dict[str, Any]:
    """A replicated Job; `pods` are fields of its Pods' template."""
    template = {"spec": {"containers": [{"name": "node", "image": "torch:1"}]}, **pods}
    return {"name": name, "template": {"spec": {"template": template}}}


def runtime(*jobs: dict[str, Any], policy: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    declared = {"template": {"spec": {"replicatedJobs": list(jobs or [job()])}}, **more}
    return declared if policy is None else {**declared, "podGroupPolicy": policy}


def refusal(declared: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        TrainingRuntimeSpec.model_validate(declared)
    return describe_errors(caught.value)


def _limited(resources: dict[str, Any]) -> dict[str, Any]:
    return job(spec={"containers": [{"name": "node", "resources": resources}]})


def _step(container: str = "node", **more: Any) -> dict[str, Any]:
    """A Job that Trainer uses for the training itself."""
    step = {**job(spec={"containers": [{"name": container}]}), **more}
    step["template"]["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    return step


def _labelled(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """A Job with labels of its own, not of its Pods."""
    return {**job(name), "template": {**job()["template"], "metadata": {"labels": labels}}}


_OTHER: Final = {QUEUE: "other"}
_JOBS: Final = "template.spec.replicatedJobs"
_PODS: Final = f"{_JOBS}[0].template.spec.template"

REFUSED: Final[Mapping[str, tuple[dict[str, Any], str]]] = {
    "KAI beside coscheduling": (runtime(policy={**KAI, "coscheduling": {}}), "podGroupPolicy"),
    "KAI beside Volcano": (runtime(policy={**KAI, "volcano": {}}), "podGroupPolicy"),
    "no policy": (runtime(policy={}), "podGroupPolicy"),
    "no queue": (runtime(policy={"kaiScheduler": {}}), "podGroupPolicy.kaiScheduler.queue"),
    "what cannot be a queue": (
        runtime(policy={"kaiScheduler": {"queue": "a_b"}}),
        "podGroupPolicy.kaiScheduler.queue",
    ),
    "an unknown field of the policy": (
        runtime(policy={"kaiScheduler": {"queue": "a", "scheduleTimeoutSeconds": 60}}),
        "podGroupPolicy.kaiScheduler.scheduleTimeoutSeconds",
    ),
    "an unknown policy": (runtime(policy={"kai": {"queueName": "a"}}), "podGroupPolicy.kai"),
    "pods of another queue": (
        runtime(job(metadata={"labels": _OTHER}), policy=KAI),
        f"{_PODS}.metadata.labels",
    ),
    "a Job of another queue": (
        runtime(job("a"), _labelled("b", _OTHER), policy=KAI),
        f"{_JOBS}[1].template.metadata.labels",
    ),
    "a JobSet of another queue": (
        {"template": {"metadata": {"labels": _OTHER}, "spec": {"replicatedJobs": [job()]}}, "podGroupPolicy": KAI},
        "template.metadata.labels",
    ),
    "a label that KAI does not read": (
        runtime(job(metadata={"labels": {"scheduling.kai.io/queue": "a"}}), policy=KAI),
        f"{_PODS}.metadata.labels",
    ),
    "an annotation that KAI does not read": (
        runtime(job(metadata={"annotations": {"scheduling.kai.io/pod-group": "a"}}), policy=KAI),
        f"{_PODS}.metadata.annotations",
    ),
    "two Jobs of one name": (runtime(job("a"), job("a")), _JOBS),
    "no Job": ({"template": {"spec": {"replicatedJobs": []}}}, _JOBS),
    "no template": ({"podGroupPolicy": KAI}, "template"),
    "a Job without a template of Pods": (runtime({"name": "a", "template": {"spec": {}}}), f"{_JOBS}[0].template"),
    "no container": (runtime(job(spec={"containers": []})), f"{_JOBS}[0].template"),
    "what is no quantity": (
        runtime(_limited({"limits": {"cpu": "many"}})),
        f"{_JOBS}[0].template: spec.template.spec.containers[0].resources.limits.cpu",
    ),
    "Torch beside MPI": (runtime(mlPolicy={"torch": {}, "mpi": {}}), "mlPolicy"),
    "a number of nodes beside an elastic one": (
        runtime(mlPolicy={"numNodes": 2, "torch": {"elasticPolicy": {"minNodes": 1}}}),
        "mlPolicy",
    ),
    "several steps of training": (runtime(_step(replicas=2)), f"{_JOBS}[0]"),
    "a step without its container": (runtime(_step(container="main")), f"{_JOBS}[0]"),
}
"""Each with the field that the refusal is about; `object` stands for several fields together."""
