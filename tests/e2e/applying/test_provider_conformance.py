"""The same programs with the built-in provider and, if it is installed, the official plugin create the same objects. If
it is not, recordings of it are used."""

import importlib.metadata
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pulumi
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.kube import Connection, Objects
from plimsoll.provider import Secret, mark_secrets, plain
from plimsoll.sandbox import Sandbox
from tests.e2e.applying.programs import (
    Deployment,
    definition,
    deployment,
    pod_template,
    through,
    together,
    unawaited,
)
from tests.e2e.cluster.kube import Kube
from tests.provider.recorded import Creation, Recorded, recorded

pytestmark = pytest.mark.e2e

NAMESPACE = "conformance"
SECRET = "4dabf18193072939515e22adb298388d"
"""Marks a secret among the properties of a state."""
GROUP = "conformance.plimsoll.dev"
SHELVES = f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: shelves.{GROUP}}}
spec:
  group: {GROUP}
  scope: Namespaced
  names: {{kind: Shelf, plural: shelves}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""


@pytest.fixture(scope="module", params=["attached", "plugin"])
def environment(request: pytest.FixtureRequest, byo_sandbox: Sandbox) -> Iterator[dict[str, str]]:
    with through(request.param, byo_sandbox) as variables:
        yield variables


@pytest.fixture
def cluster(byo_sandbox: Sandbox, kube: Callable[..., Kube]) -> Kube:
    reached = kube(byo_sandbox)
    reached.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return reached


@pytest.fixture
def deploy(
    environment: dict[str, str], cluster: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    monkeypatch.setenv("PATH", environment["PATH"])
    with deployment(tmp_path / "stack", environment) as made:
        yield made


def named(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:6]}"


def config_map(name: str, **data: str) -> Callable[[], None]:
    return lambda: (
        k8s.core.v1.ConfigMap("settings", metadata={"name": name, "namespace": NAMESPACE}, data=data) and None
    )


def managers(obj: dict[str, Any]) -> set[tuple[str, str]]:
    return {(entry["manager"], entry["operation"]) for entry in obj["metadata"].get("managedFields", ())}


def test_namespace_config_map_and_rbac(deploy: Deployment, cluster: Kube) -> None:
    space, verbs = named("space"), ["get"]

    def program() -> None:
        namespace = k8s.core.v1.Namespace("space", metadata=unawaited(space))
        k8s.core.v1.ConfigMap(
            "settings", metadata={"name": "settings", "namespace": namespace.metadata.name}, data={"a": "1"}
        )
        k8s.core.v1.ServiceAccount("account", metadata={"name": "reader", "namespace": namespace.metadata.name})
        role = k8s.rbac.v1.Role(
            "role",
            metadata={"name": "reader", "namespace": namespace.metadata.name},
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
        )
        k8s.rbac.v1.RoleBinding(
            "binding",
            metadata={"name": "reader", "namespace": namespace.metadata.name},
            role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role.metadata.name},
            subjects=[{"kind": "ServiceAccount", "name": "reader", "namespace": namespace.metadata.name}],
        )

    assert deploy.up(program)["create"] == 6
    settings = cluster.get("v1", "ConfigMap", "settings", space)
    assert settings is not None
    assert settings["data"] == {"a": "1"}
    assert deploy.up() == {"same": 6}
    verbs.append("list")
    assert deploy.up() == {"same": 5, "update": 1}
    role = cluster.get("rbac.authorization.k8s.io/v1", "Role", "reader", space)
    assert role is not None
    assert role["rules"][0]["verbs"] == ["get", "list"]
    assert deploy.up() == {"same": 6}


def test_state_has_the_shape_of_the_plugin(deploy: Deployment) -> None:
    name = named("shape")
    deploy.up(config_map(name, a="1"))
    kept = deploy.resource("settings")
    assert kept["id"] == f"{NAMESPACE}/{name}"
    assert kept["outputs"]["__initialApiVersion"] == "v1"
    assert kept["outputs"]["__fieldManager"].startswith("pulumi-kubernetes-")
    assert kept["outputs"]["__inputs"]["data"] == {"a": "1"}
    assert kept["outputs"]["metadata"]["uid"]


def test_changed_data_replaces_a_config_map_and_deletes_first(deploy: Deployment, cluster: Kube) -> None:
    name = named("data")
    deploy.up(config_map(name, a="1"))
    before = cluster.get("v1", "ConfigMap", name, NAMESPACE)
    assert deploy.up(config_map(name, a="2")) == {"same": 1, "replace": 1}
    after = cluster.get("v1", "ConfigMap", name, NAMESPACE)
    assert before is not None
    assert after is not None
    assert after["data"] == {"a": "2"}
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_an_automatic_name_is_kept_until_the_object_is_replaced(deploy: Deployment, cluster: Kube) -> None:
    data = {"a": "1"}
    labels = {"x": "1"}

    def program() -> None:
        made = k8s.core.v1.ConfigMap("auto", metadata={"namespace": NAMESPACE, "labels": labels}, data=data)
        pulumi.export("name", made.metadata.name)

    deploy.up(program)
    first = deploy.outputs()["name"]
    assert first.startswith("auto-")
    assert len(first) == len("auto-") + 8
    labels["x"] = "2"
    assert deploy.up()["update"] == 1
    assert deploy.outputs()["name"] == first
    live = cluster.get("v1", "ConfigMap", first, NAMESPACE)
    assert live is not None
    assert live["metadata"]["annotations"]["pulumi.com/autonamed"] == "true"
    data["a"] = "2"
    assert deploy.up()["replace"] == 1
    second = deploy.outputs()["name"]
    assert second != first
    assert cluster.get("v1", "ConfigMap", first, NAMESPACE) is None
    assert cluster.get("v1", "ConfigMap", second, NAMESPACE) is not None


def test_a_rename_creates_the_new_object_and_deletes_the_old(deploy: Deployment, cluster: Kube) -> None:
    old, new = named("old"), named("new")
    deploy.up(config_map(old, a="1"))
    assert deploy.up(config_map(new, a="1"))["replace"] == 1
    assert cluster.get("v1", "ConfigMap", old, NAMESPACE) is None
    assert cluster.get("v1", "ConfigMap", new, NAMESPACE) is not None


def test_definition_and_custom_resources(deploy: Deployment, cluster: Kube) -> None:
    size = {"value": 1}

    def widgets() -> None:
        CustomResource(
            "widget",
            api_version=f"{GROUP}/v1",
            kind="Widget",
            metadata={"name": "one", "namespace": NAMESPACE, "labels": {"a": "1"}},
            spec={"size": size["value"], "share": 0.5, "nested": {"list": [{"a": 1}, {"b": "2"}]}},
        )

    program = together(definition(GROUP, "Widget"), widgets)
    assert deploy.preview(program)["create"] == 3
    assert deploy.up(definition(GROUP, "Widget"))["create"] == 2
    assert deploy.up(program)["create"] == 1
    live = cluster.get(f"{GROUP}/v1", "Widget", "one", NAMESPACE)
    assert live is not None
    assert live["spec"] == {"size": 1, "share": 0.5, "nested": {"list": [{"a": 1}, {"b": "2"}]}}
    size["value"] = 2
    assert deploy.up() == {"same": 2, "update": 1}
    assert deploy.up() == {"same": 3}
    live = cluster.get(f"{GROUP}/v1", "Widget", "one", NAMESPACE)
    assert live is not None
    assert live["spec"]["size"] == 2
    made = cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"widgets.{GROUP}")
    assert made is not None
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["x-kubernetes-preserve-unknown-fields"] is True


def test_a_custom_resource_without_its_definition_is_deleted_without_an_error(
    deploy: Deployment, cluster: Kube
) -> None:
    cluster.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gadgets.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": "Gadget", "plural": "gadgets"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                ],
            },
        }
    )

    def program() -> None:
        CustomResource(
            "gadget", api_version=f"{GROUP}/v1", kind="Gadget", metadata={"name": "g", "namespace": NAMESPACE}
        )

    deploy.up(program)
    cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"gadgets.{GROUP}")
    assert deploy.destroy()["delete"] == 2


def test_pods_and_stateful_sets(deploy: Deployment, cluster: Kube) -> None:
    pod, stateful = named("pod"), named("set")
    chosen: dict[str, Any] = {"image": "registry.k8s.io/pause:3.9", "replicas": 1, "service": "one"}
    # With foreground deletion and skipAwait, the plugin would create the new object while the old one is being deleted.
    in_background = {"pulumi.com/deletionPropagationPolicy": "background"}

    def program() -> None:
        spec = pod_template(chosen["image"])["spec"]
        k8s.core.v1.Pod("pod", metadata=unawaited(pod, NAMESPACE, **in_background), spec=spec)
        k8s.apps.v1.StatefulSet(
            "set",
            metadata=unawaited(stateful, NAMESPACE, **in_background),
            spec={
                "replicas": chosen["replicas"],
                "serviceName": chosen["service"],
                "selector": {"matchLabels": {"app": stateful}},
                "template": pod_template(app=stateful),
            },
        )

    assert deploy.up(program)["create"] == 3
    first = cluster.get("apps/v1", "StatefulSet", stateful, NAMESPACE)
    assert first is not None
    assert deploy.refresh() == {"same": 3}
    assert deploy.up() == {"same": 3}
    chosen["replicas"] = 2
    assert deploy.up() == {"same": 2, "update": 1}
    chosen["service"] = "two"
    assert deploy.up() == {"same": 2, "replace": 1}
    second = cluster.get("apps/v1", "StatefulSet", stateful, NAMESPACE)
    assert second is not None
    assert second["spec"]["replicas"] == 2
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    chosen["image"] = "registry.k8s.io/pause:3.10"
    assert deploy.up() == {"same": 2, "replace": 1}
    live = cluster.get("v1", "Pod", pod, NAMESPACE)
    assert live is not None
    assert live["spec"]["containers"][0]["image"] == "registry.k8s.io/pause:3.10"


def test_drift_is_detected_by_a_refresh_and_corrected_by_the_next_update(deploy: Deployment, cluster: Kube) -> None:
    name = named("drift")
    labels = {"tier": "gold"}

    def program() -> None:
        k8s.core.v1.ConfigMap(
            "settings", metadata={"name": name, "namespace": NAMESPACE, "labels": labels}, data={"a": "1"}
        )

    deploy.up(program)
    others = {"metadata": {"labels": {"tier": "lead", "theirs": "kept"}}}
    cluster.patch("v1", "ConfigMap", name, others, NAMESPACE)
    assert deploy.refresh() == {"same": 1, "update": 1}
    with pytest.raises(automation.CommandError, match=r"(?i)conflict"):
        deploy.up()
    cluster.patch("v1", "ConfigMap", name, {"metadata": {"labels": {"tier": None}}}, NAMESPACE)
    deploy.refresh()
    assert deploy.up() == {"same": 1, "update": 1}
    live = cluster.get("v1", "ConfigMap", name, NAMESPACE)
    assert live is not None
    assert live["metadata"]["labels"] == {"tier": "gold", "theirs": "kept"}


def test_a_field_removed_from_the_program_is_removed_from_the_object(deploy: Deployment, cluster: Kube) -> None:
    name = named("fields")
    labels = {"a": "1", "b": "1"}

    def program() -> None:
        k8s.core.v1.ConfigMap("settings", metadata={"name": name, "namespace": NAMESPACE, "labels": labels})

    deploy.up(program)
    for gone in ("a", "b"):
        del labels[gone]
        assert deploy.up() == {"same": 1, "update": 1}
        live = cluster.get("v1", "ConfigMap", name, NAMESPACE)
        assert live is not None
        assert live["metadata"].get("labels", {}) == labels
        # Who declares no field of an object owns none.
        assert {operation for _, operation in managers(live)} == ({"Apply"} if labels else set())


def test_an_object_deleted_by_others_leaves_the_state_and_is_created_again(deploy: Deployment, cluster: Kube) -> None:
    name = named("lost")
    deploy.up(config_map(name, a="1"))
    cluster.delete("v1", "ConfigMap", name, NAMESPACE)
    assert deploy.refresh()["delete"] == 1
    assert deploy.up()["create"] == 1
    cluster.delete("v1", "ConfigMap", name, NAMESPACE)
    assert deploy.destroy()["delete"] == 2


def test_a_preview_changes_nothing_and_reports_what_the_apiserver_refuses(deploy: Deployment, cluster: Kube) -> None:
    name = named("preview")
    assert deploy.preview(config_map(name, a="1"))["create"] == 2
    assert cluster.get("v1", "ConfigMap", name, NAMESPACE) is None
    deploy.up(config_map(name, a="1"))
    assert deploy.preview(config_map(name, a="2")) == {"same": 1, "replace": 1}
    live = cluster.get("v1", "ConfigMap", name, NAMESPACE)
    assert live is not None
    assert live["data"] == {"a": "1"}
    with pytest.raises(automation.CommandError, match="invalid"):
        deploy.preview(config_map(name, **{"no such key!": "1"}))


def test_unknown_values_pass_a_preview(deploy: Deployment) -> None:
    def program() -> None:
        first = k8s.core.v1.ConfigMap("first", metadata={"namespace": NAMESPACE}, data={"a": "1"})
        k8s.core.v1.ConfigMap(
            "second",
            metadata={"namespace": NAMESPACE, "annotations": {"uid": first.metadata.uid}},
            data={"rv": first.metadata.resource_version},
        )

    assert deploy.preview(program)["create"] == 3
    assert deploy.up(program)["create"] == 3


def test_secrets_stay_out_of_the_state(deploy: Deployment, cluster: Kube) -> None:
    name = named("secret")

    def program() -> None:
        k8s.core.v1.Secret(
            "secret", metadata={"name": name, "namespace": NAMESPACE}, string_data={"password": "open sesame"}
        )
        k8s.core.v1.ConfigMap(
            "settings",
            metadata={"name": name, "namespace": NAMESPACE},
            data={"hidden": pulumi.Output.secret("abracadabra"), "shown": "simsalabim"},
        )

    deploy.up(program)
    assert deploy.up() == {"same": 3}
    deploy.refresh()
    kept = deploy.kept()
    assert "simsalabim" in kept
    for hidden in ("open sesame", "b3BlbiBzZXNhbWU", "abracadabra"):
        assert hidden not in kept
    live = cluster.get("v1", "Secret", name, NAMESPACE)
    assert live is not None
    assert live["data"] == {"password": "b3BlbiBzZXNhbWU="}


def test_an_existing_object_is_an_error_without_upsert(
    deploy: Deployment, cluster: Kube, environment: dict[str, str], tmp_path: Path
) -> None:
    name = named("existing")
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"theirs": "1"},
        }
    )
    with pytest.raises(automation.CommandError, match="already exists"):
        deploy.up(config_map(name, ours="2"))
    with deployment(tmp_path / "upsert", environment, {"kubernetes:upsertExistingObjects": "true"}) as taking:
        taking.up(config_map(name, ours="2"))
        live = cluster.get("v1", "ConfigMap", name, NAMESPACE)
        assert live is not None
        assert live["data"] == {"theirs": "1", "ours": "2"}
    assert cluster.get("v1", "ConfigMap", name, NAMESPACE) is None


def test_a_pinned_field_manager_owns_what_it_declares(deploy: Deployment, cluster: Kube) -> None:
    name = named("manager")
    annotations = {"pulumi.com/patchFieldManager": "plimsoll"}
    labels = {"a": "1"}

    def program() -> None:
        k8s.core.v1.ConfigMap(
            "settings",
            metadata={"name": name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations},
        )

    deploy.up(program)
    live = cluster.get("v1", "ConfigMap", name, NAMESPACE)
    assert live is not None
    assert managers(live) == {("pulumi-kubernetes", "Update")}
    labels["a"] = "2"
    deploy.up()
    live = cluster.get("v1", "ConfigMap", name, NAMESPACE)
    assert live is not None
    assert managers(live) == {("plimsoll", "Apply")}


def test_ignored_changes_keep_the_live_value(deploy: Deployment, cluster: Kube) -> None:
    name = named("ignored")
    spec = {"replicas": 1, "minReadySeconds": 1}

    def program() -> None:
        k8s.apps.v1.Deployment(
            "app",
            metadata=unawaited(name, NAMESPACE),
            spec=spec | {"selector": {"matchLabels": {"app": name}}, "template": pod_template(app=name)},
            opts=pulumi.ResourceOptions(ignore_changes=["spec.replicas", "spec.template.spec.containers[0].image"]),
        )

    deploy.up(program)
    containers = [{**pod_template()["spec"]["containers"][0], "image": "example.com/of-others"}]
    of_others = {"replicas": 3, "template": {"spec": {"containers": containers}}}
    cluster.patch("apps/v1", "Deployment", name, {"spec": of_others}, NAMESPACE)
    spec["replicas"], spec["minReadySeconds"] = 7, 2
    assert deploy.up() == {"same": 1, "update": 1}
    live = cluster.get("apps/v1", "Deployment", name, NAMESPACE)
    assert live is not None
    assert (live["spec"]["replicas"], live["spec"]["minReadySeconds"]) == (3, 2)
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/of-others"


def test_a_pod_that_does_not_become_ready_fails_the_update_and_stays_in_the_state(
    deploy: Deployment, cluster: Kube
) -> None:
    name = named("pending")

    def program() -> None:
        k8s.core.v1.Pod(
            "pod",
            metadata={"name": name, "namespace": NAMESPACE},
            spec=pod_template()["spec"],
            opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="2s")),
        )

    with pytest.raises(automation.CommandError):
        deploy.up(program)
    assert cluster.get("v1", "Pod", name, NAMESPACE) is not None
    assert deploy.resource("pod")["id"] == f"{NAMESPACE}/{name}"
    assert deploy.resource("pod")["initErrors"]


def test_a_chart_from_a_folder(deploy: Deployment, cluster: Kube, tmp_path: Path) -> None:
    templates = tmp_path / "chart" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "Chart.yaml").write_text("{apiVersion: v2, name: shop, version: 0.1.0}")
    (templates.parent / "values.yaml").write_text("{size: 1, word: none, extra: true}")
    (templates.parent / "crds").mkdir()
    (templates.parent / "crds" / "shelf.yaml").write_text(SHELVES)
    (templates / "objects.yaml").write_text(
        f"""
apiVersion: {GROUP}/v1
kind: Shelf
metadata: {{name: shelf}}
spec: {{size: {{{{ .Values.size }}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {{{{ .Release.Name }}}}-settings}}
data:
  word: {{{{ .Values.word | quote }}}}
  served: {{{{ .Capabilities.APIVersions.Has "apps/v1/StatefulSet" | quote }}}}
{{{{- if .Values.extra }}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: extra}}
{{{{- end }}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: hook, annotations: {{"helm.sh/hook": post-install}}}}
"""
    )
    values: dict[str, Any] = {"size": 2}

    def program() -> None:
        given = values | {"word": pulumi.Output.secret("hush-hush")}
        chart = k8s.helm.v4.Chart("shop", chart=str(templates.parent), namespace=NAMESPACE, values=given)
        pulumi.export("count", chart.resources.apply(len))

    assert deploy.preview(program)["create"] == 6
    assert deploy.up(program)["create"] == 6
    assert deploy.outputs()["count"] == 4
    for name in (f"shop:shelves.{GROUP}", f"shop:{NAMESPACE}/shelf", f"shop:{NAMESPACE}/shop-settings"):
        assert deploy.resource(name)["parent"].endswith("::shop")
    settings = cluster.get("v1", "ConfigMap", "shop-settings", NAMESPACE)
    assert settings is not None
    assert settings["data"] == {"word": "hush-hush", "served": "true"}
    assert cluster.get("v1", "ConfigMap", "hook", NAMESPACE) is None
    assert "hush-hush" not in deploy.kept()
    assert deploy.up() == {"same": 6}
    values.update(size=3, extra=False)
    changes = deploy.up()
    assert (changes["update"], changes["delete"]) == (1, 1)
    assert cluster.get("v1", "ServiceAccount", "extra", NAMESPACE) is None


@pytest.mark.parametrize("creation", get_args(Creation))
def test_both_providers_create_the_same_objects_and_read_each_others_state(
    byo_sandbox: Sandbox, cluster: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, creation: Creation
) -> None:
    def objects() -> list[dict[str, Any]]:
        return [without_chance(cluster.get(*kind_and_name(it), NAMESPACE)) for it in recorded()]

    unchanged = {"same": resources_of(creation)}
    with through("plugin", byo_sandbox) as plugin, through("attached", byo_sandbox) as attached:
        made = []
        for number, (first, second) in enumerate(((plugin, attached), (attached, plugin))):
            monkeypatch.setenv("PATH", first["PATH"])
            with deployment(tmp_path / str(number), first) as there:
                there.up(program_of(creation))
                made.append(objects())
                there.attach(second)
                assert there.preview() == unchanged
                assert there.refresh() == unchanged
        assert made[0] == made[1]


@pytest.mark.parametrize("creation", get_args(Creation))
def test_objects_and_states_equal_those_that_the_plugin_recorded(
    byo_sandbox: Sandbox, cluster: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, creation: Creation
) -> None:
    with through("attached", byo_sandbox) as attached:
        monkeypatch.setenv("PATH", attached["PATH"])
        with deployment(tmp_path / "stack", attached) as there:
            there.up(program_of(creation))
            for it in recorded():
                kept = there.resource(it.name)
                assert (kept["type"], kept["id"]) == (it.type, it.id)
                secret = it.inputs["kind"] == "Secret"
                assert ("plaintext" in kept["inputs"].get("data", {})) is secret, "encrypted, and nothing else is"
                assert revealed(kept["inputs"]) == it.inputs
                outputs = revealed(kept["outputs"])
                own = {key: outputs.pop(key) for key in ("__fieldManager", "__initialApiVersion", "__inputs")}
                assert own == plain({key: it.outputs(creation)[key] for key in own})
                assert without_chance(outputs) == without_chance(it.object(creation))


@pytest.mark.parametrize("cpu", ["1000m", 1])
@pytest.mark.parametrize("creation", get_args(Creation))
def test_a_stack_of_the_plugin_is_unchanged(
    byo_sandbox: Sandbox,
    cluster: Kube,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    creation: Creation,
    cpu: str | int,
) -> None:
    with through("attached", byo_sandbox) as attached:
        monkeypatch.setenv("PATH", attached["PATH"])
        with (
            deployment(tmp_path / "stack", attached) as there,
            closing(Connection.open(byo_sandbox.kubeconfig)) as wire,
        ):
            there.bring(as_the_plugin_left_it(Objects(wire), creation))
            before = {it.name: uid_of(cluster, it) for it in recorded()}
            unchanged = {"same": resources_of(creation)}
            assert there.preview(program_of(creation, cpu)) == unchanged
            assert there.refresh() == unchanged
            assert there.up(program_of(creation, cpu)) == unchanged
            after = {it.name: uid_of(cluster, it) for it in recorded()}
            assert after == before
            if creation == "upsert":
                return  # an apply, told not to wait, would meet the Pod that it replaces on its way out
            changed = {"same": resources_of(creation) - 3, "update": 2, "replace": 1}
            assert there.up(program_of(creation, "1500m")) == changed
            after = {it.name: uid_of(cluster, it) for it in recorded()}
            assert {name for name, uid in after.items() if uid != before[name]} == {"pod"}
            deployed = cluster.get("apps/v1", "Deployment", "both", NAMESPACE)
            assert deployed is not None
            assert ("both", "Apply") in managers(deployed)
            assert "pulumi-kubernetes" not in {manager for manager, _ in managers(deployed)}


def program_of(creation: Creation, cpu: str | int = "1000m") -> Callable[[], None]:
    """The program whose states the plugin recorded."""

    def program() -> None:
        provider = k8s.Provider("provider", upsert_existing_objects=True) if creation == "upsert" else None
        for it in recorded():
            kind = it.inputs["kind"]
            fields = {
                "string_data" if key == "stringData" else key: value
                for key, value in it.program(cpu).items()
                if key not in ("apiVersion", "kind")
            }
            _CLASSES[kind](it.name, **fields, opts=pulumi.ResourceOptions(provider=provider))

    return program


_CLASSES: dict[str, Any] = {
    "ConfigMap": k8s.core.v1.ConfigMap,
    "Deployment": k8s.apps.v1.Deployment,
    "Pod": k8s.core.v1.Pod,
    "Role": k8s.rbac.v1.Role,
    "Secret": k8s.core.v1.Secret,
    "StatefulSet": k8s.apps.v1.StatefulSet,
}


def resources_of(creation: Creation) -> int:
    """How many an update counts: the stack and an explicit provider too."""
    return len(recorded()) + (2 if creation == "upsert" else 1)


def kind_and_name(it: Recorded) -> tuple[str, str, str]:
    return it.inputs["apiVersion"], it.inputs["kind"], "both"


def uid_of(cluster: Kube, it: Recorded) -> str:
    live = cluster.get(*kind_and_name(it), NAMESPACE)
    assert live is not None
    return str(live["metadata"]["uid"])


def as_the_plugin_left_it(objects: Objects, creation: Creation) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Creates the objects with the plugin's requests, and imports its provider and resources as in its states."""
    version = importlib.metadata.version("pulumi-kubernetes")
    settings = {"version": version} | ({"upsertExistingObjects": "true"} if creation == "upsert" else {})
    provider = {
        "name": "provider" if creation == "upsert" else f"default_{version.replace('.', '_')}",
        "inputs": {"__internal": {}, **settings},
        "outputs": settings,
    }
    resources = []
    for it in recorded():
        if creation == "upsert":
            live = objects.apply(it.inputs, "both", force=False)
        else:
            live = objects.create(it.inputs, "pulumi-kubernetes")
        assert without_chance(live)["owned"] == [it.owner(creation)]
        outputs = {**live, **{key: value for key, value in it.outputs(creation).items() if key.startswith("__")}}
        kept = {"type": it.type, "name": it.name, "id": it.id, "inputs": hidden(it.inputs), "outputs": hidden(outputs)}
        resources.append(kept)
    return provider, resources


def hidden(value: Any) -> Any:
    """Property values in the form of a state that can be imported."""
    if isinstance(value, Secret):
        return {SECRET: "1b47061264138c4ac30d75fd1eb44270", "plaintext": json.dumps(plain(value))}
    if isinstance(value, dict):
        marked = mark_secrets(value, {}) if "kind" in value else value
        return {key: hidden(item) for key, item in marked.items()}
    return [hidden(item) for item in value] if isinstance(value, list) else value


def revealed(value: Any) -> Any:
    """Property values of an exported state, without the marks of secrets."""
    if isinstance(value, dict):
        if SECRET in value:
            return json.loads(value["plaintext"])
        return {key: revealed(item) for key, item in value.items()}
    return [revealed(item) for item in value] if isinstance(value, list) else value


def without_chance(obj: dict[str, Any] | None) -> dict[str, Any]:
    """An object without values that differ between two creations, or that controllers set."""
    assert obj is not None
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("uid", "resourceVersion", "creationTimestamp")}
    metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k.startswith("pulumi.com/")}
    ours = [entry for entry in metadata.pop("managedFields") if entry["manager"] in ("both", "pulumi-kubernetes")]
    owned = [{key: value for key, value in entry.items() if key != "time"} for entry in ours]
    return {**obj, "metadata": metadata, "owned": owned, "status": None}
