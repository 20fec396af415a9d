"""Who may request capacity in the trigger namespace, by a real apiserver with the foundation's own objects."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.kube import RequestError
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.components.declaring import GOLDEN
from tests.e2e.cluster.kube import Kube, Manifest, acting_as
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.e2e.demand.environment import TRIGGERS

pytestmark = pytest.mark.e2e

TENANT = ("default", "tenant")
REPLICA_SETS = ("kube-system", "replicaset-controller")
LABELS = {"plimsoll.dev/demand": "d", "plimsoll.dev/environment": "sandbox-nap"}
RESOURCES = {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}
POD_SPEC = {
    "schedulerName": "plimsoll-trigger",
    "containers": [{"name": "main", "image": "a:1", "resources": RESOURCES}],
}
RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A foundation, and a tenant with the role `admin` and permissions on every kind of capacity request in the
    namespace."""
    for sandbox in up_sandbox("triggers", karpenter=True):
        with closing(Kube(sandbox.kubeconfig)) as admin:
            resources = list(yaml.safe_load_all((GOLDEN / "foundation.yaml").read_text()))
            order = ("Namespace", "ServiceAccount", "CustomResourceDefinition")
            for each in sorted(resources, key=lambda each: each["inputs"]["kind"] not in order):
                name = each["inputs"]["metadata"]["name"]
                if "AdmissionPolicy" not in each["type"] or name == "plimsoll-trigger-namespace":
                    admin.apply(each["inputs"])
            _give_rights(admin)
            with closing(of_account(sandbox, tmp_path_factory.mktemp("tenant"), TENANT)) as tenant:
                # Not that the tenant's role is not yet.
                await_condition(lambda: "may not write" in tenant.refusal(trigger("a")), message="it is in force")
        yield sandbox


def _give_rights(admin: Kube) -> None:
    """Grants everything in the trigger namespace, also on Plimsoll's kinds, but nothing at cluster scope."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    admin.apply({"apiVersion": RBAC, "kind": "Role", "metadata": _in("everything"), "rules": rules})
    subjects = []
    for namespace, name in (TENANT, REPLICA_SETS):
        metadata = {"name": name, "namespace": namespace}
        admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        subjects.append({"kind": "ServiceAccount", **metadata})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "everything"}
    binding = {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": _in("everything")}
    admin.apply(binding | {"roleRef": reference, "subjects": subjects})


def of_account(sandbox: Sandbox, folder: Path, account: tuple[str, str]) -> Kube:
    """A client with a token of a service account."""
    with closing(Kube(sandbox.kubeconfig)) as admin:
        token = admin.token(*account)
    return acting_as(sandbox.kubeconfig, token, folder)


@pytest.fixture
def tenant(sandbox: Sandbox, tmp_path: Path) -> Iterator[Kube]:
    with closing(of_account(sandbox, tmp_path, TENANT)) as kube:
        yield kube


def _in(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": TRIGGERS, **more}


def trigger(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _in(name, labels=LABELS), "spec": POD_SPEC}


def template(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": _in(name, labels=LABELS),
        "template": {"metadata": {"labels": {}}, "spec": POD_SPEC},
    }


def buffer(name: str) -> Manifest:
    spec = {"podTemplateRef": {"name": name}, "replicas": 3}
    metadata = _in(name, labels=LABELS)
    return {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": metadata, "spec": spec}


def test_a_tenant_cannot_request_capacity_there(tenant: Kube) -> None:
    for manifest in (trigger("a"), template("a"), buffer("a")):
        answer = tenant.refusal(manifest)
        assert "system:serviceaccount:default:tenant may not write" in answer, manifest["kind"]
        assert "where only Plimsoll requests capacity" in answer


def test_a_controller_that_creates_pods_for_a_tenant_cannot_either(sandbox: Sandbox, tmp_path: Path) -> None:
    with closing(of_account(sandbox, tmp_path, REPLICA_SETS)) as controller:
        assert "may not write pods in" in controller.refusal(trigger("a"))


def test_the_controller_requests_capacity_and_a_tenant_cannot_change_it(sandbox: Sandbox, tenant: Kube) -> None:
    with (
        closing(Kube(sandbox.folder.kubeconfig("controller"))) as loop,
        closing(Kube(sandbox.folder.kubeconfig("scheduler"))) as scheduler,
        closing(Kube(sandbox.kubeconfig)) as admin,
    ):
        for manifest in (trigger("ours"), template("ours"), buffer("ours")):
            loop.apply(manifest)
        capacity_ready = {
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "CapacityReady"}]}
        }
        loop.patch("v1", "Pod", "ours", capacity_ready, TRIGGERS, "status")
        unschedulable = {
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
        }
        with pytest.raises(RequestError, match="may not write pods/status"):
            tenant.patch("v1", "Pod", "ours", unschedulable, TRIGGERS, "status")
        with pytest.raises(RequestError, match="may not write pods in"):
            tenant.patch("v1", "Pod", "ours", {"metadata": {"labels": {"plimsoll.dev/demand": "e"}}}, TRIGGERS)
        bound = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": _in("ours"),
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        }
        with pytest.raises(RequestError, match="may not write pods/binding"):
            tenant.create(bound, "binding")
        assert admin.refusal(trigger("by-hand")) == ""
        scheduler.patch("v1", "Pod", "ours", capacity_ready, TRIGGERS, "status")
        for kind in ("CapacityBuffer", "PodTemplate", "Pod"):
            version = "autoscaling.x-k8s.io/v1beta1" if kind == "CapacityBuffer" else "v1"
            loop.delete(version, kind, "ours", TRIGGERS)
        await_condition(lambda: not loop.list("v1", "Pod", TRIGGERS), message="the loop takes back what it asked for")


def test_in_other_namespaces_only_rbac_decides(sandbox: Sandbox, tenant: Kube) -> None:
    with closing(Kube(sandbox.kubeconfig)) as admin:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
        subjects = [{"kind": "ServiceAccount", "namespace": TENANT[0], "name": TENANT[1]}]
        binding = {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "tenant", "namespace": "default"}}
        admin.apply(binding | {"roleRef": reference, "subjects": subjects})
    manifest = trigger("own")
    manifest["metadata"]["namespace"] = "default"
    await_condition(lambda: not tenant.refusal(manifest), message="the role counts")
