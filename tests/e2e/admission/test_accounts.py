"""With the token of the controller or of the share binder, and every right there is: what they made can be changed, and
nothing else."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import pytest

from plimsoll.components.admission import BINDER_POLICY, CONTROLLER_POLICY, binder_policy, controller_policy
from plimsoll.kube import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Connection, RequestError
from plimsoll.sandbox import IDENTITIES, Sandbox
from tests.awaiting import await_condition
from tests.e2e.admission.objects import ADMISSION
from tests.e2e.cluster.kube import Kube

pytestmark = pytest.mark.e2e

TENANT, RESERVATIONS, SCHEDULER = "of-a-tenant", "reservations", "share-scheduler"
OURS = {"plimsoll.dev/shard": "capacity-prod-0"}


class Write(NamedTuple):
    method: str
    path: str
    body: Any


def pod(name: str, labels: dict[str, str], scheduler: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    metadata = {"name": name, "namespace": TENANT, "labels": labels}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def deployment(name: str, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def config_map(name: str, namespace: str, keys: tuple[str, ...], owner: str = "") -> dict[str, Any]:
    owners = [{"apiVersion": "v1", "kind": owner, "name": "plain", "uid": "1"}] if owner else []
    metadata = {"name": name, "namespace": namespace, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict.fromkeys(keys, "1")}


DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
PODS = f"/api/v1/namespaces/{TENANT}/pods"
MAPS = "/api/v1/namespaces/{}/configmaps"
GPU_KEYS = ("NVIDIA_VISIBLE_DEVICES", "RUNAI-VISIBLE-DEVICES")

CONTROLLER_ATTACKS = {
    "deletes a tenant's workload": Write("DELETE", f"{DEPLOYMENTS.format(TENANT)}/plain", None),
    "scales a tenant's workload": Write("PATCH", f"{DEPLOYMENTS.format(TENANT)}/plain", {"spec": {"replicas": 9}}),
    "takes a tenant's workload for its own": Write(
        "PATCH", f"{DEPLOYMENTS.format(TENANT)}/plain", {"metadata": {"labels": OURS}}
    ),
    "creates a workload without a label": Write(
        "POST", DEPLOYMENTS.format(TENANT), deployment("new", TENANT, {"app": "new"})
    ),
    "runs a pod in kube-system": Write(
        "POST", DEPLOYMENTS.format("kube-system"), deployment("new", "kube-system", OURS)
    ),
    "deletes a tenant's NodeClaim": Write("DELETE", "/apis/karpenter.sh/v1/nodeclaims/plain", None),
    "changes more of a NodeClaim than its owner": Write(
        "PATCH", "/apis/karpenter.sh/v1/nodeclaims/plain", {"metadata": {"labels": {"karpenter.sh/nodepool": "other"}}}
    ),
    "lets a NodeClaim end without its instance": Write(
        "PATCH", "/apis/karpenter.sh/v1/nodeclaims/plain", {"metadata": {"finalizers": ["example.com/other"]}}
    ),
    "changes a pod's image": Write(
        "PATCH", f"{PODS}/plain", {"spec": {"containers": [{"name": "main", "image": "evil.example/x"}]}}
    ),
    "changes a pod's labels": Write("PATCH", f"{PODS}/plain", {"metadata": {"labels": {"app": "other"}}}),
    "deletes a tenant's pod": Write("DELETE", f"{PODS}/plain", None),
    "writes another ConfigMap": Write(
        "POST", MAPS.format("plimsoll-system"), config_map("other", "plimsoll-system", ("a",))
    ),
}
CONTROLLER_WORK = {
    "creates a workload": Write("POST", DEPLOYMENTS.format(TENANT), deployment("made", TENANT, OURS)),
    "scales its workload": Write("PATCH", f"{DEPLOYMENTS.format(TENANT)}/ours", {"spec": {"replicas": 2}}),
    "deletes its workload": Write("DELETE", f"{DEPLOYMENTS.format(TENANT)}/ours", None),
    "sets a deletion cost": Write(
        "PATCH",
        f"{PODS}/plain",
        {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1000"}}},
    ),
    "says whom a NodeClaim is for": Write(
        "PATCH",
        "/apis/karpenter.sh/v1/nodeclaims/plain",
        {"metadata": {"labels": {"plimsoll.dev/owner-namespace": "a", "plimsoll.dev/demand": "a"}}},
    ),
    "keeps the models": Write(
        "POST", MAPS.format("plimsoll-system"), config_map("plimsoll-models", "plimsoll-system", ("a",))
    ),
}
BINDER_ATTACKS = {
    "changes a pod's image": Write(
        "PATCH", f"{PODS}/share", {"spec": {"containers": [{"name": "main", "image": "evil.example/x"}]}}
    ),
    "changes a pod of another scheduler": Write(
        "PATCH", f"{PODS}/plain", {"metadata": {"labels": {"runai-gpu-group": "a"}}}
    ),
    "changes a pod's labels": Write("PATCH", f"{PODS}/share", {"metadata": {"labels": {"app": "other"}}}),
    "writes to kube-system": Write("POST", MAPS.format("kube-system"), config_map("a-0", "kube-system", GPU_KEYS)),
    "creates any ConfigMap": Write("POST", MAPS.format(TENANT), config_map("settings", TENANT, ("config",))),
    "overwrites a ConfigMap": Write("PATCH", f"{MAPS.format(TENANT)}/settings-0", {"data": {GPU_KEYS[0]: "1"}}),
}
BINDER_WORK = {
    "chooses a node": Write(
        "PATCH",
        f"{PODS}/share",
        {"metadata": {"labels": {"runai-gpu-group": "a"}, "annotations": {"plimsoll.dev/selected-node": "n/1"}}},
    ),
    "hands out GPUs": Write("POST", MAPS.format(TENANT), config_map("share-0", TENANT, GPU_KEYS, "Pod")),
}


@pytest.fixture(scope="module")
def cluster(admission_sandbox: Sandbox) -> Iterator[Kube]:
    """Both accounts may do everything, as far as RBAC is concerned."""
    with closing(Kube(admission_sandbox.kubeconfig)) as cluster:
        for name in (TENANT, "plimsoll-system"):
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        cluster.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "stolen-tokens"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": IDENTITIES[name].user}
                    for name in ("controller", "binder")
                ],
            }
        )
        cluster.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": TENANT}}
        )
        cluster.apply(deployment("plain", TENANT, {"app": "plain"}))
        cluster.apply(deployment("ours", TENANT, OURS))
        cluster.apply(pod("plain", {"app": "plain"}, "none"))
        cluster.apply(pod("share", {"app": "share"}, SCHEDULER))
        cluster.apply(config_map("settings-0", TENANT, ("config",)))
        cluster.apply(
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {"name": "plain"},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
                },
            }
        )
        yield cluster
        for each in ("plain", "share"):
            cluster.delete("v1", "Pod", each, TENANT)
        cluster.delete("karpenter.sh/v1", "NodeClaim", "plain")
        cluster.delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "stolen-tokens")


def refusal(connection: Connection, write: Write) -> str:
    """Why the cluster refuses a write, which is not carried out; empty if it accepts it."""
    content = STRATEGIC_MERGE_PATCH if "containers" in str(write.body) else MERGE_PATCH
    content = content if write.method == "PATCH" else "application/json"
    try:
        connection.request(write.method, write.path, write.body, query={"dryRun": "All"}, content_type=content)
    except RequestError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("user", "name", "made", "attacks", "work"),
    [
        ("controller", CONTROLLER_POLICY, controller_policy, CONTROLLER_ATTACKS, CONTROLLER_WORK),
        (
            "binder",
            BINDER_POLICY,
            lambda: binder_policy("plimsoll-binder", SCHEDULER, RESERVATIONS),
            BINDER_ATTACKS,
            BINDER_WORK,
        ),
    ],
    ids=["controller", "binder"],
)
def test_a_stolen_token_changes_nothing_that_the_account_did_not_make(
    admission_sandbox: Sandbox,
    cluster: Kube,
    user: str,
    name: str,
    made: Callable[[], Any],
    attacks: dict[str, Write],
    work: dict[str, Write],
) -> None:
    with ExitStack() as stack:
        connection = stack.enter_context(closing(Connection.open(admission_sandbox.folder.kubeconfig(user))))

        def whys(writes: dict[str, Write]) -> dict[str, str]:
            return {what: refusal(connection, write) for what, write in writes.items()}

        await_condition(lambda: not any(whys(attacks | work).values()), message="without the policy, all is accepted")
        admission = made()
        for kind, spec in (
            ("ValidatingAdmissionPolicy", admission["policy"]),
            ("ValidatingAdmissionPolicyBinding", {"policyName": name, **admission["binding"]}),
        ):
            stack.callback(cluster.delete, ADMISSION, kind, name)
            cluster.apply({"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
        first = next(iter(attacks.values()))
        await_condition(lambda: refusal(connection, first), message="the policy in effect")
        assert [what for what, why in whys(attacks).items() if name not in why] == []
        assert whys(work) == dict.fromkeys(work, "")
