from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.kube import NotReadyError, readiness


def ready(kind: str, status: dict[str, Any], api_version: str = "apps/v1", **spec: Any) -> bool:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec}
    condition = readiness(obj)
    assert condition is not None
    return condition(obj | {"status": status}) is None


def waiting(expression: str, obj: dict[str, Any]) -> bool:
    annotated = {"apiVersion": "a/v1", "kind": "K", "metadata": {"annotations": {"pulumi.com/waitFor": expression}}}
    condition = readiness(annotated | obj)
    assert condition is not None
    return condition(annotated | obj) is not None


def condition(name: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": name, "status": status, **more}


def test_a_pod_is_ready_by_its_condition_or_if_it_succeeded() -> None:
    assert ready("Pod", {"conditions": [condition("Ready")]}, "v1")
    assert ready("Pod", {"phase": "Succeeded"}, "v1")
    assert not ready("Pod", {"conditions": [condition("Ready", "False")]}, "v1")
    assert not ready("Pod", {}, "v1")
    with pytest.raises(NotReadyError, match="Evicted"):
        ready("Pod", {"phase": "Failed", "reason": "Evicted"}, "v1")


def test_a_deployment_is_ready_when_its_rollout_is_complete() -> None:
    done = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    assert ready("Deployment", done, replicas=3)
    assert not ready("Deployment", done | {"observedGeneration": 1}, replicas=3)
    assert not ready("Deployment", done | {"availableReplicas": 2}, replicas=3)
    assert not ready("Deployment", done | {"replicas": 4}, replicas=3)
    assert ready("Deployment", {"observedGeneration": 2}, replicas=0)
    stuck = condition("Progressing", "False", reason="ProgressDeadlineExceeded")
    with pytest.raises(NotReadyError, match="ProgressDeadlineExceeded"):
        ready("Deployment", {"observedGeneration": 2, "conditions": [stuck]}, replicas=1)


def test_the_failed_rollout_of_an_earlier_generation_is_no_failure_of_this_one() -> None:
    stuck = condition("Progressing", "False", reason="ProgressDeadlineExceeded")
    assert not ready("Deployment", {"observedGeneration": 1, "conditions": [stuck]}, replicas=1)


def test_sets_are_ready_when_their_updated_pods_are() -> None:
    done = {"observedGeneration": 2, "updatedReplicas": 2, "readyReplicas": 2}
    assert ready("StatefulSet", done, replicas=2)
    assert not ready("StatefulSet", done | {"updatedReplicas": 1}, replicas=2)
    assert ready("StatefulSet", done | {"updatedReplicas": 0}, replicas=2, updateStrategy={"type": "OnDelete"})
    daemons = {"observedGeneration": 2, "desiredNumberScheduled": 2, "numberAvailable": 2, "updatedNumberScheduled": 2}
    assert ready("DaemonSet", daemons)
    assert not ready("DaemonSet", daemons | {"numberAvailable": 1})


def test_a_job_is_ready_when_complete() -> None:
    assert ready("Job", {"conditions": [condition("Complete")]}, "batch/v1")
    assert not ready("Job", {}, "batch/v1")
    with pytest.raises(NotReadyError, match="BackoffLimitExceeded"):
        ready("Job", {"conditions": [condition("Failed", reason="BackoffLimitExceeded")]}, "batch/v1")


def test_a_definition_is_ready_when_established() -> None:
    group = "apiextensions.k8s.io/v1"
    assert ready("CustomResourceDefinition", {"conditions": [condition("Established")]}, group)
    assert not ready("CustomResourceDefinition", {}, group)
    with pytest.raises(NotReadyError, match="taken"):
        refused = condition("NamesAccepted", "False", message="taken")
        ready("CustomResourceDefinition", {"conditions": [refused]}, group)


def test_only_a_load_balancer_service_is_awaited() -> None:
    assert ready("Service", {}, "v1", type="ClusterIP")
    assert not ready("Service", {}, "v1", type="LoadBalancer")
    assert ready("Service", {"loadBalancer": {"ingress": [{"ip": "1"}]}}, "v1", type="LoadBalancer")


def test_custom_resources_are_ready_at_once() -> None:
    assert readiness({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {}}) is None


@pytest.mark.parametrize(
    ("expression", "done"),
    [
        ("condition=Ready", True),
        ("condition=ready=true", True),
        ("condition=Ready=False", False),
        ("condition=Other", False),
        ("jsonpath={.status.phase}=Bound", True),
        ("jsonpath={.status.phase}", True),
        ("jsonpath=.status.missing", False),
        ("jsonpath={.status.count}=2", True),
        ("jsonpath={.status.list[1].name}=b", True),
        ("jsonpath={.status.list[*].name}=b", True),
        ('jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', True),
        ('jsonpath={.status.conditions[?(@.type=="Other")].status}=True', False),
        (r"jsonpath={.metadata.labels.a\.b/c}=1", True),
        ('["condition=Ready", "jsonpath={.status.phase}=Bound"]', True),
        ('["condition=Ready", "jsonpath={.status.phase}=Lost"]', False),
    ],
)
def test_wait_for_expressions(expression: str, done: bool) -> None:
    status = {
        "phase": "Bound",
        "count": 2,
        "list": [{"name": "a"}, {"name": "b"}],
        "conditions": [condition("Ready")],
    }
    annotations = {"pulumi.com/waitFor": expression}
    obj = {"status": status, "metadata": {"labels": {"a.b/c": "1"}, "annotations": annotations}}
    assert waiting(expression, obj) is not done


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ({"conditions": [{"type": "Ready", "status": True}]}, True),
        ({"conditions": [{"type": None}, "Ready"]}, False),
        ({"conditions": {"Ready": "True"}}, False),
        ("Ready", False),
    ],
)
def test_conditions_of_any_shape_are_read(status: Any, done: bool) -> None:
    assert waiting("condition=Ready", {"status": status}) is not done


@pytest.mark.parametrize("expression", ["Ready", "[]", "jsonpath={.a[?(@.b>1)]}", "jsonpath={range .items}"])
def test_expressions_that_cannot_be_read_are_refused(expression: str) -> None:
    with pytest.raises(PlimsollError, match="waitFor"):
        waiting(expression, {})
