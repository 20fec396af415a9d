"""A stack's configuration is validated as a whole; errors name the stack's file and the field."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from plimsoll.errors import PlimsollError
from plimsoll.stacks import Settings, run, settings_of
from tests.components.declaring import declared, manifest, requests

WORKSPACE = {"inference": {"preset": {"name": "phi-4"}}}


def refusal(**values: Any) -> str:
    with pytest.raises(PlimsollError) as caught:
        settings_of({"layer": "environment", **values})
    return caught.value.message


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"workspaces": {"a": {**WORKSPACE, "queu": "x"}}}, "workspaces.a.queu: unknown field (did you mean queue?)"),
        ({"workspaces": {"a": {"inference": {"replicas": "many"}}}}, "workspaces.a.inference.replicas"),
        ({"nodePools": {"gpu": {}}}, "nodePools.gpu.nodeClassRef: is required"),
        ({"queues": {"a": {"resources": {"gpu": {"quota": -3}}}}}, "queues.a.resources.gpu.quota"),
        ({"environment": {"nodeAutoProvisioning": "on"}}, "environment.nodeAutoProvisioning"),
        ({"environments": {}}, "environments: unknown field (did you mean environment?)"),
        ({"queues": {"a": {"import": True, "patchForce": True}}}, "queues.a: patchForce is an annotation, and import"),
        (
            {"kaitoWorkspaces": {"a": {"import": True, "patchForce": True, "fields": {}}}},
            "kaitoWorkspaces.a: patchForce is an annotation, and import",
        ),
        ({"layer": "capacity"}, "layer"),
        ({"queues": {"a": {"parentQueue": "b"}, "b": {"parentQueue": "a"}}}, "form a cycle, a -> b -> a"),
        (
            {
                "queues": {
                    "a": {"resources": {"gpu": {"quota": 1}}},
                    "b": {"parentQueue": "a", "resources": {"gpu": {"quota": 2}}},
                }
            },
            "Queue a: its gpu quota is 1 GPUs, and its children's are 2 together (b: 2)",
        ),
        ({"queues": {"a": {"preemptMinRuntime": "1d"}}}, "not a duration"),
        ({"queues": {"a": {"parentQueue": "a"}}}, "form a cycle, a -> a"),
        ({"clusterQueues": ["No_Queue"]}, "clusterQueues[0]: is not a queue name"),
        ({"trainingRuntimes": {"torch": {}}}, "trainingRuntimes.torch.template: is required"),
        (
            {"clusterTrainingRuntimes": {"torch": {"namespace": "a"}}},
            "clusterTrainingRuntimes.torch.namespace: unknown field",
        ),
        ({"layer": "foundation", "queues": {"a": {}}}, "queues: belongs to a stack of the layer environment"),
        ({"monitoring": {"scalingSeconds": 0}}, "monitoring.scalingSeconds"),
        ({"monitoring": {"receiver": "me"}}, "monitoring.receiver: unknown field"),
        (
            {
                "monitoring": {"labels": {"release": "prometheus"}},
                "environment": {"demand": {"provisioner": "trigger-pod", "deadlineSeconds": 600}},
            },
            "monitoring.triggerPendingSeconds: the alert fires after 600 s and another 60",
        ),
        ({"layer": "objects", "clusterQueues": ["a"]}, "clusterQueues: belongs to a stack of the layer environment"),
        ({"triggerNamespace": "calls"}, "triggerNamespace: belongs to a stack of the layer foundation"),
        ({"servedNamespaces": ["team"]}, "servedNamespaces: belongs to a stack of the layer foundation"),
        ({"layer": "foundation", "servedNamespaces": []}, "servedNamespaces"),
        ({"layer": "foundation", "servedNamespaces": ["*"]}, "servedNamespaces[0]"),
        (
            {"layer": "foundation", "triggerNamespace": "kai-scale-adjust"},
            "triggerNamespace: is one of KAI's namespaces",
        ),
    ],
)
def test_errors_name_the_file_and_the_field(values: dict[str, Any], words: str) -> None:
    text = refusal(**values)
    assert text.startswith(f"Pulumi.{pulumi.get_stack()}.yaml: ")
    assert words in text


@pytest.mark.parametrize(
    ("project", "file"),
    [
        ("{name: a, stackConfigDir: deploy/stacks}", "deploy/stacks/Pulumi.{}.yaml"),
        ("{name: a}", "Pulumi.{}.yaml"),
        ("[", "Pulumi.{}.yaml"),
        (None, "Pulumi.{}.yaml"),
    ],
)
def test_errors_name_the_file_where_the_project_keeps_it(
    project: str | None, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if project is not None:
        (tmp_path / "Pulumi.yaml").write_text(project)
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: str(tmp_path))
    assert refusal(extra=1).startswith(f"{file.format(pulumi.get_stack())}: extra")


def test_all_errors_are_reported_at_once() -> None:
    text = refusal(workspaces={"a": {}, "b": {"x": 1}}, extra=1)
    assert "workspaces.b.x: unknown field" in text
    assert "extra: unknown field" in text


@pytest.mark.parametrize("key", ["kai.scheduler/node-pool", "example.com/pool"])
def test_queues_and_their_parents_are_of_one_node_pool_of_kai(key: str) -> None:
    def queues(**below: str) -> dict[str, Any]:
        return {"a": {"labels": {key: "north"}}, "b": {"parentQueue": "a", "labels": below}}

    environment = {"nodePoolLabelKey": key}
    given = {"layer": "environment", "environment": environment, "queues": queues(**{key: "north"})}
    assert settings_of(given).queues["b"].labels == {key: "north"}
    assert f"another label {key}" in refusal(environment=environment, queues=queues())
    assert settings_of({"layer": "environment", "environment": {"nodePoolLabelKey": ""}, "queues": queues()})


def test_queues_come_after_their_parents() -> None:
    tree = {"a": {"parentQueue": "m"}, "m": {"parentQueue": "z"}, "z": {}, "b": {"parentQueue": "elsewhere"}}
    order = list(Settings.model_validate({"layer": "environment", "queues": tree}).queues_in_order())
    assert sorted(order) == sorted(tree)
    assert order.index("z") < order.index("m") < order.index("a")


def run_stack(stack: str, **config: Any) -> list[dict[str, Any]]:
    texts = {f"plimsoll:{key}": value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    return declared(run, stack=stack, config=texts)


def test_the_program_ends_with_the_message_alone() -> None:
    with pytest.raises(pulumi.RunError, match=r"^Pulumi\.prod\.yaml: workspaces\.a\.x: unknown field") as caught:
        run_stack("prod", layer="environment", workspaces={"a": {**WORKSPACE, "x": 1}})
    assert caught.value.__cause__ is None


def test_a_string_instead_of_an_object_is_an_error() -> None:
    with pytest.raises(pulumi.RunError, match="queues: 'all of them' is "):
        run_stack("prod", layer="environment", queues="all of them")


def test_empty_defaults_of_the_project_count_as_absent() -> None:
    made = run_stack("prod", layer="foundation", queues={}, namespaces=[], gpuDiscovery={})
    assert any(each["type"].endswith(":CustomResourceDefinition") for each in made)


@pytest.mark.parametrize(
    "controller", [{}, {"image": "a:1", "backend": "s3://b", "passphrase": {"name": "p"}, "ui": {}}]
)
def test_a_destroy_of_a_foundation_is_refused_before_anything_is_deleted(controller: dict[str, Any]) -> None:
    """The engine deletes an object after those that depend on it. An empty setting is none: no controller."""
    config = {"plimsoll:layer": "foundation", "plimsoll:controller": json.dumps(controller)}
    made = requests(run, config)
    guard = made["kubernetes:ConfigMap::plimsoll-foundation-stack"]
    declared_types = {each.type for each in made.values() if each.type.startswith("kubernetes:")}
    before = {urn.split("::")[2].split("$")[-1] for urn in guard.dependencies}
    assert declared_types <= before | {"kubernetes:core/v1:ConfigMap"}
    assert any("Deployment" in each for each in before) == bool(controller)


def test_a_foundation_protects_its_trigger_namespace() -> None:
    made = run_stack("foundation", layer="foundation", triggerNamespace="calls")
    policy = manifest(made, "ValidatingAdmissionPolicy", "plimsoll-trigger-namespace")
    selector = policy["spec"]["matchConstraints"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": "calls"}}
    assert manifest(made, "Namespace", "calls")


def test_a_foundation_grants_rights_in_the_served_namespaces_only() -> None:
    made = run_stack("foundation", layer="foundation", servedNamespaces=["a", "b"])
    policy = manifest(made, "ValidatingAdmissionPolicy", "plimsoll-served-namespaces")
    assert {"name": "served", "expression": "['a', 'b']"} in policy["spec"]["variables"]


@pytest.mark.parametrize(("setting", "annotation"), [(True, "true"), (False, "false"), (None, None)])
def test_fields_of_others_are_overwritten_in_a_workspace_of_kaito(setting: bool | None, annotation: str | None) -> None:
    given = {"fields": {}} if setting is None else {"fields": {}, "patchForce": setting}
    made = manifest(run_stack("prod", layer="objects", kaitoWorkspaces={"w": given}), "Workspace")
    assert made["metadata"]["annotations"].get("pulumi.com/patchForce") == annotation


def test_workspaces_are_exported_by_the_names_of_the_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    exported: dict[str, Any] = {}
    monkeypatch.setattr(pulumi, "export", exported.__setitem__)
    run_stack("prod", layer="environment", workspaces={"b": WORKSPACE, "a": {**WORKSPACE, "name": "chat"}})
    assert exported["workspaces"] == ["b", "chat"]


def test_alerts_are_declared_if_monitoring_is_set() -> None:
    asked = {"labels": {"release": "prometheus"}, "cleanupFailures": 2}
    rule = manifest(run_stack("prod", layer="environment", monitoring=asked), "PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert "> 2" in rule["spec"]["groups"][0]["rules"][-1]["expr"]
    without = run_stack("prod", layer="environment", monitoring={})
    assert not [each for each in without if each["inputs"].get("kind") == "PrometheusRule"]


@pytest.mark.parametrize("layer", ["environment", "objects"])
def test_node_profiles_are_declared_by_their_key_or_name(layer: str) -> None:
    spec = {"nodePool": "gpu", "instanceType": "g6.xlarge", "labels": {"nvidia.com/gpu.replicas": "4"}}
    profiles = {"l4": spec, "other": {**spec, "instanceType": "g5.xlarge", "name": "a10"}}
    made = [each["inputs"] for each in run_stack("s", layer=layer, nodeProfiles=profiles)]
    found = {each["metadata"]["name"]: each["spec"] for each in made if each.get("kind") == "NodeProfile"}
    assert found["l4"] == spec
    assert found["a10"]["instanceType"] == "g5.xlarge"
    assert len(found) == 2


def test_classes_and_templates_of_claims_are_declared_after_what_they_name() -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "big-gpu"}}
    config = {
        "layer": "objects",
        "namespaces": json.dumps(["team"]),
        "deviceClasses": json.dumps({"big": {"name": "big-gpu"}}),
        "resourceClaimTemplates": json.dumps({"one": {"namespace": "team", "devices": {"requests": [request]}}}),
    }
    asked = requests(run, {f"plimsoll:{key}": value for key, value in config.items()})
    template = asked["plimsoll:ResourceClaimTemplate::one"]
    assert {urn.rpartition("::")[2] for urn in template.dependencies} >= {"team", "big"}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        (
            {"resourceClaimTemplates": {"a": {"devices": {"requests": [{"name": "gpu"}]}}}},
            "resourceClaimTemplates.a.devices.requests[0]: set either exactly or firstAvailable",
        ),
        ({"deviceClasses": {"a": {"selector": []}}}, "deviceClasses.a.selector: unknown field"),
    ],
)
def test_wrong_claims_and_classes_are_named(values: dict[str, Any], field: str) -> None:
    assert field in refusal(**values)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"nodePool": "gpu"}, "nodeProfiles.l4.instanceType: is required"),
        ({"nodePool": "gpu", "instanceType": "g6.xlarge", "labels": {"a b": "c"}}, "nodeProfiles.l4.labels"),
        ({"nodePool": "gpu", "instanceType": "g6.xlarge", "price": 1}, "nodeProfiles.l4.price: unknown field"),
    ],
)
def test_a_wrong_node_profile_is_named(spec: dict[str, Any], field: str) -> None:
    assert field in refusal(nodeProfiles={"l4": spec})
