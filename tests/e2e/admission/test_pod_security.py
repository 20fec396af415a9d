"""A Workspace makes no pods that its namespace refuses, nor any that its writer could not create."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from plimsoll.components.admission import WRITER_POLICY, writer_policy
from plimsoll.kube import RequestError
from plimsoll.plan.workspaces import ENFORCE, pod_security
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.admission.objects import ADMISSION
from tests.e2e.cluster.kube import Kube, acting_as
from tests.validating.pod_security_cases import CASES

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
RBAC = "rbac.authorization.k8s.io/v1"
TEMPLATE = {"spec": {"serviceAccountName": "strong", "containers": [{"name": "m", "image": "x"}]}}
CLAIM = {"volumeSource": {"persistentVolumeClaim": {"claimName": "data"}}}
PRESET: dict[str, Any] = {"preset": {"name": "phi-4-mini-instruct"}}


@pytest.fixture(scope="module")
def cluster(admission_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(admission_sandbox.kubeconfig)) as kube:
        yield kube


@pytest.mark.parametrize("level", ["privileged", "baseline", "restricted"])
def test_what_is_refused_here_is_what_pod_security_refuses(cluster: Kube, level: str) -> None:
    namespace, labels = f"level-{level}", {ENFORCE: level}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
    cluster.apply(account)
    differing = {}
    for case in CASES:
        template = case.template
        metadata = {"name": "p", "namespace": namespace, **template["metadata"]}
        said = cluster.refusal({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
        ours = list(pod_security(labels, template))
        if bool(said) != bool(ours) or (said and "violates PodSecurity" not in said):
            differing[case.name] = (said, ours)
    assert not differing


@pytest.fixture(scope="module")
def writer(admission_sandbox: Sandbox, cluster: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """A user who may write Workspaces in a namespace, and create no pods there."""
    made = writer_policy()
    for kind, spec in (
        ("ValidatingAdmissionPolicy", made["policy"]),
        ("ValidatingAdmissionPolicyBinding", {"policyName": WRITER_POLICY, **made["binding"]}),
    ):
        cluster.apply({"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": WRITER_POLICY}, "spec": spec})
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "writers"}})
    account = {"name": "writer", "namespace": "writers"}
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    allow(cluster, "workspaces", "plimsoll.dev")
    token = cluster.token("writers", "writer")
    folder: Path = tmp_path_factory.mktemp("writer")
    with closing(acting_as(admission_sandbox.kubeconfig, token, folder)) as kube:
        # Not that the role is not yet.
        await_condition(lambda: WRITER_POLICY in kube.refusal(workspace(template=TEMPLATE)), message="it is in force")
        yield kube
    for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
        cluster.delete(ADMISSION, kind, WRITER_POLICY)


def allow(cluster: Kube, resources: str, group: str) -> None:
    """Grants everything on the resources in the namespace."""
    metadata = {"name": resources, "namespace": "writers"}
    rules = [{"apiGroups": [group], "resources": [resources], "verbs": ["*"]}]
    cluster.apply({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": resources}
    subjects = [{"kind": "ServiceAccount", "name": "writer", "namespace": "writers"}]
    binding = {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata}
    cluster.apply(binding | {"roleRef": reference, "subjects": subjects})


def workspace(name: str = "ws", **inference: Any) -> dict[str, Any]:
    spec = {"resource": {"labelSelector": {"matchLabels": {"pool": "a"}}}, "inference": inference}
    return {"apiVersion": API, "kind": "Workspace", "metadata": {"name": name, "namespace": "writers"}, "spec": spec}


@pytest.mark.parametrize(
    ("inference", "field"),
    [
        ({"template": TEMPLATE}, "inference.template"),
        ({**PRESET, "weights": CLAIM}, "inference.weights"),
        ({**PRESET, "adapters": [{"source": {"name": "a", **CLAIM}}]}, "inference.adapters"),
        ({**PRESET, "config": "options"}, "inference.config"),
        ({**PRESET, "pods": {"serviceAccountName": "other"}}, "inference.pods"),
        (
            {"preset": {**PRESET["preset"], "presetOptions": {"modelAccessSecret": "s"}}},
            "inference.preset.presetOptions",
        ),
    ],
)
def test_who_may_not_create_pods_decides_nothing_of_them(
    cluster: Kube, writer: Kube, inference: dict[str, Any], field: str
) -> None:
    said = writer.refusal(workspace(**inference))
    assert "system:serviceaccount:writers:writer may not create pods in namespace writers" in said
    assert field in said
    assert not writer.refusal(workspace(**PRESET)), "the pods of a preset are of Plimsoll's making"
    assert not cluster.refusal(workspace(**inference)), "an administrator may create pods"


def test_who_may_not_create_pods_may_scale_what_others_wrote(cluster: Kube, writer: Kube) -> None:
    cluster.apply(workspace("theirs", template=TEMPLATE))
    writer.patch(API, "Workspace", "theirs", {"spec": {"inference": {"replicas": 3}}}, "writers")
    with pytest.raises(RequestError, match="may not create pods"):
        changed = {"spec": {"containers": [{"name": "m", "image": "mine"}]}}
        writer.patch(API, "Workspace", "theirs", {"spec": {"inference": {"template": changed}}}, "writers")
    writer.delete(API, "Workspace", "theirs", "writers")


def test_who_may_create_pods_may_write_templates(cluster: Kube, writer: Kube) -> None:
    allow(cluster, "pods", "")
    await_condition(lambda: not writer.refusal(workspace(template=TEMPLATE)), message="the right is granted")
