"""New nodes on real components: a template and a quota that refuse the pods, a type without capacity, a rollout during
which a replica always serves, replicas that move back to the first type, and nodes that stay without replicas."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.stage import Stage, declare
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.environments import change_environment
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.e2e.cluster.serving import READY_AFTER, serving_since

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
NAMESPACE = "inference"
TYPE = "Standard_NC24ads_A100_v4"
SOLD_OUT = "Standard_NC96ads_A100_v4"
LATER = "Standard_NC48ads_A100_v4"
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass"}
IMAGE = "registry.k8s.io/pause:3.10"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("new-nodes")


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("new-nodes", karpenter=True)


@pytest.fixture(scope="module")
def running(sandbox: Sandbox, folder: Path) -> Iterator[Controller]:
    declare(Stage.on(sandbox, folder), "sandbox-nap")
    with controller(sandbox, folder) as running:
        yield running


@pytest.fixture
def cluster(kube: Callable[..., Kube], sandbox: Sandbox, running: Controller) -> Kube:
    return kube(sandbox)


def workspace(name: str, resource: dict[str, Any], *arguments: str) -> Manifest:
    container = {"name": "server", "image": IMAGE, "args": list(arguments)}
    inference = {"template": {"spec": {"containers": [container]}}, "rollout": {"strategy": "Surge"}}
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"queue": "inference", "resource": resource, "inference": inference},
    }


def scale(cluster: Kube, name: str, replicas: int) -> None:
    cluster.patch(API, "Workspace", name, {"spec": {"replicas": replicas}}, NAMESPACE, "scale")


def claims_of(cluster: Kube, name: str) -> list[Manifest]:
    return cluster.list("karpenter.sh/v1", "NodeClaim", selector=f"plimsoll.dev/workspace={name}")


def pods_of(cluster: Kube, name: str, namespace: str = NAMESPACE) -> list[Manifest]:
    return cluster.list("v1", "Pod", namespace, f"plimsoll.dev/workspace={name}")


def serving(cluster: Kube, name: str, namespace: str = NAMESPACE) -> list[list[str]]:
    """The arguments of each Ready pod."""
    ready = {"type": "Ready", "status": "True"}.items()
    return [
        pod["spec"]["containers"][0].get("args") or []
        for pod in pods_of(cluster, name, namespace)
        if any(ready <= each.items() for each in (pod.get("status") or {}).get("conditions") or ())
    ]


def test_no_node_is_requested_for_a_template_that_the_apiserver_would_refuse(cluster: Kube) -> None:
    made = workspace("mistaken", {"instanceType": TYPE}, "one")
    pod = made["spec"]["inference"]["template"]["spec"]

    def told(field: str) -> bool:
        found = condition(cluster.get(API, "Workspace", "mistaken", NAMESPACE), "ResourceReady")
        assert not claims_of(cluster, "mistaken")
        return found.get("reason") == "InvalidSpec" and field in found["message"]

    pod["schedulerNames"] = "one"
    cluster.apply(made)
    await_condition(lambda: told("schedulerNames"), 120, "it names the field that is not in the schema")
    del pod["schedulerNames"]
    pod["dnsPolicy"] = "Mine"
    cluster.apply(made)
    await_condition(lambda: told("dnsPolicy"), 120, "it names the value that is not valid")
    del pod["dnsPolicy"]
    cluster.apply(made)
    await_condition(lambda: claims_of(cluster, "mistaken"), 120, "a node is requested once it is corrected")
    cluster.delete(API, "Workspace", "mistaken", NAMESPACE)


def test_no_node_is_requested_for_pods_that_a_quota_of_the_namespace_would_refuse(cluster: Kube) -> None:
    """The apiserver accepts the Deployment, and refuses its pods: replicas, then that of a rollout."""
    team = "bounded"

    def bound(pods: int) -> None:
        spec = {"hard": {"pods": str(pods), "requests.cpu": "8"}}
        metadata = {"name": "pods", "namespace": team}
        cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec})

    def told(*words: str) -> bool:
        found = condition(cluster.get(API, "Workspace", "many", team), "ResourceReady")
        return all(each in f"{found.get('reason')} {found.get('message')}" for each in words)

    def declare_pods(argument: str, **resources: dict[str, str]) -> None:
        made = workspace("many", {"instanceType": TYPE}, argument)
        made["metadata"]["namespace"] = team
        del made["spec"]["queue"]
        made["spec"]["inference"]["replicas"] = 2
        made["spec"]["inference"]["template"]["spec"]["containers"][0]["resources"] = resources
        cluster.apply(made)

    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}})
    bound(1)
    declare_pods("one")
    await_condition(lambda: told("NotAllowed", "resources.requests.cpu"), 120, "the cluster asks for it")
    declare_pods("one", requests={"cpu": "1"})
    await_condition(lambda: told("LimitExceeded", "allows 1 of pods"), 120, "one pod is allowed")
    assert not claims_of(cluster, "many")
    bound(2)
    await_condition(lambda: serving(cluster, "many", team) == [["one"]] * 2, 120, "both pods serve")
    declare_pods("two", requests={"cpu": "1"})

    def refused() -> bool:
        found = condition(cluster.get("apps/v1", "Deployment", "many", team), "ReplicaFailure")
        return "exceeded quota: pods" in (found.get("message") or "")

    await_condition(refused, 120, "the cluster refuses a third pod")
    assert len(claims_of(cluster, "many")) == 2, "no temporary node"
    bound(3)
    await_condition(lambda: serving(cluster, "many", team) == [["two"]] * 2, 180, "the rollout goes on")
    cluster.delete(API, "Workspace", "many", team)


def test_a_replica_always_serves_during_a_rollout(cluster: Kube) -> None:
    """Each pod takes 3 s on its node until it is Ready."""
    since = cluster.revision()

    def loading(argument: str) -> Manifest:
        made = workspace("rolled", {"instanceType": TYPE}, argument)
        made["spec"]["inference"]["template"]["metadata"] = {"annotations": {READY_AFTER: "3s"}}
        return made

    cluster.apply(loading("one"))
    await_condition(lambda: serving(cluster, "rolled") == [["one"]], 120, "the replica is ready")
    [before] = claims_of(cluster, "rolled")
    cluster.apply(loading("two"))
    most = 0

    def rolled() -> bool:
        nonlocal most
        most = max(most, len(claims_of(cluster, "rolled")))
        return serving(cluster, "rolled") == [["two"]]

    await_condition(rolled, 120, "the new replica serves alone")
    assert most == 2, "one temporary node"
    assert min(serving_since(cluster, since, NAMESPACE, "rolled")) == 1, "no moment without a serving replica"
    await_condition(lambda: len(claims_of(cluster, "rolled")) == 1, 120, "the temporary node goes")
    [after] = claims_of(cluster, "rolled")
    assert after["metadata"]["name"] != before["metadata"]["name"], "the node without a pod goes"
    assert serving(cluster, "rolled") == [["two"]]


def sell_out(cluster: Kube, name: str, instance_type: str) -> None:
    """Karpenter has no capacity of the type: it deletes NodeClaims whose node class does not exist. There is some once
    `name` is one."""
    is_type = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}
    template = {"spec": {"nodeClassRef": {**NODE_CLASS, "name": name}, "requirements": [is_type]}}
    spec = {"weight": 1, "template": template}
    cluster.apply({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec})
    # After the NodePool, which the controller sees by another watch than Workspaces.
    change_environment(cluster, "sandbox-nap", nodeClaims={"nodeClassRef": None})


def types_of(cluster: Kube, name: str) -> list[str]:
    """The instance type of each NodeClaim that is not being deleted."""
    alive = [each for each in claims_of(cluster, name) if "deletionTimestamp" not in each["metadata"]]
    return [each["spec"]["requirements"][0]["values"][0] for each in alive]


def provisioning(cluster: Kube, name: str) -> Manifest:
    found: Manifest = (cluster.get(API, "Workspace", name, NAMESPACE) or {})["status"]["provisioning"]
    return found


def test_after_insufficient_capacity_all_nodes_are_of_the_next_type(cluster: Kube) -> None:
    sell_out(cluster, "missing", SOLD_OUT)
    cluster.apply(workspace("second", {"instanceTypes": [SOLD_OUT, TYPE]}, "one"))
    together = set[frozenset[str]]()

    def served() -> bool:
        together.add(frozenset(types_of(cluster, "second")))
        return serving(cluster, "second") == [["one"]]

    await_condition(served, 120, "the replica is ready on the next type")
    assert together <= {frozenset(), frozenset([SOLD_OUT]), frozenset([TYPE])}, "never two types at once"
    record = provisioning(cluster, "second")
    assert (record["instanceType"], record["tries"]) == (TYPE, 1)


def test_replicas_move_back_to_the_first_type_once_it_is_to_be_had_and_serve_meanwhile(cluster: Kube) -> None:
    """The first type of one Workspace is to be had again, that of the other one is not."""
    since = cluster.revision()
    for name, pool, first in (("moved", "later", LATER), ("stays", "missing", SOLD_OUT)):
        sell_out(cluster, pool, first)
        made = workspace(name, {"instanceTypes": [first, TYPE], "moveBackSeconds": 60}, "one")
        made["spec"]["inference"] |= {"replicas": 2, "rollout": {"strategy": "Surge", "maxSurge": 2}}
        cluster.apply(made)
    names = ("moved", "stays")
    await_condition(lambda: all(len(serving(cluster, name)) == 2 for name in names), 120, "all replicas serve")
    assert [types_of(cluster, name) for name in names] == [[TYPE, TYPE]] * 2, "on nodes of the next type"
    record = provisioning(cluster, "moved")
    assert (record["instanceType"], record["tries"]) == (TYPE, 1), "the attempt of the first type is recorded"
    left = {each["metadata"]["name"] for each in claims_of(cluster, "moved")}
    stays = {each["metadata"]["uid"] for each in pods_of(cluster, "stays")}
    api = f"{NODE_CLASS['group']}/v1alpha1"
    cluster.apply({"apiVersion": api, "kind": NODE_CLASS["kind"], "metadata": {"name": "later"}, "spec": {}})
    together = set[frozenset[str]]()

    def moved() -> bool:
        together.add(frozenset(types_of(cluster, "moved")))
        claims = claims_of(cluster, "moved")
        assert len(claims) <= 4, "at most maxSurge temporary nodes"
        return {each["spec"].get("nodeName") for each in pods_of(cluster, "moved")} == {
            each.get("status", {}).get("nodeName") for each in claims
        } and not left & {each["metadata"]["name"] for each in claims}

    await_condition(moved, 180, "its replicas are on nodes of the first type, and those of the next one are gone")
    assert together == {frozenset([TYPE]), frozenset([LATER, TYPE]), frozenset([LATER])}
    assert types_of(cluster, "moved") == [LATER, LATER]
    numbers = serving_since(cluster, since, NAMESPACE, "moved")
    assert min(numbers[numbers.index(2) :]) == 2, "no moment with fewer than its replicas"
    record = await_condition(
        lambda: (found := provisioning(cluster, "moved")).get("instanceType") == LATER and found, 60, "it says so"
    )
    assert not record.keys() & {"moveBack", "pending"}

    def failed() -> Manifest | None:
        tries: Manifest = provisioning(cluster, "stays").get("moveBack") or {}
        return tries if tries.get("failures") and types_of(cluster, "stays") == [TYPE, TYPE] else None

    tries = await_condition(failed, 120, "the other one was tried, too")
    assert tries["reason"] == "InsufficientCapacity"
    assert provisioning(cluster, "stays")["instanceType"] == TYPE
    assert {each["metadata"]["uid"] for each in pods_of(cluster, "stays")} == stays
    numbers = serving_since(cluster, since, NAMESPACE, "stays")
    assert min(numbers[numbers.index(2) :]) == 2


def test_without_replicas_a_node_of_the_wanted_zone_stays_and_serves_again(cluster: Kube) -> None:
    """As KEDA scales: by the scale subresource."""
    change_environment(cluster, "sandbox-nap", nodeClaims={"idleSeconds": 3600})
    cluster.apply(workspace("paused", {"instanceType": TYPE, "zones": ["zone-b"]}, "one"))
    await_condition(lambda: serving(cluster, "paused") == [["one"]], 120, "the replica is ready")
    [claim] = claims_of(cluster, "paused")
    assert claim["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-b"

    def status() -> Manifest:
        found: Manifest = (cluster.get(API, "Workspace", "paused", NAMESPACE) or {})["status"]
        return found

    measured = await_condition(lambda: status().get("startup"), 120, "its start is measured")
    # A pod may be Ready before Karpenter has written the node into the NodeClaim.
    [claim] = claims_of(cluster, "paused")
    assert measured["node"] == claim["status"]["nodeName"]
    scale(cluster, "paused", 0)
    await_condition(lambda: not pods_of(cluster, "paused"), 120, "its pods go")
    await_condition(lambda: (status().get("provisioning") or {}).get("idleSince"), 120, "its node stays")
    scale(cluster, "paused", 1)
    await_condition(lambda: serving(cluster, "paused") == [["one"]], 120, "the replica is ready again")
    assert [each["metadata"]["uid"] for each in claims_of(cluster, "paused")] == [claim["metadata"]["uid"]]
    assert status()["startup"] == measured, "a replica on a node that stayed has no new measure"
    cluster.patch(API, "Environment", "sandbox-nap", {"spec": {"nodeClaims": {"idleSeconds": None}}})


def test_a_node_that_cannot_be_drained_says_which_pod_and_budget_keep_it(cluster: Kube) -> None:
    """As when somebody deletes its NodeClaim, or it expires."""
    cluster.apply(workspace("kept", {"instanceType": TYPE}, "one"))
    await_condition(lambda: serving(cluster, "kept") == [["one"]], 120, "the replica is ready")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"plimsoll.dev/workspace": "kept"}}}
    metadata = {"name": "b", "namespace": NAMESPACE}
    cluster.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})
    [claim] = claims_of(cluster, "kept")
    cluster.delete("karpenter.sh/v1", "NodeClaim", claim["metadata"]["name"])

    def told() -> str:
        found: str = condition(cluster.get(API, "Workspace", "kept", NAMESPACE), "NodeClaimsReady").get("message", "")
        return found

    [pod] = pods_of(cluster, "kept")
    name = f"pod {NAMESPACE}/{pod['metadata']['name']}"
    budgeted = f"{name} (PodDisruptionBudget {NAMESPACE}/b allows no disruption)"
    await_condition(lambda: budgeted in told(), 120, "the status names the pod and the budget")
    cluster.delete("policy/v1", "PodDisruptionBudget", "b", NAMESPACE)
    await_condition(lambda: name not in told(), 120, "without the budget, the node is drained")
