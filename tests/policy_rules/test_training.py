"""Kubeflow Trainer: a TrainJob has a queue, the GPUs of its nodes count, and ignored fields are named."""

import pytest

from plimsoll.policy import is_read
from tests.policy_rules.manifests import GPU, Manifest, findings
from tests.policy_rules.trainings import a_job, a_runtime

QUEUE = {"kai.scheduler/queue": "vision"}
KAI = {"kaiScheduler": {"queue": "vision"}}


def a_queue(name: str = "vision") -> Manifest:
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": {}}


def broken(*manifests: Manifest, rule: str) -> list[str]:
    return [each.message for each in findings(*manifests) if each.rule == rule]


@pytest.mark.parametrize(
    ("manifests", "wrong"),
    [
        ([a_job()], False),
        ([a_job(), a_queue()], True),
        ([a_job(QUEUE), a_queue()], False),
        ([a_job(), a_runtime(policy=KAI), a_queue()], False),
        ([a_job(), a_runtime(), a_queue()], True),
        ([a_job(kind="ClusterTrainingRuntime"), a_runtime(policy=KAI), a_queue()], True),
        ([a_job(kind="ClusterTrainingRuntime"), a_runtime("ClusterTrainingRuntime", policy=KAI), a_queue()], False),
    ],
)
def test_a_train_job_has_a_queue_if_queues_are_declared(manifests: list[Manifest], wrong: bool) -> None:
    text = broken(*manifests, rule="train-job-names-queue")
    assert len(text) == wrong
    assert all("TrainJob vision/segment has no queue: set the label kai.scheduler/queue" in each for each in text)


@pytest.mark.parametrize(
    ("manifests", "gpus"),
    [
        ([a_runtime()], 0),
        ([a_job(QUEUE), a_runtime()], 16),
        ([a_job(QUEUE, numNodes=3), a_runtime()], 24),
        ([a_job(QUEUE, numNodes=3, resourcesPerNode={"limits": {GPU: "2"}}), a_runtime()], 6),
        ([a_job(QUEUE, resourcesPerNode={"requests": {GPU: 4}})], 4),
        ([a_job(), a_runtime(policy=KAI, nodes=None)], 8),
    ],
)
def test_the_gpus_of_a_training_are_those_of_its_nodes(manifests: list[Manifest], gpus: int) -> None:
    def over(budget: int) -> bool:
        rules = {"gpu-budget": {"options": {"queues": {"vision": budget}}}}
        return any(each.rule == "gpu-budget" for each in findings(*manifests, rules=rules))

    assert not over(gpus)
    assert gpus == 0 or over(gpus - 1)


def test_a_job_set_counts_every_pod() -> None:
    container = {"name": "main", "image": "a:1", "resources": {"limits": {GPU: 2}}}
    pods = {"metadata": {"labels": QUEUE}, "spec": {"schedulerName": "kai-scheduler", "containers": [container]}}
    job = {"name": "a", "replicas": 3, "template": {"spec": {"parallelism": 2, "template": pods}}}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a", "namespace": "vision"},
        "spec": {"replicatedJobs": [job]},
    }
    for budget, wrong in ((12, False), (11, True)):
        rules = {"gpu-budget": {"options": {"queues": {"vision": budget}}}}
        assert any(each.rule == "gpu-budget" for each in findings(job_set, rules=rules)) == wrong


def test_fields_of_the_early_proposal_are_named_with_what_replaces_them() -> None:
    runtime = a_runtime(policy={"kai": {"queueName": "vision"}})
    pods = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]
    pods["metadata"]["labels"] = {"scheduling.kai.io/queue": "vision"}
    job = a_job({"scheduling.kai.io/pod-group": "x"})
    text = broken(runtime, job, rule="superseded-queue-field")
    assert len(text) == 3
    assert any("write podGroupPolicy.kaiScheduler.queue: vision" in each for each in text)
    assert any("set the label kai.scheduler/queue: vision" in each for each in text)
    assert any("KAI does not read scheduling.kai.io/pod-group: remove it" in each for each in text)


def test_a_train_job_is_read_from_files() -> None:
    assert is_read(a_job())
