"""Pods with fields that every apiserver refuses: no node is bought for them."""

from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import refused_pods
from tests.builders import NC24, a_snapshot, a_template, a_workspace, an_environment
from tests.calls import calls
from tests.planning.test_alternatives import START


def verdict_of(template: dict[str, Any]) -> Verdict:
    snapshot = a_snapshot(a_workspace(instance_type=NC24, template=template), environment=an_environment(nap=True))
    [verdict] = validate(snapshot)
    assert bool(plan(snapshot, [verdict], START).creations) == verdict.accepted, "nothing is bought for what is refused"
    return verdict


def preset_with(pods: dict[str, Any], **environment: Any) -> Verdict:
    workspace = a_workspace(instance_type=NC24, preset="phi-4")
    spec = workspace.spec.manifest()
    spec["inference"]["pods"] = pods
    changed = workspace.model_copy(update={"spec": type(workspace.spec).model_validate(spec)})
    [verdict] = validate(a_snapshot(changed, environment=an_environment(nap=True, **environment)))
    return verdict


def a_pod(
    spec: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **container: Any
) -> dict[str, Any]:
    containers = [{"name": "server", "image": "own:1", **container}]
    return {"metadata": metadata or {}, "spec": {"containers": containers, **(spec or {})}}


@pytest.mark.parametrize(
    ("template", "named"),
    [
        (a_pod(name="Bad_Name"), "Bad_Name"),
        (a_pod({"initContainers": [{"name": "server", "image": "own:1"}]}), "two containers are named 'server'"),
        (a_pod({"restartPolicy": "Never"}), "cannot be created or scheduled: inference.template.spec.restartPolicy"),
        (a_pod({"nodeName": "one"}), "nodeName"),
        (a_pod({"runtimeClassName": "N V"}), "runtimeClassName"),
        (a_pod({"imagePullSecrets": [{"name": "My_Secret"}]}), "imagePullSecrets"),
        (a_pod({"imagePullSecrets": ["registry"]}), "must be a list of objects"),
        (a_pod(metadata={"labels": {"team": "a b"}}), "team: a b"),
        (a_pod(metadata={"annotations": {"a key": "b"}}), "a key"),
        (a_pod(metadata={"annotations": {"team": 1}}), "metadata.annotations: team: 1 is no string"),
        (a_pod({"nodeSelector": {"team": True}}), "spec.nodeSelector: team: True is no string"),
        (a_pod(env=[{"name": "PORT", "value": 8000}]), "PORT: 8000 is no string"),
        (a_pod(args=["--port", 8000]), "args: 8000 is no string"),
        (a_pod(command=["serve", True]), "command: True is no string"),
        (a_pod(env=[{"name": "A=B", "value": "c"}]), "A=B"),
        (a_pod(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]), "needs a key"),
        (a_pod(env=[{"name": "A", "valueFrom": {}}]), "one source"),
        (a_pod(volumeMounts=[{"name": "models", "mountPath": "/m"}]), "no volume 'models'"),
        (a_pod({"tolerations": [{"key": "a", "operator": "Is"}]}), "operator 'Is' is none of Exists, Equal, Lt, Gt"),
        (a_pod({"tolerations": [{"key": "a", "value": "b c"}]}), "a label value otherwise"),
        (a_pod({"tolerations": [{"value": "a"}]}), "without a key"),
        (a_pod({"tolerations": [{"key": "a", "operator": "Exists", "effect": "No"}]}), "effect 'No'"),
        (a_pod({"tolerations": [{"operator": "Exists", "tolerationSeconds": 5}]}), "tolerationSeconds"),
        (a_pod(resources={"requests": {"cpuu": "1"}}), "cpuu"),
        (a_pod(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}), "above its limit"),
        (a_pod(resources={"limits": {"example.com/x": "0.5"}}), "whole number"),
        (a_pod(resources={"requests": {"example.com/x": "1"}}), "needs a limit"),
    ],
)
def test_a_template_that_the_cluster_refuses(template: dict[str, Any], named: str) -> None:
    verdict = verdict_of(template)
    assert (verdict.accepted, verdict.reason) == (False, Reason.INVALID_SPEC)
    assert named in verdict.message


@pytest.mark.parametrize(
    ("operator", "values"), [("In", []), ("In", [True]), ("Exists", ["a"]), ("Gt", ["1", "2"]), ("Is", [])]
)
def test_conditions_that_are_none_are_refused(operator: str, values: list[Any]) -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": operator, "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert "is no condition" in verdict_of(a_pod({"affinity": {"nodeAffinity": required}})).message


def test_what_the_cluster_accepts_is_accepted() -> None:
    """Each kind of field that is checked, as it may be written."""
    conditions = [{"key": "disk", "operator": "In", "values": ["ssd"]}, {"key": "b", "operator": "Exists"}]
    required = {"nodeSelectorTerms": [{"matchExpressions": conditions}]}
    spec = {
        "restartPolicy": "Always",
        "runtimeClassName": "nvidia",
        "serviceAccountName": "models.prod",
        "imagePullSecrets": [{"name": "registry"}],
        "initContainers": [{"name": "download", "image": "own:1", "restartPolicy": "Always"}],
        "volumes": [{"name": "models", "emptyDir": {}}],
        "nodeSelector": {"disk": "ssd", "empty": ""},
        "tolerations": [
            {"operator": "Exists"},
            {"key": "a", "value": "b"},
            {"key": "a.b/c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
        ],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }
    container = {
        "env": [
            {"name": "1-a.b c", "value": ""},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "command": ["serve"],
        "args": ["--port", "8000"],
        "volumeMounts": [{"name": "models", "mountPath": "/m"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "1Gi", "example.com/x": 1},
            "limits": {"cpu": 1, "memory": "2Gi", "nvidia.com/gpu": "1", "example.com/x": "1"},
        },
    }
    metadata = {"labels": {"team": "", "example.com/app": "a_b.c"}, "annotations": {"Example.com/A": "anything at all"}}
    verdict = verdict_of(a_pod(spec, metadata, **container))
    assert verdict.accepted, verdict.message
    assert verdict_of(a_template()).accepted


def test_fields_that_are_null_are_left_out() -> None:
    """As Helm charts write them, and as the apiserver reads them."""
    sources = {"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": None, "fieldRef": None}
    env = [{"name": "KEY", "valueFrom": sources}, {"name": "NONE", "value": None, "valueFrom": None}]
    template = a_pod({"restartPolicy": ""}, env=env, resources={"limits": {"example.com/x": None}})
    verdict = verdict_of(template)
    assert verdict.accepted, verdict.message


def test_settings_of_the_pods_of_a_preset_are_checked_wherever_they_are_set() -> None:
    wrong = {"tolerations": [{"key": "a", "operator": "Is"}]}
    assert "operator 'Is'" in preset_with(wrong).message
    assert "operator 'Is'" in preset_with({}, presetPods=wrong).message
    assert "runtimeClassName" in preset_with({"runtimeClassName": "N V"}).message
    assert preset_with({"runtimeClassName": "nvidia", "imagePullSecrets": ["registry"]}).accepted


class Name(str):
    """A name that counts as a call how often it is compared."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_many_mounts_are_not_compared_with_each_volume() -> None:
    """A template of 20,000 volumes, which fit an object, took each change of it seconds."""

    def cost(number: int) -> int:
        names = [Name(f"v{each}") for each in range(number)]
        volumes = {"volumes": [{"name": each, "emptyDir": {}} for each in names]}
        template = a_pod(volumes, volumeMounts=[{"name": each, "mountPath": f"/{each}"} for each in names])
        assert refused_pods("", template) is None
        return calls(lambda: refused_pods("", template))

    assert cost(400) < 3 * cost(200)
