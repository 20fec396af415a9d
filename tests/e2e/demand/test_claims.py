"""Pods that claim GPUs (Dynamic Resource Allocation), from no nodes: Karpenter ignores claims, Plimsoll requests nodes,
the driver publishes their devices, and the scheduler allocates them and binds the pods."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from plimsoll.labels import DEVICE_CLASS_PREFIX
from plimsoll.model.api import CAPACITY_GATE
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.claims.objects import MIG, a_mig_class, a_slice_of, a_template
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.dra_driver import DRIVER, Devices, dra_driver
from tests.e2e.cluster.environments import declare_without_workspaces
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.program import program
from tests.e2e.cluster.restoring import process_of
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.e2e.demand.environment import (
    API,
    CLAIM,
    ENVIRONMENT,
    TOLERATION,
    add_open_pool,
    await_another_look,
    claims_of,
    declare_demand,
    demands,
    gated,
    remove_added,
    remove_shares,
    triggers,
)

pytestmark = pytest.mark.e2e

RESOURCE = "resource.k8s.io/v1"
TYPE = "m5.4xlarge"
"""16 CPU; no GPUs for Karpenter, as none is allocatable where pods get them by claims."""
L4 = Devices(4, {"productName": "NVIDIA L4", "type": "gpu", "architecture": "Ada Lovelace"}, "23034Mi", slices=2)
H100 = Devices(2, {}, "", mig="h100")
DIVIDED = "divided"
"""The NodePool of these."""
SHARED = Devices(2, L4.attributes, "20Gi", shared=True)
IS_GPU = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
IS_L4 = f"device.attributes['{DRIVER}'].productName == 'NVIDIA L4'"


class Way(NamedTuple):
    """A way to claim GPUs of nodes on which four such pods have room."""

    request: dict[str, Any]
    devices: Devices = L4


WAYS = {
    "whole": Way({"exactly": {"deviceClassName": DRIVER}}),
    "alternatives": Way(
        {
            "firstAvailable": [
                {"name": "none", "deviceClassName": DRIVER, "selectors": [{"cel": {"expression": f"!({IS_L4})"}}]},
                {"name": "one", "deviceClassName": DRIVER, "selectors": [{"cel": {"expression": IS_L4}}]},
            ]
        }
    ),
    "slices": Way({"exactly": a_slice_of("3g.40gb")}, H100),
    "shares": Way({"exactly": {"deviceClassName": DRIVER, "capacity": {"requests": {"memory": "10Gi"}}}}, SHARED),
}
"""By the name of their NodePool, Deployment and template."""

ATTACKS: dict[str, Any] = {
    "all": {"exactly": {"deviceClassName": DRIVER, "allocationMode": "All"}},
    "dearer": {
        "firstAvailable": [
            {"name": "none", "deviceClassName": DRIVER, "selectors": [{"cel": {"expression": f"!({IS_L4})"}}]},
            {"name": "four", "deviceClassName": DRIVER, "count": 4},
        ]
    },
}
"""Requests of templates for more than two devices; the first alternative is not to be had."""
BOUNDED = "bounded-claims"
TAKERS = ("mine-0", "mine-1", "mine-2", "both-a", "both-b", "all", "dearer", "by-class")
OF_CLASS = f"{DRIVER}.deviceclass.resource.k8s.io/devices"
"""Key of a ResourceQuota."""
THREES = ("three-0", "three-1")


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": None}})
    cluster.delete("apps/v1", "Deployment", "claiming")
    remove_shares(cluster, [*TAKERS, *THREES])
    cluster.delete("v1", "ResourceQuota", "devices", "default")
    cluster.delete(RESOURCE, "ResourceClaim", "shared")
    await_condition(lambda: not cluster.list(RESOURCE, "ResourceClaim", "default"), 120, "its pods and their claims go")
    remove_added(cluster, "GPUDemand", "NodeProfile")
    for name in ("one", "two", "three", "half", "four", *ATTACKS):
        cluster.delete(RESOURCE, "ResourceClaimTemplate", name)
    for name in (DRIVER, MIG):
        cluster.delete(RESOURCE, "DeviceClass", name)


def declare_class(cluster: Kube) -> None:
    spec = {"selectors": [{"cel": {"expression": IS_GPU}}]}
    cluster.apply({"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": spec})


def declare_claim(cluster: Kube, kind: str, name: str, request: dict[str, Any]) -> None:
    spec: dict[str, Any] = {"devices": {"requests": [{"name": "gpu", **request}]}}
    spec = {"spec": spec} if kind == "ResourceClaimTemplate" else spec
    metadata = {"name": name, "namespace": "default"}
    cluster.apply({"apiVersion": RESOURCE, "kind": kind, "metadata": metadata, "spec": spec})


def declare_template(cluster: Kube, name: str, count: int) -> None:
    exactly = {"deviceClassName": DRIVER, "count": count, "selectors": [{"cel": {"expression": IS_L4}}]}
    declare_claim(cluster, "ResourceClaimTemplate", name, {"exactly": exactly})


def declare_devices(cluster: Kube, pool: str = "claimed", devices: Devices = L4) -> None:
    declared = {
        "driver": DRIVER,
        "count": devices.number,
        "strings": dict(devices.attributes),
        "capacity": {"memory": devices.memory},
    }
    declare_profile(cluster, pool, declared | ({"allowMultipleAllocations": True} if devices.shared else {}))


def declare_divided_devices(cluster: Kube, pool: str) -> None:
    part = {"number": 2, "strings": {"type": "mig", "profile": "3g.40gb"}}
    devices = {
        "driver": DRIVER,
        "count": H100.number,
        "strings": {"type": "gpu", "productName": "NVIDIA H100 80GB HBM3"},
        "capacity": {"memory": "81559Mi"},
        "parts": [part],
    }
    declare_profile(cluster, pool, devices)


def declare_profile(cluster: Kube, pool: str, devices: dict[str, Any]) -> None:
    spec = {"nodePool": pool, "instanceType": TYPE, "claimDevices": devices}
    cluster.apply({"apiVersion": API, "kind": "NodeProfile", "metadata": {"name": f"{pool}.{TYPE}"}, "spec": spec})


def claiming(template: str, pool: str) -> dict[str, Any]:
    """The spec of a pod with a claim."""
    return {
        "nodeSelector": {"karpenter.sh/nodepool": pool},
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.9",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
            }
        ],
    }


def deploy(cluster: Kube, replicas: int, template: str = "one", pool: str = "claimed", name: str = "claiming") -> None:
    labels = {"app": name}
    cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": claiming(template, pool)},
            },
        }
    )


def bound(cluster: Kube, name: str = "claiming") -> list[str]:
    """The node of each pod that has one and is not being deleted."""
    pods = cluster.list("v1", "Pod", "default", selector=f"app={name}")
    return [
        pod["spec"]["nodeName"]
        for pod in pods
        if "nodeName" in pod["spec"] and "deletionTimestamp" not in pod["metadata"]
    ]


def _bound_are(cluster: Kube, replicas: int) -> bool:
    """Whether so many pods of each way are bound."""
    return all(len(bound(cluster, way)) == replicas for way in WAYS)


def learned(cluster: Kube, pool: str = "claimed") -> dict[str, Any]:
    profile = cluster.get(API, "NodeProfile", f"{pool}.{TYPE}") or {}
    found: dict[str, Any] = profile.get("status", {}).get("learned", {}).get("claimDevices", {})
    return found


def test_pods_with_claims_get_nodes_from_zero_and_again_from_what_was_learned(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Five pods with a device each need two nodes of four. After scaling to zero, what was learned of devices serves
    two pods of two devices with one node."""
    declare_demand(cluster, "trigger-pod")
    declare_class(cluster)
    declare_template(cluster, "one", 1)
    declare_template(cluster, "two", 2)
    add_open_pool(cluster, "claimed", TYPE)
    declare_devices(cluster)
    with dra_driver(demand_sandbox.kubeconfig, {TYPE: L4}), controller(demand_sandbox, tmp_path):
        deploy(cluster, 5)
        await_condition(lambda: len(claims_of(cluster, "claimed")) == 2, 120, "two NodeClaims")
        await_condition(lambda: len(bound(cluster)) == 5, 120, "the scheduler allocates and binds")
        await_condition(lambda: not triggers(cluster), 120, "the triggers go")
        await_another_look(cluster)
        assert len(claims_of(cluster, "claimed")) == 2
        claims = cluster.list(*CLAIM, selector="karpenter.sh/nodepool=claimed")
        assert not any("nvidia.com/gpu" in each["spec"]["resources"]["requests"] for each in claims)
        devices = await_condition(
            lambda: (found := learned(cluster)).get("count") == 4 and found, 120, "the devices are learned"
        )
        assert "uuid" not in devices["strings"]

        deploy(cluster, 0)
        await_condition(lambda: not bound(cluster), 120, "the pods go")
        for claim in claims_of(cluster, "claimed"):
            cluster.delete(*CLAIM, claim)
        of_pool = "karpenter.sh/nodepool=claimed"
        await_condition(lambda: not cluster.list("v1", "Node", selector=of_pool), 120, "the NodePool is at zero")
        await_condition(lambda: not claims_of(cluster, "claimed"), 120, "its NodeClaims are gone")
        cluster.patch(API, "NodeProfile", f"claimed.{TYPE}", {"spec": {"claimDevices": None}})
        deploy(cluster, 2, "two")
        await_condition(lambda: len(bound(cluster)) == 2, 120, "the pods are bound again")
        await_condition(lambda: not triggers(cluster), 120, "the triggers go")
        assert len(claims_of(cluster, "claimed")) == 1
        await_condition(lambda: not demands(cluster, "Pending", "Scheduled"), 120, "no demand is left")


def karpenter_plans_claims(sandbox: Sandbox, log: Path) -> AbstractContextManager[None]:
    """The sandbox's Karpenter, with `IGNORE_DRA_REQUESTS=false`."""
    ignoring = process_of(sandbox, "karpenter")
    command, environ = ignoring.cmdline(), ignoring.environ()
    ignoring.terminate()
    ignoring.wait(timeout=120)
    return program(command, {**environ, "IGNORE_DRA_REQUESTS": "false"}, log)


@pytest.fixture
def own_sandbox(sandbox_home: Path, tmp_path: Path) -> Iterator[Sandbox]:
    """Without its Karpenter at the end."""
    for sandbox in up_sandbox("planned-claims", karpenter=True):
        declare_without_workspaces(sandbox, tmp_path)
        yield sandbox


def ask_karpenter(cluster: Kube, way: str, number: int) -> None:
    """Creates a pod that no scheduler places, and that waits for Karpenter alone."""
    metadata = {"name": f"{way}-{number}", "namespace": "default"}
    spec = claiming(way, way) | {"schedulerName": "nobody"}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await_condition(
        lambda: (cluster.get("v1", "Pod", metadata["name"], "default") or {})["status"].get("resourceClaimStatuses"),
        60,
        "its claim is there",
    )
    cluster.patch("v1", "Pod", metadata["name"], {"status": {"conditions": [condition]}}, "default", "status")


def answers(cluster: Kube, reason: str, way: str) -> set[str]:
    """The pods of a way, without a scheduler, of which Karpenter says that."""
    found = {
        each["involvedObject"]["name"] for each in cluster.list("v1", "Event", "default") if each["reason"] == reason
    }
    return found & {f"{way}-{number}" for number in range(4)}


def ask_for_what_is_free(cluster: Kube, way: str) -> None:
    """Asks for three pods, and then for a fourth. Karpenter tells ten pods at once that they have a place, and those
    beyond not soon again."""
    for number in range(3):
        ask_karpenter(cluster, way, number)
    await_condition(lambda: len(answers(cluster, "Nominated", way)) == 3, 120, f"three have a place: {way}")
    assert not answers(cluster, "FailedScheduling", way)
    ask_karpenter(cluster, way, 3)
    await_condition(lambda: answers(cluster, "FailedScheduling", way), 120, f"a fourth has none: {way}")


def test_karpenter_that_plans_claims_adds_no_second_node(
    kube: Callable[..., Kube], own_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Karpenter sees the devices of existing nodes: whole ones, alternatives, slices of MIG by counters, and shares by
    consumable capacity. KWOK's types have no templates of slices, so that the first nodes are requested by Plimsoll.
    What is free on these, three places of each, Karpenter has for three pods and not for a fourth."""
    cluster, log = kube(own_sandbox), tmp_path / "karpenter.log"
    declare_demand(cluster, "trigger-pod")
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"limits": {"gpus": 100}}})
    declare_class(cluster)
    cluster.apply(a_mig_class())
    for name, way in WAYS.items():
        declare_claim(cluster, "ResourceClaimTemplate", name, way.request)
        add_open_pool(cluster, name, TYPE)
        if way.devices.mig:
            declare_divided_devices(cluster, name)
        else:
            declare_devices(cluster, name, way.devices)
    published = {name: way.devices for name, way in WAYS.items()}
    with karpenter_plans_claims(own_sandbox, log), dra_driver(own_sandbox.kubeconfig, published):
        with controller(own_sandbox, tmp_path):
            for replicas, nodes in ((5, 2), (8, 2), (9, 3)):
                for name in WAYS:
                    deploy(cluster, replicas, name, name, name)
                await_condition(partial(_bound_are, cluster, replicas), 120, "the scheduler allocates and binds")
                await_condition(lambda: not triggers(cluster), 120, "the triggers go")
                await_another_look(cluster)
                assert {name: len(claims_of(cluster, name)) for name in WAYS} == dict.fromkeys(WAYS, nodes)
        for name in WAYS:
            ask_for_what_is_free(cluster, name)
        assert {name: len(claims_of(cluster, name)) for name in WAYS} == dict.fromkeys(WAYS, 3)
    assert "not yet supported" not in log.read_text(), "it does not ignore claims"


def take(cluster: Kube, name: str, **limits: str) -> None:
    """Creates a pod with the capacity gate that asks for devices in the way of its name."""
    spec: dict[str, Any] = {
        "schedulingGates": [{"name": CAPACITY_GATE}],
        "nodeSelector": {"karpenter.sh/nodepool": BOUNDED},
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": {"limits": limits}}],
    }
    if not limits:
        template = {"mine": "one"}.get(of := name.partition("-")[0], of)
        by = {"resourceClaimName": "shared"} if name.startswith("both") else {"resourceClaimTemplateName": template}
        spec["resourceClaims"] = [{"name": "gpu", **by}]
        spec["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    cluster.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    )


def allocated(cluster: Kube) -> int:
    """Devices that claims have."""
    claims = cluster.list(RESOURCE, "ResourceClaim", "default")
    found = (each.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()) for each in claims)
    return sum(map(len, found))


def left_out(cluster: Kube) -> int:
    """Pods of which a GPUDemand says that `access` lets the namespace have no more."""
    told = (each for each in demands(cluster) if "access.gpus of the Environment" in str(each.get("reasons")))
    return sum(each.get("refusedPods", 0) for each in told)


def test_claims_of_a_tenant_buy_no_more_than_access_allows(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """By a template, one claim for two pods, all devices of a node, a dearer alternative, and the name of a class."""
    declare_demand(cluster, "trigger-pod")
    declare_class(cluster)
    add_open_pool(cluster, BOUNDED, TYPE)
    declare_devices(cluster, BOUNDED)
    declare_template(cluster, "one", 1)
    for name, request in ATTACKS.items():
        declare_claim(cluster, "ResourceClaimTemplate", name, request)
    declare_claim(cluster, "ResourceClaim", "shared", {"exactly": {"deviceClassName": DRIVER, "count": 2}})
    cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": [{"namespaces": ["*"], "gpus": 0}]}})
    with dra_driver(demand_sandbox.kubeconfig, {TYPE: L4}), controller(demand_sandbox, tmp_path):
        for name in TAKERS:
            take(cluster, name, **({f"{DEVICE_CLASS_PREFIX}{DRIVER}": "4"} if name == "by-class" else {}))
        await_condition(lambda: left_out(cluster) >= len(TAKERS) - 1, 120, "each is told")
        assert not triggers(cluster)
        assert not claims_of(cluster, BOUNDED)
        assert set(TAKERS) <= set(gated(cluster))
        cluster.patch(API, "Environment", ENVIRONMENT, {"spec": {"access": [{"namespaces": ["*"], "gpus": 2}]}})
        await_condition(lambda: allocated(cluster) == 2, 120, "what it may have, it gets")
        await_condition(lambda: not triggers(cluster), 120, "the request is met")
        assert len(claims_of(cluster, BOUNDED)) == 1
        assert (allocated(cluster), len(gated(cluster)) >= len(TAKERS) - 2) == (2, True)


def declare_quota(cluster: Kube, devices: int) -> None:
    """Awaits that the apiserver enforces it."""
    metadata = {"name": "devices", "namespace": "default"}
    hard = {OF_CLASS: str(devices)}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})
    await_condition(lambda: _of_quota(cluster).get("hard") == hard, 60, "the quota controller has seen it")


def _of_quota(cluster: Kube) -> dict[str, Any]:
    found: dict[str, Any] = (cluster.get("v1", "ResourceQuota", "devices", "default") or {}).get("status", {})
    return found


def test_a_quota_of_a_class_buys_no_node_for_a_claim_that_is_not_created(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Two pods claim three devices each, and a node has four. Of the quota, one claim can be created: its pod gets a
    node, the other pod is told. Once the quota leaves room for it, it gets a node, too."""
    declare_demand(cluster, "trigger-pod")
    declare_class(cluster)
    add_open_pool(cluster, BOUNDED, TYPE)
    declare_devices(cluster, BOUNDED)
    declare_template(cluster, "three", 3)
    declare_quota(cluster, 5)
    for name in THREES:
        take(cluster, name)
    await_condition(lambda: _of_quota(cluster).get("used") == {OF_CLASS: "3"}, 60, "one claim is created")

    def told() -> int:
        about = (each for each in demands(cluster) if f"allows 5 of {OF_CLASS}" in str(each.get("reasons")))
        return sum(each.get("refusedPods", 0) for each in about)

    with dra_driver(demand_sandbox.kubeconfig, {TYPE: L4}), controller(demand_sandbox, tmp_path):
        await_condition(lambda: allocated(cluster) == 3, 120, "the pod whose claim there is gets its devices")
        await_condition(lambda: told() == 1, 60, "the other pod is told")
        await_condition(lambda: not triggers(cluster), 120, "the request is met")
        await_another_look(cluster)
        assert len(claims_of(cluster, BOUNDED)) == 1
        assert len(gated(cluster)) == 1
        assert _of_quota(cluster)["used"] == {OF_CLASS: "3"}
        declare_quota(cluster, 6)
        await_condition(lambda: allocated(cluster) == 6, 120, "so does the other pod")
        await_condition(lambda: not triggers(cluster), 120, "the request is met")
        assert len(claims_of(cluster, BOUNDED)) == 2
        assert _of_quota(cluster)["used"] == {OF_CLASS: "6"}


def test_pods_with_slices_of_mig_get_nodes_from_zero(cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path) -> None:
    """Five pods with a half of an H100 each need two nodes, of which each has two GPUs. What is learned of these has
    all profiles, with their placements: after scaling to zero, three pods with four slices of one GPU each need two
    nodes again."""
    declare_demand(cluster, "trigger-pod")
    cluster.apply(a_mig_class())
    cluster.apply(a_template("half", a_slice_of("3g.40gb"), namespace="default"))
    add_open_pool(cluster, DIVIDED, TYPE)
    declare_divided_devices(cluster, DIVIDED)
    with dra_driver(demand_sandbox.kubeconfig, {TYPE: H100}), controller(demand_sandbox, tmp_path):
        deploy(cluster, 5, "half", DIVIDED)
        await_condition(lambda: len(bound(cluster)) == 5, 120, "the scheduler allocates slices and binds")
        await_condition(lambda: not triggers(cluster), 120, "the triggers go")
        await_another_look(cluster)
        assert len(claims_of(cluster, DIVIDED)) == 2
        parts = await_condition(
            lambda: len(found := learned(cluster, DIVIDED).get("parts", ())) == 7 and found, 120, "the profiles"
        )
        numbers = {each["strings"]["profile"]: each["number"] for each in parts}
        assert (numbers["1g.10gb"], numbers["3g.40gb"], numbers["7g.80gb"]) == (7, 2, 1)

        deploy(cluster, 0, "half", DIVIDED)
        await_condition(lambda: not bound(cluster), 60, "the pods go")
        for claim in claims_of(cluster, DIVIDED):
            cluster.delete(*CLAIM, claim)
        of_pool = f"karpenter.sh/nodepool={DIVIDED}"
        await_condition(lambda: not cluster.list("v1", "Node", selector=of_pool), 60, "the NodePool is at zero")
        cluster.patch(API, "NodeProfile", f"{DIVIDED}.{TYPE}", {"spec": {"claimDevices": None}})
        slices = [a_slice_of("1g.10gb", 2), a_slice_of("2g.20gb"), a_slice_of("3g.40gb")]
        of_one = [{"matchAttribute": f"{DRIVER}/parentUUID"}]
        cluster.apply(a_template("four", *slices, namespace="default", constraints=of_one))
        deploy(cluster, 3, "four", DIVIDED)
        await_condition(lambda: len(bound(cluster)) == 3, 120, "the scheduler allocates slices of one GPU and binds")
        await_condition(lambda: not triggers(cluster), 120, "the triggers go")
        assert len(claims_of(cluster, DIVIDED)) == 2
        assert allocated(cluster) == 12


def test_pods_of_a_workspace_claim_the_gpus_of_new_nodes(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """From no nodes: NodeClaims without an extended resource, a ResourceClaimTemplate beside the Deployment, and pods
    that the scheduler binds with all devices of their node. Everything goes with the Workspace."""
    declare_demand(cluster, "trigger-pod")
    declare_class(cluster)
    add_open_pool(cluster, "claimed", TYPE)
    declare_devices(cluster)
    container = {"name": "main", "image": "registry.k8s.io/pause:3.9"}
    template = {"metadata": {"labels": {"app": "claiming"}}, "spec": {"containers": [container]}}
    spec = {
        "resource": {"instanceType": TYPE, "devices": "claim"},
        "inference": {"template": template, "replicas": 2},
    }
    chat = {"apiVersion": API, "kind": "Workspace", "metadata": {"name": "chat", "namespace": "default"}, "spec": spec}
    with dra_driver(demand_sandbox.kubeconfig, {TYPE: L4}), controller(demand_sandbox, tmp_path):
        cluster.apply(chat)
        await_condition(lambda: len(set(bound(cluster))) == 2, 120, "each pod has a node")
        of_chat = "plimsoll.dev/workspace=chat"
        requests = [
            each["spec"].get("resources", {}).get("requests", {}) for each in cluster.list(*CLAIM, selector=of_chat)
        ]
        assert len(requests) == 2
        assert not any("nvidia.com/gpu" in each for each in requests)
        claims = cluster.list(RESOURCE, "ResourceClaim", "default")
        taken = [each["status"]["allocation"]["devices"]["results"] for each in claims]
        assert sorted(map(len, taken)) == [4, 4]
        cluster.delete(API, "Workspace", "chat")
        await_condition(lambda: not cluster.list(API, "Workspace"), 120, "the Workspace is gone")
        assert not cluster.list(RESOURCE, "ResourceClaimTemplate", "default")
        assert not cluster.list(*CLAIM, selector=of_chat)
