"""Failing NodeClaims on real components: late, without capacity, without GPUs; deletion; a NodePool with replicas."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from demo.stage import Stage, declare
from plimsoll.kube import RequestError
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition, is_ready
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.environments import change_environment
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
CLAIM = ("karpenter.sh/v1", "NodeClaim")
POOL = ("karpenter.sh/v1", "NodePool")
TYPE = "Standard_NC24ads_A100_v4"
SLOW_TYPE = "Standard_NC48ads_A100_v4"
SOLD_OUT_TYPE = "Standard_NC96ads_A100_v4"
WITHOUT_GPUS = "sandbox.plimsoll.dev/without-gpus"
BROKEN = "sandbox.plimsoll.dev/fail"
FINALIZER = "plimsoll.dev/capacity"
NODE_CLAIMS = {
    "nodeClassRef": None,
    "launchDeadlineSeconds": 300,
    "registrationDeadlineSeconds": 300,
    "gpuDeadlineSeconds": 300,
    "retrySeconds": 2,
    "retryLimitSeconds": 60,
}
ENVIRONMENT = "sandbox-nap"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("claims")


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("claims", karpenter=True)


@pytest.fixture(scope="module")
def declared(sandbox: Sandbox, folder: Path) -> None:
    declare(Stage.on(sandbox, folder), ENVIRONMENT)


@pytest.fixture(scope="module")
def running(sandbox: Sandbox, folder: Path, declared: None) -> Iterator[Controller]:
    """One controller for all tests; the last one kills it."""
    with controller(sandbox, folder) as started:
        yield started


@pytest.fixture
def cluster(kube: Callable[..., Kube], sandbox: Sandbox, running: Controller) -> Kube:
    """NodePools with a slow node class and with one that does not exist, and deadlines that nodes meet where the
    machine is slow. A test whose nodes are late has a shorter one."""
    cluster = kube(sandbox)
    cluster.delete(API, "Workspace", "chat", "inference")
    cluster.apply(
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "slow"},
            "spec": {"nodeRegistrationDelay": "1h"},
        }
    )
    for name, instance_type in (("slow", SLOW_TYPE), ("missing", SOLD_OUT_TYPE)):
        cluster.apply(node_pool(name, instance_type))
    change_environment(cluster, ENVIRONMENT, provisioner="nodeclaim", nodeClaims=NODE_CLAIMS)
    return cluster


def node_pool(name: str, instance_type: str) -> dict[str, Any]:
    """A NodePool that allows one instance type and has the node class of its own name."""
    is_type = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name}
    template = {"spec": {"nodeClassRef": reference, "requirements": [is_type]}}
    return {
        "apiVersion": POOL[0],
        "kind": POOL[1],
        "metadata": {"name": name},
        "spec": {"weight": 1, "template": template},
    }


def workspace(name: str, replicas: int, instance_type: str = TYPE, **match_labels: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "inference"},
        "spec": {
            "resource": {"instanceType": instance_type, "labelSelector": {"matchLabels": match_labels}},
            "inference": {"preset": {"name": "phi-4-mini-instruct"}, "replicas": replicas},
        },
    }


def claims_of(cluster: Kube, name: str) -> list[dict[str, Any]]:
    """NodeClaims of a Workspace that are not being deleted."""
    found = cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={name}")
    return [claim for claim in found if "deletionTimestamp" not in claim["metadata"]]


def names_of(cluster: Kube, name: str) -> set[str]:
    return {claim["metadata"]["name"] for claim in claims_of(cluster, name)}


def ready_claims(cluster: Kube, name: str) -> int:
    return sum(map(is_ready, claims_of(cluster, name)))


def status_of(cluster: Kube, name: str) -> dict[str, Any]:
    found = cluster.get(API, "Workspace", name, "inference") or {}
    status: dict[str, Any] = found.get("status") or {}
    return status


def output_text(cluster: Kube, name: str, reason: str) -> str:
    """The message of NodeClaimsReady once it has that reason."""
    found = condition({"status": status_of(cluster, name)}, "NodeClaimsReady")
    return str(found.get("message", "")) if found.get("reason") == reason else ""


def failures(cluster: Kube, name: str) -> int:
    return int((status_of(cluster, name).get("provisioning") or {}).get("failures") or 0)


def warnings_of(cluster: Kube, name: str) -> list[tuple[str, str]]:
    """Reason and note of the warning events of a Workspace, one for each occurrence."""
    found = cluster.list("events.k8s.io/v1", "Event", "inference")
    return [
        (event["reason"], event["note"])
        for event in found
        if event["regarding"].get("name") == name and event["type"] == "Warning"
    ]


def scale(cluster: Kube, name: str, replicas: int) -> None:
    cluster.patch(API, "Workspace", name, {"spec": {"inference": {"replicas": replicas}}}, "inference")


def remove(cluster: Kube, name: str, *, launched: bool = True) -> None:
    """Deletes the Workspace. Its finalizer waits for NodeClaims with a launched instance: `launched` says that all of
    them have one, the last try of a replaced node too."""
    cluster.delete(API, "Workspace", name, "inference")
    await_condition(lambda: cluster.get(API, "Workspace", name, "inference") is None, 120, f"{name} ends")
    seconds = 0 if launched else 120
    await_condition(
        lambda: not cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={name}"), seconds, "none is left"
    )


def test_scale_up_scale_down_and_delete(cluster: Kube, running: Controller) -> None:
    """1, 3, 2 nodes: the one whose node fails is deleted first. The Workspace stays until its capacity is deleted."""
    cluster.apply(workspace("scaled", 1))
    await_condition(lambda: ready_claims(cluster, "scaled") == 1, 120, "one NodeClaim ready")
    first = names_of(cluster, "scaled")
    scale(cluster, "scaled", 3)
    await_condition(lambda: ready_claims(cluster, "scaled") == 3, 120, "three NodeClaims ready")
    assert first <= names_of(cluster, "scaled")
    oldest = next(claim for claim in claims_of(cluster, "scaled") if claim["metadata"]["name"] in first)
    node = oldest["status"]["nodeName"]

    def known() -> list[str]:
        return list(status_of(cluster, "scaled").get("workerNodes") or ())

    await_condition(lambda: node in known(), message="the controller knows the node")
    cluster.patch("v1", "Node", node, {"metadata": {"annotations": {BROKEN: "true"}}})
    await_condition(
        lambda: condition(cluster.get("v1", "Node", node), "Ready").get("status") == "False", 120, "the node fails"
    )
    assert condition(oldest, "Ready")["status"] == "True", "Karpenter's word stays"
    await_condition(lambda: node not in known(), 120, "the controller has seen it")
    scale(cluster, "scaled", 2)
    await_condition(lambda: len(claims_of(cluster, "scaled")) == 2, 120, "one NodeClaim goes")
    assert not first & names_of(cluster, "scaled")
    # Where its pod had come up, it cannot end on a node that does not answer.
    with suppress(RequestError):
        cluster.patch("v1", "Node", node, {"metadata": {"annotations": {BROKEN: None}}})
    found = cluster.get(API, "Workspace", "scaled", "inference")
    assert found is not None
    assert FINALIZER in found["metadata"]["finalizers"]
    remove(cluster, "scaled")


def test_a_refused_workspace_is_scaled_down_before_its_nodes_register(cluster: Kube, running: Controller) -> None:
    cluster.apply(workspace("shrinking", 3, SLOW_TYPE))
    await_condition(lambda: status_of(cluster, "shrinking").get("perReplicaNodeCount") == 1, 120, "it is accepted")
    await_condition(lambda: len(claims_of(cluster, "shrinking")) == 3, 120, "three NodeClaims")
    refused = {"spec": {"inference": {"replicas": 1, "contextLength": 10_000_000}}}
    cluster.patch(API, "Workspace", "shrinking", refused, "inference")
    await_condition(lambda: len(claims_of(cluster, "shrinking")) == 1, 120, "one NodeClaim stays")
    await_condition(
        lambda: condition({"status": status_of(cluster, "shrinking")}, "ResourceReady").get("reason") == "InvalidSpec",
        120,
        "the refusal is reported",
    )
    scale(cluster, "shrinking", 0)
    await_condition(lambda: not claims_of(cluster, "shrinking"), 120, "none stays")
    remove(cluster, "shrinking", launched=False)


def test_a_node_that_never_registers_is_replaced(cluster: Kube, running: Controller) -> None:
    change_environment(cluster, ENVIRONMENT, nodeClaims={"registrationDeadlineSeconds": 6})
    cluster.apply(workspace("slow", 1, SLOW_TYPE))
    await_condition(lambda: claims_of(cluster, "slow"), 120)
    first = names_of(cluster, "slow")
    message = await_condition(lambda: output_text(cluster, "slow", "NodeClaimLate"), 120, "the condition says so")
    late = re.search(r"NodeClaim (\S+) is not Registered after 6 s.*; try (\d+) ", message)
    assert late is not None
    # Where the machine is slow, the next NodeClaim may be late before the first message is read.
    assert (late[1] in first) == (late[2] == "2")
    found = await_condition(lambda: (names := names_of(cluster, "slow")) - first and names, 120, "another NodeClaim")
    assert len(found) == 1, "never two at once"
    await_condition(lambda: failures(cluster, "slow") >= 2, 120, "the second fails as well")
    await_condition(lambda: len(warnings_of(cluster, "slow")) >= 2, 120, "both are told in events")
    assert {reason for reason, _ in warnings_of(cluster, "slow")} == {"NodeClaimLate"}
    assert len([note for _, note in warnings_of(cluster, "slow") if next(iter(first)) in note]) == 1
    # The NodeClaim of the next try may not be launched yet, and is then not waited for.
    remove(cluster, "slow", launched=False)


def test_a_node_without_its_gpus_is_replaced(cluster: Kube, running: Controller) -> None:
    change_environment(cluster, ENVIRONMENT, nodeClaims={"gpuDeadlineSeconds": 4})
    cluster.apply(workspace("blind", 1, **{WITHOUT_GPUS: "true"}))
    await_condition(lambda: claims_of(cluster, "blind"), 120)
    first = names_of(cluster, "blind")
    message = await_condition(lambda: output_text(cluster, "blind", "NodeClaimLate"), 120, "the condition says so")
    assert "ResourceNotRegistered" in message
    assert "nvidia.com/gpu" in message
    await_condition(lambda: names_of(cluster, "blind") - first, 120, "another NodeClaim")
    assert cluster.get("apps/v1", "Deployment", "blind", "inference") is None
    remove(cluster, "blind", launched=False)


def test_a_static_node_pool(cluster: Kube, running: Controller) -> None:
    """The Workspace's own NodePool; its nodes have the ownership labels and are deleted with it."""
    change_environment(cluster, ENVIRONMENT, provisioner="static-nodepool")
    cluster.apply(workspace("pooled", 2))

    def own_pools() -> list[dict[str, Any]]:
        return cluster.list(*POOL, selector="plimsoll.dev/workspace=pooled")

    await_condition(lambda: ready_claims(cluster, "pooled") == 2, 120, "two nodes of the NodePool")
    (pool,) = own_pools()
    assert pool["spec"]["replicas"] == 2
    for claim in claims_of(cluster, "pooled"):
        assert claim["metadata"]["labels"]["karpenter.sh/nodepool"] == pool["metadata"]["name"]
        node = cluster.get("v1", "Node", claim["status"]["nodeName"])
        assert node is not None
        assert node["metadata"]["labels"]["plimsoll.dev/workspace"] == "pooled"
    await_condition(lambda: cluster.get("apps/v1", "Deployment", "pooled", "inference"), 120, "the workload")
    scale(cluster, "pooled", 1)
    await_condition(lambda: len(claims_of(cluster, "pooled")) == 1, 120, "Karpenter takes one")
    (pool,) = own_pools()
    assert pool["spec"]["replicas"] == 1
    remove(cluster, "pooled")
    assert own_pools() == []


def test_a_node_of_a_node_pool_without_its_gpus_is_replaced(cluster: Kube, running: Controller) -> None:
    """Karpenter has no deadline for GPUs, so the controller deletes its NodeClaim, and the NodePool creates another."""
    change_environment(cluster, ENVIRONMENT, provisioner="static-nodepool", nodeClaims={"gpuDeadlineSeconds": 4})
    cluster.apply(workspace("pool-blind", 1, **{WITHOUT_GPUS: "true"}))
    await_condition(lambda: claims_of(cluster, "pool-blind"), 120, "a NodeClaim of the NodePool")
    first = names_of(cluster, "pool-blind")
    await_condition(lambda: names_of(cluster, "pool-blind") - first, 120, "another NodeClaim")
    await_condition(lambda: failures(cluster, "pool-blind") >= 1, 120, "the failure is counted")
    await_condition(
        lambda: any(reason == "NodeClaimLate" for reason, _ in warnings_of(cluster, "pool-blind")), 120, "an event"
    )
    (pool,) = cluster.list(*POOL, selector="plimsoll.dev/workspace=pool-blind")
    assert pool["spec"]["replicas"] == 1
    remove(cluster, "pool-blind", launched=False)


def test_insufficient_capacity_is_reported_and_retried_with_back_off(
    cluster: Kube, running: Controller, sandbox: Sandbox, folder: Path
) -> None:
    cluster.apply(workspace("wanted", 2, SOLD_OUT_TYPE))
    message = await_condition(
        lambda: output_text(cluster, "wanted", "InsufficientCapacity"), 120, "the provider's words"
    )
    assert "resolving node class" in message

    def reported() -> list[str]:
        return [note for reason, note in warnings_of(cluster, "wanted") if reason == "InsufficientCapacity"]

    notes = await_condition(reported, 120, "an event with the provider's words")
    assert "resolving node class" in notes[0]
    await_condition(lambda: failures(cluster, "wanted") >= 2, 120, "a second try")
    running.kill()
    with controller(sandbox, folder, hostname="another-host") as second:
        await_condition(lambda: failures(cluster, "wanted") >= 3, 120, "the back-off goes on after a restart")
        created = [line for line in (running.text() + second.text()).splitlines() if "delta applied" in line]
        tries = [line for line in created if "created" in line and "wanted-" in line]
        assert tries
        assert len(tries) <= 2 * (failures(cluster, "wanted") + 1), "a delta for each try of each of the two"
        remove(cluster, "wanted", launched=False)
