"""What a runtime with a queue becomes, and what contradicts it."""

from copy import deepcopy
from typing import Any

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


def pods_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [each["template"]["spec"]["template"] for each in manifest["template"]["spec"]["replicatedJobs"]]


def refusal(declared: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        TrainingRuntimeSpec.model_validate(declared)
    return describe_errors(caught.value)


def test_every_pod_template_gets_the_queue_and_the_scheduler_and_nothing_else_changes() -> None:
    declared = runtime(job("prepare"), job(metadata={"labels": {"team": "a"}}), policy=KAI)
    expected = deepcopy(declared["template"])
    for pods in pods_of({"template": expected}):
        pods["metadata"] = {"labels": {**pods.get("metadata", {}).get("labels", {}), QUEUE: "research"}}
        pods["spec"]["schedulerName"] = "kai-scheduler"
    assert TrainingRuntimeSpec.model_validate(declared).trainer_manifest() == {"template": expected}


def test_a_trainer_with_the_field_gets_it_too() -> None:
    manifests = {
        field: TrainingRuntimeSpec.model_validate(runtime(policy=KAI, kaiSchedulerField=field)).trainer_manifest()
        for field in (True, False)
    }
    assert manifests[True].pop("podGroupPolicy") == KAI
    assert manifests[True] == manifests[False]


def test_what_was_declared_is_left_as_it_was() -> None:
    declared = runtime(job(metadata={"labels": {"team": "a"}}), policy=KAI)
    before = deepcopy(declared)
    spec = TrainingRuntimeSpec.model_validate(declared)
    assert spec.trainer_manifest() == spec.trainer_manifest()
    assert declared == before


def test_quantities_are_written_as_trainer_writes_them_back() -> None:
    container = {"name": "node", "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": 0.5, "memory": "1024Mi"}}}
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2048Mi"}}]
    declared = runtime(job(spec={"containers": [container], "volumes": volumes}))
    (pods,) = pods_of(TrainingRuntimeSpec.model_validate(declared).trainer_manifest())
    assert pods["spec"]["containers"][0]["resources"]["limits"] == {
        "nvidia.com/gpu": "8",
        "cpu": "500m",
        "memory": "1Gi",
    }
    assert pods["spec"]["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "2Gi"}
    container["resources"]["limits"]["cpu"] = "many"
    assert "spec.template.spec.containers[0].resources.limits.cpu: 'many' is not a Kubernetes quantity" in refusal(
        declared
    )


def test_without_a_queue_of_kai_nothing_is_added() -> None:
    declared = runtime(
        job(metadata={"labels": {QUEUE: "by-hand"}}), policy={"coscheduling": {"scheduleTimeoutSeconds": 60}}
    )
    assert TrainingRuntimeSpec.model_validate(declared).trainer_manifest() == declared


def test_what_says_the_same_is_no_conflict() -> None:
    same = job(
        metadata={"labels": {QUEUE: "research"}},
        spec={"schedulerName": "kai-scheduler", "containers": [{"name": "node", "image": "torch:1"}]},
    )
    spec = TrainingRuntimeSpec.model_validate(runtime(same, policy=KAI))
    assert pods_of(spec.trainer_manifest()) == pods_of(runtime(same))


def test_the_scheduler_may_have_another_name() -> None:
    manifest = TrainingRuntimeSpec.model_validate(runtime(policy=KAI, schedulerName="kai-2")).trainer_manifest()
    assert [pods["spec"]["schedulerName"] for pods in pods_of(manifest)] == ["kai-2"]


@pytest.mark.parametrize("queue", ["", "Research", "a_b", "-a", "a-", "a..b", "a/b", "a" * 64, "research\n", "ä"])
def test_what_cannot_be_a_queue_is_refused(queue: str) -> None:
    assert "podGroupPolicy.kaiScheduler.queue: is not a queue name" in refusal(
        runtime(policy={"kaiScheduler": {"queue": queue}})
    )


@pytest.mark.parametrize("queue", ["a", "research", "team-a.vision", "0", "a" * 63])
def test_queues_names(queue: str) -> None:
    assert TrainingRuntimeSpec.model_validate(runtime(policy={"kaiScheduler": {"queue": queue}})).queue == queue


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (
            runtime(policy={**KAI, "coscheduling": {}}),
            "podGroupPolicy: kaiScheduler and coscheduling exclude each other",
        ),
        (runtime(policy={**KAI, "volcano": {}}), "podGroupPolicy: kaiScheduler and volcano exclude each other"),
        (runtime(policy={}), "podGroupPolicy: needs kaiScheduler, coscheduling or volcano"),
        (runtime(policy={"kaiScheduler": {}}), "podGroupPolicy.kaiScheduler.queue: Field required"),
        (
            runtime(policy={"kaiScheduler": {"queue": "a", "scheduleTimeoutSeconds": 60}}),
            "podGroupPolicy.kaiScheduler.scheduleTimeoutSeconds: unknown field",
        ),
        (runtime(policy={"kai": {"queueName": "a"}}), "podGroupPolicy.kai: unknown field"),
        (
            runtime(job(metadata={"labels": {QUEUE: "other"}}), policy=KAI),
            "template.spec.replicatedJobs[0].template.spec.template.metadata.labels: kai.scheduler/queue is 'other', "
            "and podGroupPolicy.kaiScheduler.queue is 'research': remove the label",
        ),
        (
            runtime(job("a"), {**job("b"), "template": {**job()["template"], "metadata": {"labels": {QUEUE: "other"}}}})
            | {"podGroupPolicy": KAI},
            "template.spec.replicatedJobs[1].template.metadata.labels: kai.scheduler/queue is 'other'",
        ),
        (
            {
                "template": {"metadata": {"labels": {QUEUE: "other"}}, "spec": {"replicatedJobs": [job()]}},
                "podGroupPolicy": KAI,
            },
            "template.metadata.labels: kai.scheduler/queue is 'other'",
        ),
        (
            runtime(job(spec={"schedulerName": "volcano", "containers": [{"name": "node"}]}), policy=KAI),
            "template.spec.replicatedJobs[0].template.spec.template.spec.schedulerName is 'volcano', and "
            "podGroupPolicy.kaiScheduler needs 'kai-scheduler'",
        ),
        (
            runtime(job(metadata={"labels": {"scheduling.kai.io/queue": "a"}}), policy=KAI),
            "KAI does not read scheduling.kai.io/queue",
        ),
        (
            runtime(job(metadata={"annotations": {"scheduling.kai.io/pod-group": "a"}}), policy=KAI),
            "metadata.annotations: KAI does not read scheduling.kai.io/pod-group",
        ),
        (runtime(job("a"), job("a")), "template.spec.replicatedJobs: two have the name 'a'"),
        ({"template": {"spec": {"replicatedJobs": []}}}, "template.spec.replicatedJobs"),
        ({"podGroupPolicy": KAI}, "template: Field required"),
        (runtime({"name": "a", "template": {"spec": {}}}), "template: needs spec.template, the template of the Pods"),
        (runtime(job(spec={"containers": []})), "spec.template.spec.containers needs at least one container"),
        (runtime(mlPolicy={"torch": {}, "mpi": {}}), "mlPolicy: torch and mpi exclude each other"),
        (
            runtime(mlPolicy={"numNodes": 2, "torch": {"elasticPolicy": {"minNodes": 1}}}),
            "numNodes and torch.elasticPolicy exclude each other",
        ),
        (runtime(mlPolicy={"torch": {"numProcPerNode": 0}}), "mlPolicy.torch.numProcPerNode"),
        (runtime(mlPolicy={"torch": {"numProcPerNode": "all"}}), "mlPolicy.torch.numProcPerNode"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(declared: dict[str, Any], words: str) -> None:
    assert words in refusal(declared)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"replicas": 2}, "replicas must be 1 for the step 'trainer'"),
        ({"container": "main"}, "the step 'trainer' needs a container with the name 'node'"),
    ],
)
def test_what_trainers_own_webhook_would_refuse(change: dict[str, Any], words: str) -> None:
    step = job(spec={"containers": [{"name": change.get("container", "node")}]})
    step["template"]["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    if "replicas" in change:
        step["replicas"] = change["replicas"]
    assert words in refusal(runtime(step))
