"""What a tenant with the role `edit` in one namespace tries against others, on a cluster with the foundation's own
objects. Each attack is also made with the objects already there, as before the policies were: whoever administers the
cluster may write them."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from plimsoll.kube import RequestError
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.kube import Kube, Manifest, acting_as
from tests.e2e.demand.environment import CLAIM, ENVIRONMENT

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
RBAC = "rbac.authorization.k8s.io/v1"
TYPE = "Standard_NC24ads_A100_v4"
TEAM = "team-b"
OWN = {"plimsoll.dev/workspace": "gone", "plimsoll.dev/workspace-namespace": TEAM}
LONG = 240
"""Seconds: a controller starts, and a stack is updated."""
CONTAINER = {"name": "main", "image": "registry.k8s.io/pause:3.10"}


@pytest.fixture(scope="module")
def admin(demand_sandbox: Sandbox) -> Iterator[Kube]:
    """An administrator, and the tenant's namespace with its account."""
    with closing(Kube(demand_sandbox.kubeconfig)) as kube:
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        account = {"name": "mallory", "namespace": TEAM}
        kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        role = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": "edit"}
        binding = {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "edit", "namespace": TEAM}}
        named = binding | {"roleRef": role, "subjects": [{"kind": "ServiceAccount", **account}]}
        kube.apply(named)
        kube.apply(named | {"metadata": {"name": "mallory", "namespace": "default"}})
        yield kube
        kube.delete(RBAC, "RoleBinding", "mallory")
        kube.delete("v1", "Namespace", TEAM)


@pytest.fixture(scope="module")
def tenant(demand_sandbox: Sandbox, admin: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    token = admin.token(TEAM, "mallory")
    with closing(acting_as(demand_sandbox.kubeconfig, token, tmp_path_factory.mktemp("tenant"))) as kube:
        await_condition(lambda: not kube.refusal(deployment("plain", {})), message="the role is in force")
        yield kube


@pytest.fixture(scope="module")
def running(demand_sandbox: Sandbox, admin: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with controller(demand_sandbox, tmp_path_factory.mktemp("controller")) as found:
        yield found


def deployment(name: str, labels: dict[str, str], **template: Any) -> Manifest:
    pod = {"metadata": {"labels": {"a": "b"}, **template}, "spec": {"containers": [CONTAINER]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": TEAM, "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod},
    }


def pod(name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM, **metadata},
        "spec": {"containers": [CONTAINER], **(spec or {})},
    }


def workspace(name: str, namespace: str = TEAM, replicas: int = 1, **selector: Any) -> Manifest:
    inference = {"replicas": replicas, "template": {"spec": {"containers": [CONTAINER]}}}
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"resource": {"instanceType": TYPE, "labelSelector": selector}, "inference": inference},
    }


def claims(cluster: Kube, name: str) -> list[Manifest]:
    return cluster.list(*CLAIM, selector=f"plimsoll.dev/workspace={name}")


def test_a_tenant_does_not_take_the_finalizer_from_its_workspace(tenant: Kube, admin: Kube) -> None:
    """Before a controller runs, which has its own mind about the finalizer."""
    admin.apply(workspace("kept"))
    admin.patch(API, "Workspace", "kept", {"metadata": {"finalizers": ["plimsoll.dev/capacity"]}}, TEAM)
    with pytest.raises(RequestError, match="may not write plimsoll"):
        tenant.patch(API, "Workspace", "kept", {"metadata": {"finalizers": None}}, TEAM)
    tenant.patch(API, "Workspace", "kept", {"spec": {"inference": {"replicas": 2}}}, TEAM)
    admin.patch(API, "Workspace", "kept", {"metadata": {"finalizers": None}}, TEAM)
    admin.delete(API, "Workspace", "kept", TEAM)


def test_forged_objects_do_not_stop_the_deletion_of_nodes(running: Controller, admin: Kube, tenant: Kube) -> None:
    forged = [deployment(f"a{number:03}", OWN) for number in range(50)]
    admin.apply(workspace("victim", "inference"))
    await_condition(lambda: len(claims(admin, "victim")) == 1, LONG, "a node is bought")
    for each in forged:
        assert "may not write plimsoll.dev/workspace" in tenant.refusal(each)
        admin.apply(each)
    admin.delete(API, "Workspace", "victim", "inference")
    await_condition(lambda: not claims(admin, "victim"), LONG, "the node is released")
    assert len(admin.list("apps/v1", "Deployment", TEAM)) == len(forged), "they are not the controller's to delete"
    assert "deletions are due" not in running.text()
    for each in forged:
        admin.delete("apps/v1", "Deployment", each["metadata"]["name"], TEAM)


def _with_template(kind: str, version: str, spec: dict[str, Any], labels: dict[str, str]) -> Manifest:
    """A workload whose pods would have the labels."""
    own = {"metadata": {"labels": {"a": "b", **labels}}, "spec": {"containers": [CONTAINER]}}
    if kind in ("Job", "CronJob"):
        own["spec"]["restartPolicy"] = "Never"  # type: ignore[index]
    where: dict[str, Any] = {"template": own}
    if kind == "CronJob":
        where = {"jobTemplate": {"spec": {"template": own}}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "hidden", "namespace": TEAM},
        "spec": {**spec, **where},
    }


MATCHED = {"selector": {"matchLabels": {"a": "b"}}}
WORKLOADS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Deployment", "apps/v1", MATCHED),
    ("StatefulSet", "apps/v1", MATCHED | {"serviceName": "a"}),
    ("DaemonSet", "apps/v1", MATCHED),
    ("ReplicaSet", "apps/v1", MATCHED),
    ("ReplicationController", "v1", {"selector": {"a": "b"}}),
    ("Job", "batch/v1", {}),
    ("CronJob", "batch/v1", {"schedule": "@daily"}),
)


@pytest.mark.parametrize(("kind", "version", "spec"), WORKLOADS, ids=[each[0] for each in WORKLOADS])
def test_a_template_gives_no_pod_our_labels(tenant: Kube, kind: str, version: str, spec: dict[str, Any]) -> None:
    assert not tenant.refusal(_with_template(kind, version, spec, {}))
    answer = tenant.refusal(_with_template(kind, version, spec, OWN))
    # The apiserver copies the labels of some templates to the object itself.
    assert "may not write keys of plimsoll.dev in a pod template" in answer or "plimsoll.dev/workspace" in answer
    assert "only Plimsoll and the administrators of its Environment may" in answer


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"plimsoll.dev/workspace": ""}},
        {"labels": {"plimsoll.dev/shard": "capacity-prod-0"}},
        {"annotations": {"plimsoll.dev/selected-node": "n1/uid"}},
        {"annotations": {"plimsoll.dev/visible-devices": "GPU-1"}},
        {"finalizers": ["plimsoll.dev/capacity"]},
    ],
)
def test_our_metadata_is_nobody_else_s_to_write(tenant: Kube, admin: Kube, metadata: dict[str, Any]) -> None:
    named, ports = {"name": "own", "namespace": TEAM}, {"ports": [{"port": 80}]}
    service: Manifest = {"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": ports}
    for each in (pod("own"), service, workspace("own")):
        assert not tenant.refusal(each), each["kind"]
        wrong = {**each, "metadata": {**each["metadata"], **metadata}}
        assert "system:serviceaccount:team-b:mallory may not write plimsoll.dev/" in tenant.refusal(wrong)
        assert not admin.refusal(wrong), "an administrator may"


FOREIGN = {
    "node-role.kubernetes.io/control-plane": "",
    "node-restriction.kubernetes.io/tier": "prod-secrets",
    "nvidia.com/gpu.memory": "1",
    "nvidia.com/gpu.product": "NVIDIA-H200",
    "kai.scheduler/node-pool": "other-team",
}


@pytest.mark.usefixtures("running")
def test_a_workspace_sets_no_label_of_others_on_its_nodes(admin: Kube, tenant: Kube) -> None:
    expressions = [{"key": key, "operator": "In", "values": [value or "a"]} for key, value in FOREIGN.items()]
    attacks = [workspace("labels", matchLabels=FOREIGN), workspace("expressions", matchExpressions=expressions)]
    for each in attacks:
        answer = tenant.refusal(each)
        assert all(key in answer for key in FOREIGN), answer
    admin.patch(API, "Environment", ENVIRONMENT, {"spec": {"admission": "off"}})
    for each in attacks:
        await_condition(partial(_applied, tenant, each), 120, "admission is off")
    tenant.apply(workspace("allowed", matchLabels={"apps": "chat"}))
    await_condition(lambda: len(claims(admin, "allowed")) == 1, LONG, "a node is bought")
    await_condition(lambda: all(_refused(admin, each) for each in attacks), LONG, "the controller refuses them")
    found = admin.list(*CLAIM)
    for name in ("labels", "expressions", "allowed"):
        tenant.delete(API, "Workspace", name, TEAM)
    admin.patch(API, "Environment", ENVIRONMENT, {"spec": {"admission": None}})
    await_condition(lambda: not claims(admin, "allowed"), LONG, "the node is released")
    await_condition(lambda: all(map(tenant.refusal, attacks)), message="admission is on again")
    (labels,) = [each["metadata"]["labels"] for each in found if each["metadata"]["labels"].get("apps") == "chat"]
    assert not FOREIGN.items() & labels.items(), "what the provider says of its GPUs is not the tenant's"
    assert not [each for each in found if each["metadata"]["labels"].get("kai.scheduler/node-pool")]


def _applied(cluster: Kube, manifest: Manifest) -> bool:
    try:
        cluster.apply(manifest)
    except RequestError:
        return False
    return True


def _refused(cluster: Kube, manifest: Manifest) -> bool:
    found = cluster.get(API, "Workspace", manifest["metadata"]["name"], TEAM) or {}
    conditions = found.get("status", {}).get("conditions", [])
    return any(each["reason"] == "SelectorReserved" for each in conditions)


SHARE = {"gpu-fraction": "0.99", "gpu-fraction-num-devices": "8"}


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        (pod("squat", {"nodeName": "n1"}, annotations=SHARE), "spec.nodeName"),
        (pod("squat", {"nodeName": "n1"}, annotations={"tensor-fusion.ai/vram-request": "1Gi"}), "spec.nodeName"),
        (
            pod(
                "squat",
                {
                    "nodeName": "n1",
                    "containers": [CONTAINER | {"resources": {"limits": {"nvidia.com/gpu": "8"}}}],
                },
            ),
            "spec.nodeName",
        ),
        (
            pod(
                "squat",
                {"nodeName": "n1", "containers": [CONTAINER | {"resources": {"limits": {"amd.com/gpu": "8"}}}]},
            ),
            "spec.nodeName",
        ),
        (
            pod("squat", {"nodeName": "n1", "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "a"}]}),
            "spec.nodeName",
        ),
        (pod("squat", annotations=SHARE, labels={"runai-gpu-group": "g"}), "runai-gpu-group"),
        (pod("squat", annotations=SHARE, labels={"runai-gpu-group/g": "g"}), "runai-gpu-group/g"),
        (pod("squat", annotations={"tensor-fusion.ai/gpu-ids": "GPU-1"}), "tensor-fusion.ai/gpu-ids"),
    ],
)
def test_a_tenant_does_not_say_where_its_share_is(tenant: Kube, admin: Kube, attack: Manifest, named: str) -> None:
    answer = tenant.refusal(attack)
    assert f"may not say where pod squat uses a GPU, by {named}" in answer
    assert not admin.refusal(attack), "whoever may bind pods may"


def test_labels_of_a_group_are_not_added_later(tenant: Kube) -> None:
    tenant.apply(pod("plain", annotations=SHARE))
    with pytest.raises(RequestError, match="may not say where pod plain uses a GPU"):
        tenant.patch("v1", "Pod", "plain", {"metadata": {"labels": {"runai-gpu-group": "g"}}}, TEAM)
    tenant.patch("v1", "Pod", "plain", {"metadata": {"labels": {"app": "mine"}}}, TEAM)
    tenant.delete("v1", "Pod", "plain", TEAM)


def test_a_tenant_does_not_take_our_gate_from_its_pod(tenant: Kube, admin: Kube) -> None:
    """An autoscaler that sees the pod would buy a node, whatever `access` says."""
    own, ours = {"name": "example.com/own"}, {"name": "plimsoll.dev/capacity"}
    tenant.apply(pod("gated", {"schedulingGates": [own, ours]}, annotations=SHARE))
    with pytest.raises(RequestError, match=r"may not write plimsoll\.dev/capacity of pods"):
        tenant.patch("v1", "Pod", "gated", {"spec": {"schedulingGates": [own]}}, TEAM)
    tenant.patch("v1", "Pod", "gated", {"spec": {"schedulingGates": [ours]}}, TEAM)
    admin.patch("v1", "Pod", "gated", {"spec": {"schedulingGates": []}}, TEAM)
    tenant.delete("v1", "Pod", "gated", TEAM)


def event(reason: str, kind: str = "NodeClaim") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "forged", "namespace": "default"},
        "involvedObject": {"apiVersion": CLAIM[0], "kind": kind, "name": "victim", "uid": "known-by-its-other-events"},
        "reason": reason,
        "message": "sold out",
        "type": "Warning",
    }


def test_a_tenant_of_the_namespace_default_does_not_fail_the_nodes_of_others(tenant: Kube, admin: Kube) -> None:
    """Karpenter's Events about NodeClaims are there, and the role `edit` may write Events."""
    forged = event("InsufficientCapacityError")
    assert "may not say of a NodeClaim that there is no capacity" in tenant.refusal(forged)
    named, rule = {"name": "events", "namespace": "default"}, {"apiGroups": ["events.k8s.io"], "resources": ["events"]}
    admin.apply({"apiVersion": RBAC, "kind": "Role", "metadata": named, "rules": [rule | {"verbs": ["*"]}]})
    role = {"apiGroup": RBAC.partition("/")[0], "kind": "Role", "name": "events"}
    who = {"kind": "ServiceAccount", "name": "mallory", "namespace": TEAM}
    admin.apply({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": named, "roleRef": role, "subjects": [who]})
    later = {key: value for key, value in forged.items() if key not in ("involvedObject", "message")}
    later |= {"apiVersion": "events.k8s.io/v1", "regarding": forged["involvedObject"], "action": "Launch"}
    later |= {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a", "reportingInstance": "b"}
    await_condition(lambda: "may not say of a NodeClaim" in tenant.refusal(later), 120, "by the other group, too")
    assert not tenant.refusal(event("Launched")) and not tenant.refusal(event(forged["reason"], "Pod"))
    assert not admin.refusal(forged), "whoever writes the statuses of NodeClaims may"
    for kind in ("RoleBinding", "Role"):
        admin.delete(RBAC, kind, "events")
