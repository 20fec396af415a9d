"""In a preview, a value that is known only in the update hides the checks that read it, and no others."""

from typing import Any

import pytest
from pulumi_policy.proxy import (
    UNKNOWN_ARRAY_VALUE,
    UNKNOWN_NUMBER_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_STRING_VALUE,
    UnknownValueError,
)

from tests.policies.resources import (
    QUEUE_TYPE,
    Resource,
    a_deployment,
    a_pod_template,
    a_queue,
    a_workspace,
    an_environment,
    stack_violations,
    violations,
)

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
SERVICE = "kubernetes:core/v1:Service"


def unpinned(**fields: Any) -> dict[str, Any]:
    template = a_pod_template(queue="q")
    template["spec"]["containers"][0] |= {"image": "own:latest", **fields}
    return template


UNRELATED: dict[str, Resource] = {
    "data": (CONFIG_MAP, {"metadata": {"name": "c"}, "data": UNKNOWN_OBJECT_VALUE}),
    "one value of data": (CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a": UNKNOWN_STRING_VALUE}}),
    "a namespace": (SERVICE, {"metadata": {"name": "s", "namespace": UNKNOWN_STRING_VALUE}, "spec": {}}),
    "a definition": (
        "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",
        {"metadata": UNKNOWN_OBJECT_VALUE, "spec": UNKNOWN_OBJECT_VALUE},
    ),
    "an environment variable": a_deployment(
        unpinned(env=[{"name": "DB", "value": UNKNOWN_STRING_VALUE}], args=["--db", UNKNOWN_STRING_VALUE])
    ),
    "all environment variables": a_deployment(unpinned(env=UNKNOWN_ARRAY_VALUE)),
}


@pytest.mark.parametrize("other", UNRELATED.values(), ids=UNRELATED)
def test_the_stack_is_checked_whatever_is_unknown_elsewhere(other: Resource) -> None:
    assert len(stack_violations("queue-unknown", a_workspace(queue="nobody"), a_queue("q"), other)) == 1
    assert len(stack_violations("gpu-budget", a_deployment(a_pod_template(8)), other, config={"environment": 4})) == 1


@pytest.mark.parametrize("other", UNRELATED.values(), ids=UNRELATED)
def test_the_known_fields_of_an_object_are_checked(other: Resource) -> None:
    images = other[0].endswith("Deployment")
    assert len(violations("image-tag-pinned", other)) == images


UNKNOWN_QUEUE = a_workspace(queue=UNKNOWN_STRING_VALUE, name="later")
UNKNOWN_NAMESPACE = a_workspace(queue="nobody", name="later")
UNKNOWN_NAMESPACE[1]["metadata"]["namespace"] = UNKNOWN_STRING_VALUE

UNKNOWN_LABELS: Resource = (SERVICE, {"metadata": UNKNOWN_OBJECT_VALUE, "spec": {}})


@pytest.mark.parametrize("later", [UNKNOWN_QUEUE, UNKNOWN_NAMESPACE, UNKNOWN_LABELS])
def test_the_other_objects_are_reported_and_the_preview_says_what_was_not_checked(later: Resource) -> None:
    found: list[str] = []
    with pytest.raises(UnknownValueError):
        stack_violations("queue-unknown", later, a_workspace(queue="nobody"), a_queue("q"), found=found)
    assert [each.partition(" names ")[0] for each in found] == ["Workspace phi"]


def test_replicas_that_are_unknown_are_not_counted() -> None:
    kind, props = a_deployment(a_pod_template(8, queue="q"))
    later = (kind, {**props, "spec": {**props["spec"], "replicas": UNKNOWN_NUMBER_VALUE}})
    found: list[str] = []
    with pytest.raises(UnknownValueError):
        stack_violations("gpu-budget", later, (kind, props), config={"environment": 4}, found=found)
    assert len(found) == 1
    assert "8 GPUs" in found[0]


@pytest.mark.parametrize(
    "setting",
    [
        (QUEUE_TYPE, {"metadata": {"name": "q"}, "spec": {"parentQueue": UNKNOWN_STRING_VALUE}}),
        (QUEUE_TYPE, {"metadata": {"name": "q"}, "spec": UNKNOWN_OBJECT_VALUE}),
        an_environment(UNKNOWN_STRING_VALUE),
    ],
)
def test_nothing_is_reported_against_queues_and_environments_that_are_not_known(setting: Resource) -> None:
    for rule in ("queue-unknown", "queue-resources-missing", "workspace-instance-type"):
        found: list[str] = []
        with pytest.raises(UnknownValueError):
            stack_violations(rule, a_workspace("p5.48xlarge", queue="nobody"), setting, found=found)
        assert found == []


@pytest.mark.parametrize("part", ["queue", "resource", "inference"])
def test_a_workspace_with_an_unknown_part_is_not_called_invalid(part: str) -> None:
    kind, props = a_workspace()
    with pytest.raises(UnknownValueError):
        violations("workspace-shape", (kind, {**props, "spec": {**props["spec"], part: UNKNOWN_OBJECT_VALUE}}))
