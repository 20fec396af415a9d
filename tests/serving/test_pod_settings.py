"""Settings of the pods of presets, by the Environment and the Workspace."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.model import Reason, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Namespace
from plimsoll.plan import plan, validate
from tests.builders import a_node, a_snapshot, an_environment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENVIRONMENT = {
    "imagePullSecrets": ["mirror"],
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}, {"name": "LOG", "value": "info"}],
    "runtimeClassName": "nvidia",
    "labels": {"team": "platform", "tier": "serving"},
    "annotations": {"sidecar.istio.io/inject": "false"},
    "tolerations": [{"key": "gpu-only", "operator": "Exists"}],
    "options": {"max-num-seqs": "64", "enable-prefix-caching": ""},
}
OWN = {
    "imagePullSecrets": ["own", "mirror"],
    "serviceAccountName": "model",
    "env": [
        {"name": "LOG", "value": "debug"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}},
    ],
    "priorityClassName": "serving",
    "labels": {"team": "chat"},
    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
    "resources": {"requests": {"cpu": 8}, "limits": {"memory": "64Gi"}},
    "options": {"max-num-seqs": "128"},
    "startupSeconds": 600,
}


def a_chat(pods: dict[str, Any] | None = None, **inference: Any) -> Workspace:
    given = {"preset": {"name": "phi-4"}, **inference, **({} if pods is None else {"pods": pods})}
    spec = {"resource": {"labelSelector": {"matchLabels": {"pool": "a"}}}, "inference": given}
    return Workspace.read({"metadata": {"name": "chat", "namespace": "default"}, "spec": spec})


def a_cluster(workspace: Workspace, *nodes: Any, **environment: Any) -> Snapshot:
    return a_snapshot(workspace, *(nodes or (a_node(allocatable=1),)), environment=an_environment(**environment))


def deployed(workspace: Workspace, *nodes: Any, **environment: Any) -> dict[str, Any]:
    snapshot = a_cluster(workspace, *nodes, **environment)
    created = plan(snapshot, validate(snapshot), NOW).creations
    manifest: dict[str, Any] = next(each.manifest for each in created if each.manifest["kind"] == "Deployment")
    return manifest


def pods_of(workspace: Workspace, **environment: Any) -> dict[str, Any]:
    template: dict[str, Any] = deployed(workspace, **environment)["spec"]["template"]
    return template


def variables(template: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in template["spec"]["containers"][0]["env"]}


def test_the_workspaces_settings_are_over_the_environments() -> None:
    tolerant = a_node(allocatable=1, taints=["gpu-only"])
    manifest = deployed(a_chat(OWN), tolerant, presetPods=ENVIRONMENT)
    template = manifest["spec"]["template"]
    metadata, spec = template["metadata"], template["spec"]
    [server] = spec["containers"]
    assert {"team": "chat", "tier": "serving"}.items() <= metadata["labels"].items()
    assert metadata["annotations"]["sidecar.istio.io/inject"] == "false"
    assert spec["imagePullSecrets"] == [{"name": "mirror"}, {"name": "own"}]
    assert (spec["serviceAccountName"], spec["runtimeClassName"]) == ("model", "nvidia")
    assert spec["priorityClassName"] == "serving"
    assert spec["tolerations"][0] == {"key": "gpu-only", "operator": "Exists"}
    assert "preferredDuringSchedulingIgnoredDuringExecution" in spec["affinity"]["nodeAffinity"]
    assert {"HTTPS_PROXY": "http://proxy:3128", "LOG": "debug", "KEY": None}.items() <= variables(template).items()
    assert server["resources"]["requests"]["cpu"] == "8"
    assert server["resources"]["limits"]["memory"] == "64Gi"
    assert "memory" not in server["resources"]["requests"]
    assert {"--max-num-seqs=128", "--enable-prefix-caching"} <= set(server["args"])
    assert server["startupProbe"]["failureThreshold"] * server["startupProbe"]["periodSeconds"] == 600
    assert manifest["spec"]["progressDeadlineSeconds"] == 1200


def test_pods_download_from_the_environments_mirror() -> None:
    assert "HF_ENDPOINT" not in variables(pods_of(a_chat()))
    assert "HF_ENDPOINT" not in variables(pods_of(a_chat(), modelHub={}))
    mirror = {"endpoint": "https://hf-mirror.internal"}
    assert variables(pods_of(a_chat(), modelHub=mirror))["HF_ENDPOINT"] == "https://hf-mirror.internal"
    own = a_chat({"env": [{"name": "HF_ENDPOINT", "value": "https://other"}]})
    assert variables(pods_of(own, modelHub=mirror))["HF_ENDPOINT"] == "https://other"


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("gpu-memory-utilization", "follows from"),
        ("data-parallel-size-local", "follows from"),
        ("no-tensor-parallel-size", "follows from"),
        ("prefill-context-parallel-size", "follows from"),
        ("ssl-certfile", "follows from"),
        ("gpu-memory-util", "gpu-memory-utilization"),
        ("gpu_memory_utilization", "gpu-memory-utilization"),
        ("max-num-sequences", "max-num-seqs"),
        ("no-such-option", "no-such-option"),
    ],
)
def test_options_that_are_computed_or_unknown_are_refused(option: str, named: str) -> None:
    for workspace, environment in (
        (a_chat({"options": {option: "1"}}), {}),
        (a_chat(), {"presetPods": {"options": {option: "1"}}}),
    ):
        [verdict] = validate(a_cluster(workspace, **environment))
        assert verdict.reason is Reason.INVALID_SPEC and named in verdict.message, verdict.message


def test_an_options_value_is_no_other_option() -> None:
    smuggled = a_chat({"options": {"chat-template": "--max-model-len", "no-enable-prefix-caching": ""}})
    arguments = pods_of(smuggled)["spec"]["containers"][0]["args"]
    assert arguments[-2:] == ["--chat-template=--max-model-len", "--no-enable-prefix-caching"]


@pytest.mark.parametrize(
    "pods",
    [
        {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]},
        {"env": [{"name": "HF_HOME", "value": "/tmp"}]},
        {"env": [{"name": "A", "value": "b", "valueFrom": {}}]},
        {"env": [{"name": "A", "value": 1}]},
        {"env": [{"value": "b"}]},
        {"resources": {"limits": {"nvidia.com/gpu": 8}}},
        {"resources": {"requests": {"cpu": "many"}}},
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": {}}}},
        {"startupSeconds": 0},
    ],
)
def test_settings_that_no_pod_may_have_are_invalid(pods: dict[str, Any]) -> None:
    with pytest.raises(PlimsollError, match=r"pods"):
        a_chat(pods)


def test_settings_are_for_presets_alone() -> None:
    with pytest.raises(PlimsollError, match="pods are for presets"):
        a_chat({}, preset=None, template={"spec": {"containers": [{"name": "a"}]}})


def test_labels_of_pods_keep_the_environments_rules() -> None:
    [reserved] = validate(a_cluster(a_chat({"labels": {"plimsoll.dev/workspace": "other"}})))
    assert reserved.reason is Reason.INVALID_SPEC
    access = [{"namespaces": ["*"], "queues": ["research"]}]
    [barred] = validate(a_cluster(a_chat({"labels": {"kai.scheduler/queue": "production"}}), access=access))
    assert barred.reason is Reason.NOT_ALLOWED


def test_tolerations_make_nodes_usable() -> None:
    tainted = a_node(allocatable=1, taints=["own"])
    tolerant = a_chat({"tolerations": [{"key": "own", "operator": "Exists"}]})
    assert not validate(a_cluster(a_chat(), tainted))[0].accepted
    assert validate(a_cluster(tolerant, tainted))[0].accepted
    everywhere = {"presetPods": {"tolerations": [{"key": "own", "operator": "Exists"}]}}
    assert validate(a_cluster(a_chat(), tainted, **everywhere))[0].accepted


def test_requests_beyond_the_nodes_are_refused() -> None:
    node = a_node(allocatable=1).model_copy(update={"allocatable": {"nvidia.com/gpu": "1", "cpu": "16"}})
    assert validate(a_cluster(a_chat({"resources": {"requests": {"cpu": "16"}}}), node))[0].accepted
    [refused] = validate(a_cluster(a_chat({"resources": {"requests": {"cpu": "17"}}}), node))
    assert refused.reason is Reason.NO_USABLE_NODES


def test_security_contexts_are_over_those_of_the_user() -> None:
    shared = {"securityContext": {"fsGroup": 3000, "supplementalGroups": [44]}}
    own = {
        "securityContext": {"runAsUser": 1000},
        "containerSecurityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["NET_RAW"]}},
    }
    spec = pods_of(a_chat(own), presetPods=shared)["spec"]
    context = spec["securityContext"]
    assert (context["runAsUser"], context["fsGroup"], context["supplementalGroups"]) == (1000, 3000, [44])
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["NET_RAW"]},
        "readOnlyRootFilesystem": True,
    }


def test_without_a_user_security_contexts_are_what_is_declared() -> None:
    own = a_chat({"securityContext": {"fsGroup": 1}, "containerSecurityContext": {"allowPrivilegeEscalation": False}})
    spec = pods_of(own, inferenceUser=0)["spec"]
    assert spec["securityContext"] == {"fsGroup": 1}
    assert spec["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}
    assert "securityContext" not in pods_of(a_chat(), inferenceUser=0)["spec"]


def test_root_is_not_asked_to_be_another_user() -> None:
    context = pods_of(a_chat({"securityContext": {"runAsUser": 0}}))["spec"]["securityContext"]
    assert context["runAsUser"] == 0
    assert "runAsNonRoot" not in context


def test_containers_that_copy_adapters_have_the_context_too() -> None:
    own = {"containerSecurityContext": {"readOnlyRootFilesystem": True}}
    adapters = [{"source": {"name": "style", "image": "registry/style:1"}}]
    spec = pods_of(a_chat(own, adapters=adapters))["spec"]
    [copying] = spec["initContainers"]
    assert copying["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("pods", "named"),
    [
        ({"securityContext": {"runAsUsr": 1}}, "did you mean runAsUser?"),
        ({"securityContext": {"runAsUser": "1000"}}, "runAsUser must be a whole number"),
        ({"securityContext": {"runAsUser": True}}, "runAsUser must be a whole number"),
        ({"securityContext": {"readOnlyRootFilesystem": True}}, "readOnlyRootFilesystem"),
        ({"containerSecurityContext": {"fsGroup": 1}}, "fsGroup"),
        ({"containerSecurityContext": {"capabilities": ["ALL"]}}, "capabilities must be an object"),
        ({"containerSecurityContext": {"privileged": True}}, "privileged cannot be set"),
    ],
)
def test_security_contexts_that_a_pod_cannot_have(pods: dict[str, Any], named: str) -> None:
    with pytest.raises(PlimsollError, match=re.escape(named)):
        a_chat(pods)
    with pytest.raises(PlimsollError, match=re.escape(named)):
        an_environment(presetPods=pods)


def test_pods_of_a_workspace_that_the_namespace_would_not_admit() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = Namespace.read({"metadata": {"name": "default", "labels": labels}})
    for own, accepted in (({"runAsUser": 1000}, True), ({"runAsUser": 0}, False)):
        [verdict] = validate(a_snapshot(a_chat({"securityContext": own}), a_node(allocatable=1), namespace))
        assert verdict.reason is (Reason.ACCEPTED if accepted else Reason.NOT_ALLOWED), verdict.message
