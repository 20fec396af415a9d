"""The effect of a queue on a runtime, and what contradicts it."""

from copy import deepcopy
from typing import Any

import pytest

from plimsoll.components.specs import TrainingRuntimeSpec
from tests.training_runtimes.runtimes import KAI, QUEUE, REFUSED, job, refusal, runtime


def pods_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [each["template"]["spec"]["template"] for each in manifest["template"]["spec"]["replicatedJobs"]]


def test_every_pod_template_gets_the_queue_and_the_scheduler_and_nothing_else_changes() -> None:
    declared = runtime(job("prepare"), job(metadata={"labels": {"team": "a"}}), policy=KAI)
    expected = deepcopy(declared["template"])
    for pods in pods_of({"template": expected}):
        pods["metadata"] = {"labels": {**pods.get("metadata", {}).get("labels", {}), QUEUE: "research"}}
        pods["spec"]["schedulerName"] = "kai-scheduler"
    assert TrainingRuntimeSpec.model_validate(declared).trainer_manifest() == {"template": expected}


def test_a_trainer_with_the_field_gets_the_field_too() -> None:
    manifests = {
        field: TrainingRuntimeSpec.model_validate(runtime(policy=KAI, kaiSchedulerField=field)).trainer_manifest()
        for field in (True, False)
    }
    assert manifests[True].pop("podGroupPolicy") == KAI
    assert manifests[True] == manifests[False]


def test_the_declared_runtime_is_not_modified() -> None:
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


def test_without_a_queue_of_kai_nothing_is_added() -> None:
    declared = runtime(
        job(metadata={"labels": {QUEUE: "by-hand"}}), policy={"coscheduling": {"scheduleTimeoutSeconds": 60}}
    )
    assert TrainingRuntimeSpec.model_validate(declared).trainer_manifest() == declared


def test_equal_values_are_no_conflict() -> None:
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
def test_an_invalid_queue_is_refused(queue: str) -> None:
    declared = runtime(policy={"kaiScheduler": {"queue": queue}})
    assert refusal(declared).startswith("podGroupPolicy.kaiScheduler.queue:")


@pytest.mark.parametrize("queue", ["a", "research", "team-a.vision", "0", "a" * 63])
def test_valid_queue_names(queue: str) -> None:
    assert TrainingRuntimeSpec.model_validate(runtime(policy={"kaiScheduler": {"queue": queue}})).queue == queue


@pytest.mark.parametrize("name", REFUSED)
def test_contradictions_are_refused_with_their_field(name: str) -> None:
    declared, field = REFUSED[name]
    assert refusal(declared).startswith(f"{field}:")


def test_the_scheduler_of_pods_is_that_of_their_queue() -> None:
    volcano = job(spec={"schedulerName": "volcano", "containers": [{"name": "node"}]})
    assert "template.spec.replicatedJobs[0].template.spec.template.spec.schedulerName" in refusal(
        runtime(volcano, policy=KAI)
    )


@pytest.mark.parametrize("processes", [0, "all"])
def test_an_invalid_number_of_processes_is_refused(processes: Any) -> None:
    declared = runtime(mlPolicy={"torch": {"numProcPerNode": processes}})
    assert refusal(declared).startswith("mlPolicy.torch.numProcPerNode")
