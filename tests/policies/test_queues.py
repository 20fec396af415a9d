"""Every workload with GPUs names a queue that exists and schedules."""

from typing import Any

import pytest

from plimsoll.model.labels import QUEUE
from policies.queues import gpu_workload_names_queue, queues_are_known
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


def test_a_workspace_names_one() -> None:
    assert violations(gpu_workload_names_queue, a_workspace(queue=None)) == ["Workspace phi: set spec.queue"]
    assert violations(gpu_workload_names_queue, a_workspace(queue="inference")) == []


@pytest.mark.parametrize("wrap", [a_deployment, a_pod, a_job_set])
def test_a_pod_with_gpus_names_one_however_deep_it_stands(wrap: Any) -> None:
    assert [QUEUE in text for text in violations(gpu_workload_names_queue, wrap(a_pod_template()))] == [True]
    assert violations(gpu_workload_names_queue, wrap(a_pod_template(queue="inference"))) == []


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
    assert len(violations(gpu_workload_names_queue, a_deployment(template))) == wants


def test_the_owners_label_counts_for_its_pods() -> None:
    deployment = a_deployment(a_pod_template(), labels={QUEUE: "inference"})
    assert violations(gpu_workload_names_queue, deployment) == []
    assert stack_violations(queues_are_known, deployment, *TREE) == []


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("inference", None),
        ("research", "spec.queue is 'research', which has child queues and schedules nothing itself"),
        ("nobody", "spec.queue is 'nobody', which nobody declares (known: inference, training)"),
        (None, None),  # the other rule says it
    ],
)
def test_the_queue_is_a_leaf_that_somebody_declares(queue: str | None, words: str | None) -> None:
    found = stack_violations(queues_are_known, a_workspace(queue=queue), *TREE)
    assert len(found) == (words is not None)
    assert all(words in text for text in found if words)


def test_queues_of_other_stacks_are_configured() -> None:
    deployment = a_deployment(a_pod_template(queue="shared"))
    assert len(stack_violations(queues_are_known, deployment)) == 1
    assert stack_violations(queues_are_known, deployment, config={"queues": ["shared"]}) == []


def test_resources_of_other_providers_are_left_alone() -> None:
    _, props = a_deployment(a_pod_template())
    assert violations(gpu_workload_names_queue, ("aws:batch/jobDefinition:JobDefinition", props)) == []
