"""Every workload with GPUs names an existing leaf queue."""

from typing import Any

import pytest

from plimsoll.labels import QUEUE
from tests.policies.resources import (
    Resource,
    a_deployment,
    a_pod_template,
    a_queue,
    a_workspace,
    stack_violations,
    violations,
)

TREE = (a_queue("research"), a_queue("inference", "research"), a_queue("training", "research"))
JOB_SET = "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet"


def a_pod(template: dict[str, Any]) -> Resource:
    metadata = {"name": "pod", **template["metadata"]}
    return "kubernetes:core/v1:Pod", {"metadata": metadata, "spec": template["spec"]}


def a_job_set(template: dict[str, Any]) -> Resource:
    job = {"name": "workers", "template": {"spec": {"template": template}}}
    return JOB_SET, {"metadata": {"name": "set"}, "spec": {"replicatedJobs": [job]}}


def test_a_workspace_names_a_queue() -> None:
    [found] = violations("gpu-workload-names-queue", a_workspace(queue=None))
    assert found.startswith("Workspace phi: spec.queue ")
    assert violations("gpu-workload-names-queue", a_workspace(queue="inference")) == []


@pytest.mark.parametrize("wrap", [a_deployment, a_pod, a_job_set])
def test_a_pod_template_with_gpus_names_a_queue_at_any_depth(wrap: Any) -> None:
    assert [QUEUE in text for text in violations("gpu-workload-names-queue", wrap(a_pod_template()))] == [True]
    assert violations("gpu-workload-names-queue", wrap(a_pod_template(queue="inference"))) == []


@pytest.mark.parametrize(
    ("template", "wants"),
    [
        (a_pod_template("2", where="requests"), True),
        (a_pod_template(0), False),
        (a_pod_template(0, annotations={"gpu-fraction": "0.5"}), True),
        (a_pod_template(0, annotations={"gpu-memory": "2000"}), True),
        ({"metadata": {}, "spec": {"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}}]}}, True),
        (
            {
                "metadata": {},
                "spec": {
                    "containers": [{"name": "main"}],
                    "initContainers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}],
                },
            },
            True,
        ),
        ({"metadata": {}, "spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}}, False),
    ],
)
def test_what_counts_as_a_workload_with_gpus(template: dict[str, Any], wants: bool) -> None:
    assert len(violations("gpu-workload-names-queue", a_deployment(template))) == wants


def test_the_owners_label_counts_for_its_pods() -> None:
    deployment = a_deployment(a_pod_template(), labels={QUEUE: "inference"})
    assert violations("gpu-workload-names-queue", deployment) == []
    assert stack_violations("queue-unknown", deployment, *TREE) == []


@pytest.mark.parametrize(
    ("queue", "rule"),
    [
        ("inference", None),
        ("research", "queue-not-leaf"),
        ("nobody", "queue-unknown"),
        (None, None),  # another rule says it
    ],
)
def test_the_queue_is_a_declared_leaf(queue: str | None, rule: str | None) -> None:
    for each in ("queue-unknown", "queue-not-leaf"):
        found = stack_violations(each, a_workspace(queue=queue), *TREE)
        assert len(found) == (each == rule)
        assert all(f"Queue {queue}" in text and "inference, training" in text for text in found)


def test_queues_of_other_stacks_are_configured() -> None:
    deployment = a_deployment(a_pod_template(queue="shared"))
    assert len(stack_violations("queue-unknown", deployment)) == 1
    assert stack_violations("queue-unknown", deployment, config={"queues": ["shared"]}) == []


def test_resources_of_other_providers_are_ignored() -> None:
    _, props = a_deployment(a_pod_template())
    assert violations("gpu-workload-names-queue", ("aws:batch/jobDefinition:JobDefinition", props)) == []
