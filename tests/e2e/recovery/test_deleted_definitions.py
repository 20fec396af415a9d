"""Definitions of Plimsoll's kinds are deleted while the controller runs. The apiserver refuses it; then etcd loses a
definition without its objects, which return with it. Nobody's node may be released meanwhile."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from plimsoll.components.specs import definitions
from plimsoll.kube import RequestError
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.chaos.changes import API, CLAIM, NAMESPACE, claims_of, workspace
from tests.e2e.cluster.conditions import is_ready
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.environments import await_seen
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.restoring import lose
from tests.e2e.demand.environment import EIGHT_GPUS, add_pool, add_shares, declare_demand, remove_shares, triggers

pytestmark = pytest.mark.e2e

LONG = 240
"""Seconds: a controller starts, and a stack is updated."""
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@pytest.fixture
def cluster(recovery_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(recovery_sandbox.kubeconfig)) as cluster:
        yield cluster
        define(cluster)


@pytest.fixture
def running(recovery_sandbox: Sandbox, cluster: Kube, tmp_path: Path) -> Iterator[Controller]:
    with controller(recovery_sandbox, tmp_path) as running:
        yield running


def drop(sandbox: Sandbox, cluster: Kube, plural: str) -> None:
    name = f"{plural}.plimsoll.dev"
    with pytest.raises(RequestError, match="plimsoll-foundation"):
        cluster.delete(*DEFINITION, name)
    lose(sandbox, f"/registry/apiextensions.k8s.io/customresourcedefinitions/{name}")
    await_condition(lambda: cluster.get(*DEFINITION, name) is None, 120, f"no definition of {plural}")


def define(cluster: Kube) -> None:
    for definition in definitions():
        cluster.apply(definition)
    for kind in ("Workspace", "Environment", "GPUDemand"):
        await_condition(partial(is_served, cluster, kind), 120, f"{kind} is served")


def is_served(cluster: Kube, kind: str) -> bool:
    try:
        cluster.list(API, kind)
    except RequestError:
        return False
    return True


def uids(cluster: Kube, name: str) -> set[str]:
    return {each["metadata"]["uid"] for each in claims_of(cluster, name)}


def serve(cluster: Kube, replicas: int) -> set[str]:
    cluster.apply(workspace("steady", replicas))
    await_condition(
        lambda: len(claims := claims_of(cluster, "steady")) == replicas and all(map(is_ready, claims)), LONG, "nodes"
    )
    return uids(cluster, "steady")


def release(cluster: Kube) -> None:
    cluster.delete(API, "Workspace", "steady", NAMESPACE)
    await_condition(lambda: not cluster.list(*CLAIM), 400, "the nodes are released")


def test_without_the_definition_of_workspaces_their_nodes_are_kept(
    recovery_sandbox: Sandbox, running: Controller, cluster: Kube
) -> None:
    made = serve(cluster, 2)
    drop(recovery_sandbox, cluster, "workspaces")
    await_condition(lambda: "does not serve the kind Workspace" in running.text(), LONG, "the controller has seen it")
    assert uids(cluster, "steady") == made
    define(cluster)
    await_condition(lambda: cluster.get(API, "Workspace", "steady", NAMESPACE), 120, "it returns with the definition")
    assert serve(cluster, 3) > made, "and is served on"
    assert '"event": "deleting"' not in running.text()
    release(cluster)


def test_without_the_definition_of_environments_the_controller_waits_for_one(
    recovery_sandbox: Sandbox, running: Controller, cluster: Kube
) -> None:
    made = serve(cluster, 1)
    drop(recovery_sandbox, cluster, "environments")
    await_condition(lambda: "waiting for the Environment" in running.text(), LONG, "the controller has seen it")
    assert uids(cluster, "steady") == made
    define(cluster)
    assert serve(cluster, 2) > made
    assert '"event": "deleting"' not in running.text()
    release(cluster)


def test_without_the_definition_of_gpu_demands_capacity_is_requested_and_reported_later(
    recovery_sandbox: Sandbox, running: Controller, cluster: Kube
) -> None:
    add_pool(cluster, "definitions", EIGHT_GPUS, tier="definitions")
    await_seen(cluster, declare_demand(cluster, "trigger-pod", retentionSeconds=1))
    drop(recovery_sandbox, cluster, "gpudemands")
    add_shares(cluster, ["share-a"], tier="definitions")
    await_condition(lambda: len(triggers(cluster)) == 1, LONG, "a request")
    define(cluster)
    await_condition(lambda: cluster.list(API, "GPUDemand"), LONG, "its report")
    assert len(triggers(cluster)) <= 1, "nothing is requested twice"
    remove_shares(cluster, ["share-a"])
    await_condition(lambda: not triggers(cluster) and not cluster.list(API, "GPUDemand"), LONG, "it is withdrawn")
    assert "Traceback" not in running.text()
    cluster.delete("karpenter.sh/v1", "NodePool", "definitions")
    await_condition(lambda: not cluster.list(*CLAIM), LONG, "its nodes are released")
