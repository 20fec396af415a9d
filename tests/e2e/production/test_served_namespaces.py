"""A foundation with `servedNamespaces`: the controller serves these with RoleBindings alone, and whoever has its token
creates nothing in others."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import yaml

from demo.stage import Stage
from plimsoll.kube import Connection, RequestError
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
SERVED, OTHER = "inference", "other"
STACK = "sandbox-nap"
CONTAINER = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
LONG = 180
"""Seconds: a controller starts, and a stack is updated."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    yield from up_sandbox("served", karpenter=True)


@pytest.fixture(scope="module")
def admin(sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(sandbox.kubeconfig)) as kube:
        for name in (SERVED, OTHER):
            kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield kube


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, admin: Kube, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The foundation of `SERVED`, and an Environment for it."""
    stage = Stage.on(sandbox, tmp_path_factory.mktemp("served"))
    set_in(stage, f"{STACK}-foundation", "servedNamespaces", [SERVED])
    for stack in (f"{STACK}-foundation", STACK):
        stage.run("pulumi", "stack", "init", stack)
    stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", f"{STACK}-foundation")
    stage.refused("pulumi", "up", "--yes", "--skip-preview", "--stack", STACK, by="has no entry")
    allow(stage, SERVED)
    stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", STACK)
    return stage


def set_in(stage: Stage, stack: str, key: str, value: Any) -> None:
    path = stage.project / "stacks" / f"Pulumi.{stack}.yaml"
    found = yaml.safe_load(path.read_text())
    found["config"][f"plimsoll:{key}"] = value
    path.write_text(yaml.safe_dump(found))


def allow(stage: Stage, *namespaces: str) -> None:
    path = stage.project / "stacks" / f"Pulumi.{STACK}.yaml"
    settings = yaml.safe_load(path.read_text())["config"]["plimsoll:environment"]
    set_in(stage, STACK, "environment", settings | {"access": [{"namespaces": list(namespaces)}]})


def deployment(namespace: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
    metadata = {"name": "a", "namespace": namespace, "labels": {"plimsoll.dev/shard": "capacity-prod-0"}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def workspace(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": "small", "namespace": namespace},
        "spec": {
            "queue": "inference",
            "resource": {"instanceType": "Standard_NC24ads_A100_v4"},
            "inference": {"replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}},
        },
    }


@pytest.mark.parametrize("namespaces", [(SERVED, OTHER), ("*",), (SERVED, "*")])
def test_an_environment_for_other_namespaces_is_refused(admin: Kube, stage: Stage, namespaces: tuple[str, ...]) -> None:
    spec = {"access": [{"namespaces": [each]} for each in namespaces]}
    with pytest.raises(RequestError) as refused:
        admin.patch(API, "Environment", STACK, {"spec": spec})
    assert f"servedNamespaces: {SERVED}" in refused.value.message
    assert f"names {', '.join(each for each in namespaces if each != SERVED)}" in refused.value.message


def test_other_settings_of_an_environment_may_be_changed(admin: Kube, stage: Stage) -> None:
    admin.patch(API, "Environment", STACK, {"spec": {"limits": {"nodes": 19}}})
    admin.patch(API, "Environment", STACK, {"spec": {"access": [{"namespaces": [SERVED], "gpus": 8}]}})


def test_a_stolen_token_creates_workloads_in_served_namespaces_alone(sandbox: Sandbox, stage: Stage) -> None:
    with closing(Connection.open(sandbox.folder.kubeconfig("controller"))) as connection:

        def code(namespace: str) -> int:
            path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
            try:
                connection.request("POST", path, deployment(namespace), query={"dryRun": "All"})
            except RequestError as error:
                return error.code
            return 201

        # That of the served namespace tells that the roles are in force.
        await_condition(lambda: code(SERVED) == 201, message="the RoleBinding is in force")
        assert code(OTHER) == 403
        with pytest.raises(RequestError, match="forbidden"):
            connection.request(
                "PATCH", f"/api/v1/namespaces/{OTHER}/pods/a", {}, content_type="application/merge-patch+json"
            )


def test_a_served_workspace_gets_its_nodes_and_another_is_refused(
    sandbox: Sandbox, admin: Kube, stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with controller(sandbox, tmp_path_factory.mktemp("controller")):
        admin.apply(workspace(SERVED))
        with pytest.raises(RequestError, match=f"namespace '{OTHER}'"):
            admin.apply(workspace(OTHER))

        def ready() -> bool:
            found = admin.get("apps/v1", "Deployment", "small", SERVED) or {}
            return bool((found.get("status") or {}).get("readyReplicas"))

        await_condition(ready, LONG, "the Workspace of the served namespace runs")

        admin.delete(API, "Workspace", "small", SERVED)
        await_condition(lambda: not admin.get(API, "Workspace", "small", SERVED), LONG, "its capacity is released")
        assert not admin.get("apps/v1", "Deployment", "small", SERVED)
