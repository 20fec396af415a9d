"""Pods with GPUs name a leaf queue, and a scheduler that supports queues."""

from typing import Any

import pytest

from plimsoll.cluster.queues import check_queues
from plimsoll.model.meta import Severity
from plimsoll.policy import RULES
from tests.policy_rules.manifests import (
    Manifest,
    a_deployment,
    a_kaito_workspace,
    a_pod,
    a_queue,
    an_environment,
    broken,
    findings,
    with_path,
)

LABEL = "metadata.labels[kai.scheduler/queue]"
SHARE = {"gpu-fraction": "0.5"}


@pytest.mark.parametrize(
    "pod",
    [a_pod(gpus=1, labels={}), a_pod(SHARE, labels={}), a_pod(gpus="1", labels={}), a_pod(gpus=1, labels={"a": "b"})],
)
def test_a_pod_of_kai_with_gpus_names_a_queue(pod: Manifest) -> None:
    assert broken(pod) == [("gpu-workload-names-queue", LABEL)]


@pytest.mark.parametrize(
    "pod", [a_pod(labels={}), a_pod(gpus=1, labels={"project": "a"}), a_pod(gpus=1, labels={}, scheduler=None)]
)
def test_other_pods_need_no_queue(pod: Manifest) -> None:
    assert broken(pod) == []


def test_a_finding_of_the_queue_check_has_the_same_severity_as_a_rule() -> None:
    wrong = [a_queue("a", "gone"), {**a_queue("b"), "spec": {"resources": {"gpu": {"quota": 8, "limit": 4}}}}]
    checked = {each.rule: each.severity for each in check_queues(wrong)}
    assert {Severity.ERROR, Severity.WARNING} == set(checked.values())
    assert {name: RULES[name].severity for name in checked} == checked


def test_if_queues_are_declared_every_gpu_workload_names_one() -> None:
    pod = a_pod(gpus=1, labels={}, scheduler=None)
    assert broken(pod, a_queue("team")) == [("gpu-workload-names-queue", LABEL)]
    workspace = with_path(a_kaito_workspace(), apiVersion="plimsoll.dev/v1alpha1", spec={"resource": {
        "labelSelector": {"matchLabels": {"a": "b"}}}})  # fmt: skip
    assert broken(workspace, a_queue("team")) == [("gpu-workload-names-queue", "spec.queue")]
    assert broken(workspace) == []


def test_an_owners_label_counts_for_its_pods() -> None:
    pod = a_pod(gpus=1, labels={})
    assert broken(a_deployment(pod, {"kai.scheduler/queue": "team"})) == []
    owned = with_path(pod, metadata__ownerReferences=[{"kind": "ReplicaSet", "name": "a", "controller": True}])
    assert broken(owned) == []


def test_a_training_runtime_leaves_the_queue_to_its_jobs() -> None:
    template = a_deployment(a_pod(gpus=1, labels={}))["spec"]["template"]
    jobs = {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": template}}}]}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"template": jobs},
    }
    assert broken(runtime) == []
    template["metadata"]["annotations"] = {"gpu-fraction": "2"}
    del template["spec"]["containers"][0]["resources"]
    assert broken(runtime) == [
        (
            "gpu-share-fraction",
            "spec.template.spec.replicatedJobs[0].template.spec.template.metadata.annotations[gpu-fraction]",
        )
    ]


@pytest.mark.parametrize("scheduler", [None, "default-scheduler", "volcano"])
@pytest.mark.parametrize("annotations", [{}, SHARE])
def test_a_queue_or_a_share_needs_a_scheduler_that_reads_it(scheduler: Any, annotations: dict[str, str]) -> None:
    assert broken(a_pod(annotations, scheduler=scheduler)) == [("queue-scheduler", "spec.schedulerName")]


def test_which_schedulers_read_queues_is_the_environments_or_an_option() -> None:
    pod = a_pod(SHARE, scheduler="own")
    assert broken(pod, an_environment(queueScheduler="own")) == []
    assert broken(pod, rules={"queue-scheduler": {"options": {"schedulers": ["own"]}}}) == []


TREE = [a_queue("research"), a_queue("team", "research")]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [("team", []), ("research", ["queue-not-leaf"]), ("nobody", ["queue-unknown"])],
)
def test_the_queue_is_a_declared_leaf(queue: str, expected: list[str]) -> None:
    pod = a_pod(gpus=1, labels={"kai.scheduler/queue": queue})
    assert [rule for rule, _ in broken(pod, *TREE)] == expected


def test_without_known_queues_names_are_not_checked() -> None:
    pod = a_pod(gpus=1, labels={"kai.scheduler/queue": "nobody"})
    assert broken(pod) == []
    rules = {"queue-unknown": {"options": {"queues": ["shared"]}}}
    assert broken(pod, rules=rules) == [("queue-unknown", LABEL)]
    assert broken(a_pod(gpus=1, labels={"kai.scheduler/queue": "shared"}), rules=rules) == []


def test_each_queue_is_checked_once() -> None:
    wrong = with_path(a_queue("team"), spec__resources__gpu={"quota": 8, "limit": 4, "overQuotaWeight": 1})
    assert broken(wrong) == [("queue-limit-below-quota", "spec.resources.gpu.limit")]


def test_severities_of_queue_rules_are_settings_too() -> None:
    wrong = with_path(a_queue("team"), spec__parentQueue="gone")
    (found,) = findings(wrong, rules={"queue-parent-missing": {"severity": "warning"}})
    assert found.severity == "warning"
    assert findings(wrong, rules={"queue-parent-missing": {"severity": "off"}}) == []
