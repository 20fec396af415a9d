"""What stacks rely on of Pulumi's Kubernetes plugin, on a real apiserver.

The plugin that can be built here is older than 4.29: it creates objects by server-side apply, whether or not
`upsertExistingObjects` is set.
"""

import base64
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.sandbox import Sandbox
from tests.e2e.applying.programs import (
    Deployment,
    definition,
    deployment,
    pod_template,
    together,
    unawaited,
)
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e

NAMESPACE = "programs"
GROUP = "programs.plimsoll.dev"
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


@pytest.fixture(scope="module")
def environment(byo_sandbox: Sandbox) -> dict[str, str]:
    return byo_sandbox.environ()


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


def test_an_existing_object_is_taken_over_with_upsert(
    cluster: Kube, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", environment["PATH"])
    name = named("existing")
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"theirs": "1"},
        }
    )
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
    assert managers(live) == {("plimsoll", "Apply")}
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
            opts=pulumi.ResourceOptions(ignore_changes=["spec.replicas"]),
        )

    deploy.up(program)
    cluster.patch("apps/v1", "Deployment", name, {"spec": {"replicas": 3}}, NAMESPACE)
    spec["replicas"], spec["minReadySeconds"] = 7, 2
    assert deploy.up() == {"same": 1, "update": 1}
    live = cluster.get("apps/v1", "Deployment", name, NAMESPACE)
    assert live is not None
    assert (live["spec"]["replicas"], live["spec"]["minReadySeconds"]) == (3, 2)


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
kind: Secret
metadata: {{name: {{{{ .Release.Name }}}}-settings}}
stringData:
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
    settings = cluster.get("v1", "Secret", "shop-settings", NAMESPACE)
    assert settings is not None
    hidden = {"word": "hush-hush", "served": "true"}
    assert settings["data"] == {key: base64.b64encode(value.encode()).decode() for key, value in hidden.items()}
    assert cluster.get("v1", "ConfigMap", "hook", NAMESPACE) is None
    for text in ("hush-hush", settings["data"]["word"]):
        assert text not in deploy.kept()
    assert deploy.up() == {"same": 6}
    values.update(size=3, extra=False)
    changes = deploy.up()
    assert (changes["update"], changes["delete"]) == (1, 1)
    assert cluster.get("v1", "ServiceAccount", "extra", NAMESPACE) is None
