"""Workspaces that share a pool of existing nodes: each gets its own nodes, also after the controller was killed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.stage import Stage
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.cluster.nodes import bring_nodes

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
NAMESPACE = "inference"
POOL = "siblings"
NODE = "sibling-{},96000,786432,8,V100M32"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("siblings")


@pytest.fixture(scope="module")
def stage(workspaces_stage: Stage, folder: Path) -> Stage:
    """An environment with a pool of three nodes."""
    bring_nodes(workspaces_stage, folder, *map(NODE.format, range(3)), pool=POOL)
    return workspaces_stage


@pytest.fixture(scope="module")
def running(stage: Stage, workspaces_sandbox: Sandbox, folder: Path) -> Iterator[list[Controller]]:
    """The running controller is the last in the list, so that a test can replace it."""
    with controller(workspaces_sandbox, folder) as first:
        loops = [first]
        try:
            yield loops
            names = ("older", "younger", "youngest", "probe")
            stage.run("kubectl", "delete", "workspaces", "-n", NAMESPACE, "--ignore-not-found", *names)
        finally:
            for loop in loops[1:]:
                loop.stop()


@pytest.fixture
def cluster(kube: Callable[..., Kube], workspaces_sandbox: Sandbox, running: list[Controller]) -> Kube:
    return kube(workspaces_sandbox)


def workspace(name: str, replicas: int) -> Manifest:
    container = {"name": "server", "image": "registry.k8s.io/pause:3.10"}
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "resource": {"labelSelector": {"matchLabels": {"pool": POOL}}},
            "inference": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
        },
    }


def nodes_of(cluster: Kube, name: str) -> list[str]:
    """The nodes that the status says are the Workspace's."""
    status: dict[str, Any] = (cluster.get(API, "Workspace", name, NAMESPACE) or {}).get("status") or {}
    return list(status.get("workerNodes") or ())


def placed(cluster: Kube, name: str) -> dict[str, str]:
    """The Workspace's placed pods: node by UID."""
    pods = cluster.list("v1", "Pod", NAMESPACE, f"plimsoll.dev/workspace={name}")
    return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def at_rest(cluster: Kube, name: str, nodes: int) -> list[str]:
    """The Workspace's nodes, once there are this many and its pods run on them."""

    def settled() -> list[str]:
        found = nodes_of(cluster, name)
        return found if len(found) == nodes and sorted(placed(cluster, name).values()) == sorted(found) else []

    return await_condition(settled, 120, f"{name} on {nodes} nodes")


def test_workspaces_on_one_pool_have_different_nodes(cluster: Kube) -> None:
    cluster.apply(workspace("older", 2))
    older = at_rest(cluster, "older", 2)
    cluster.apply(workspace("younger", 2))
    younger = at_rest(cluster, "younger", 1)
    assert not set(older) & set(younger)
    assert at_rest(cluster, "older", 2) == older
    deployment = cluster.get("apps/v1", "Deployment", "younger", NAMESPACE)
    assert deployment is not None
    assert deployment["spec"]["replicas"] == 1, "no pod waits for a node that a sibling has"

    def lacks_node() -> bool:
        found = condition(cluster.get(API, "Workspace", "younger", NAMESPACE), "NodesReady")
        return found.get("status") == "False" and "inference/older" in found["message"]

    await_condition(lacks_node, message="it lacks a node, which its sibling has")


def test_a_workspace_without_a_free_node_is_refused_with_the_users_of_the_nodes(cluster: Kube) -> None:
    cluster.apply(workspace("youngest", 1))

    def refused() -> str:
        found = condition(cluster.get(API, "Workspace", "youngest", NAMESPACE), "ResourceReady")
        return found["message"] if found.get("reason") == "NoFreeNodes" else ""

    message = await_condition(refused, 120, "the youngest is refused")
    assert "inference/older" in message
    assert "inference/younger" in message
    assert cluster.get("apps/v1", "Deployment", "youngest", NAMESPACE) is None


def test_a_controller_that_takes_over_computes_the_same_allocation(
    cluster: Kube, running: list[Controller], workspaces_sandbox: Sandbox, folder: Path
) -> None:
    before = {name: (nodes_of(cluster, name), placed(cluster, name)) for name in ("older", "younger")}
    running[-1].kill()
    running.append(Controller(workspaces_sandbox, folder))
    probe = workspace("probe", 1)
    probe["spec"]["resource"]["labelSelector"] = {"matchLabels": {"pool": "none"}}
    cluster.apply(probe)
    await_condition(
        lambda: (
            condition(cluster.get(API, "Workspace", "probe", NAMESPACE), "ResourceReady").get("reason")
            == "NoMatchingNodes"
        ),
        120,
        "the new loop judges",
    )
    assert {name: (nodes_of(cluster, name), placed(cluster, name)) for name in before} == before


def test_a_new_node_is_allocated_to_the_workspace_that_lacks_one(cluster: Kube, stage: Stage, folder: Path) -> None:
    older = nodes_of(cluster, "older")
    bring_nodes(stage, folder, NODE.format(3), pool=POOL)
    assert "sibling-3" in at_rest(cluster, "younger", 2)
    assert at_rest(cluster, "older", 2) == older


def test_released_nodes_are_allocated_to_the_refused_workspace(cluster: Kube) -> None:
    older = nodes_of(cluster, "older")
    cluster.delete(API, "Workspace", "older", NAMESPACE)
    assert set(at_rest(cluster, "youngest", 1)) <= set(older)
