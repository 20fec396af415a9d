"""The objects that a stack declares for Kubeflow Trainer."""

import json
from typing import Any

import pytest

from plimsoll.stacks import has_kai_scheduler_field, run
from tests.components.declaring import declared, manifest

POLICY = "plimsoll-train-job-queue"
JOB = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}}
RUNTIME = {
    "podGroupPolicy": {"kaiScheduler": {"queue": "vision"}},
    "template": {"spec": {"replicatedJobs": [JOB]}},
}
QUEUES = {"research": {}, "vision": {"parentQueue": "research"}}


def declare(**config: Any) -> list[dict[str, Any]]:
    texts = {f"plimsoll:{key}": json.dumps(value) for key, value in config.items()}
    return declared(run, config={"plimsoll:layer": "environment", **texts})


def definition(*fields: str) -> dict[str, Any]:
    policy = {"properties": {field: {"type": "object"} for field in fields}}
    schema = {"properties": {"spec": {"properties": {"podGroupPolicy": policy}}}}
    return {"spec": {"versions": [{"name": "v1alpha1", "schema": {"openAPIV3Schema": schema}}]}}


@pytest.fixture(params=[True, False])
def has_field(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the cluster's Trainer has the field."""
    monkeypatch.setattr("plimsoll.stacks.training.find_kai_scheduler_field", lambda: request.param)
    return bool(request.param)


def test_the_field_is_found_in_the_definition() -> None:
    assert has_kai_scheduler_field(definition("coscheduling", "volcano", "kaiScheduler"))
    assert not has_kai_scheduler_field(definition("coscheduling", "volcano"))
    assert not has_kai_scheduler_field({"spec": {"versions": [{"name": "v1alpha1"}]}})


def test_runtimes_have_the_fields_of_the_clusters_trainer(has_field: bool) -> None:
    made = declare(queues=QUEUES, trainingRuntimes={"torch": RUNTIME | {"namespace": "a"}})
    runtime = manifest(made, "TrainingRuntime", "torch")
    assert runtime["metadata"]["namespace"] == "a"
    assert ("podGroupPolicy" in runtime["spec"]) == has_field
    pods = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pods["metadata"]["labels"] == {"kai.scheduler/queue": "vision"}
    assert pods["spec"]["schedulerName"] == "kai-scheduler"


def test_a_runtime_with_the_setting_does_not_read_the_cluster() -> None:
    made = declare(queues=QUEUES, clusterTrainingRuntimes={"torch": RUNTIME | {"kaiSchedulerField": True}})
    assert "podGroupPolicy" in manifest(made, "ClusterTrainingRuntime", "torch")["spec"]


def test_pods_of_runtimes_are_scheduled_as_those_of_workspaces(has_field: bool) -> None:
    made = declare(
        environment={"queueScheduler": "kai-2"},
        clusterTrainingRuntimes={"torch": RUNTIME},
    )
    spec = manifest(made, "ClusterTrainingRuntime", "torch")["spec"]
    assert (
        spec["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["schedulerName"]
        == "kai-2"
    )


def test_the_policy_contains_leaves_and_parents() -> None:
    made = declare(queues=QUEUES, clusterQueues=["default-queue"])
    variables = {
        each["name"]: each["expression"]
        for each in manifest(made, "ValidatingAdmissionPolicy", POLICY)["spec"]["variables"]
    }
    assert json.loads(variables["leaves"]) == ["default-queue", "vision"]
    assert json.loads(variables["parents"]) == ["research"]
    binding = manifest(made, "ValidatingAdmissionPolicyBinding", POLICY)["spec"]
    assert binding == {"policyName": POLICY, "validationActions": ["Deny"]}


@pytest.mark.parametrize(
    ("config", "actions"),
    [
        ({"queues": QUEUES, "environment": {"admission": "audit"}}, ["Audit", "Warn"]),
        ({"queues": QUEUES, "environment": {"admission": "off"}}, None),
        ({}, None),
    ],
)
def test_the_environment_sets_the_action_of_the_policy(config: dict[str, Any], actions: list[str] | None) -> None:
    made = [each for each in declare(**config) if each["inputs"]["metadata"]["name"] == POLICY]
    assert [each["inputs"]["spec"].get("validationActions") for each in made] == ([None, actions] if actions else [])
