"""What namespaces may use, and the permissions of users on our kinds, by a real apiserver."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from plimsoll.components import AGGREGATED
from plimsoll.model.api import EnvironmentSpec, tenancy_violation
from plimsoll.policy import RULES
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.builders import a_template
from tests.e2e.cluster.kube import Kube, Manifest

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
ADMISSION = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"
NC24 = "Standard_NC24ads_A100_v4"


@pytest.fixture(scope="module")
def cluster(admission_sandbox: Sandbox) -> Iterator[Kube]:
    """The CRDs. The Environment of the test turns the foundation's policies off."""
    with closing(Kube(admission_sandbox.kubeconfig)) as kube:
        yield kube
        for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            kube.delete(ADMISSION, kind, "access")
        kube.delete(API, "Environment", "test")
        for role in AGGREGATED:
            kube.delete(RBAC, "ClusterRole", f"plimsoll-{role}")


def policy() -> Manifest:
    cel = RULES["workspace-access"].cel
    assert cel is not None
    rules = {"apiGroups": ["plimsoll.dev"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["workspaces"]}
    return {
        "paramKind": {"apiVersion": API, "kind": "Environment"},
        "matchConstraints": {"resourceRules": [rules]},
        "variables": [{"name": name, "expression": text} for name, text in cel.variables.items()],
        "validations": [{"expression": cel.holds, "messageExpression": cel.message}],
    }


def workspace(
    namespace: str, queue: str = "", instance_type: str = NC24, labels: dict[str, str] | None = None
) -> Manifest:
    template = {"metadata": {"labels": labels}, **a_template()}
    inference = {"preset": {"name": "phi-4"}} if labels is None else {"template": template}
    spec: Manifest = {"resource": {"instanceType": instance_type}, "inference": inference}
    metadata = {"name": "ws", "namespace": namespace}
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": metadata,
        "spec": spec | ({"queue": queue} if queue else {}),
    }


def test_the_policy_agrees_with_the_verdict(cluster: Kube) -> None:
    entries = [
        {"namespaces": ["default"], "queues": ["team"], "instanceTypes": [NC24.lower()]},
        {"namespaces": ["kube-public"], "queues": []},
    ]
    spec = {"nodeAutoProvisioning": "enabled", "access": entries, "admission": "off"}
    cluster.apply({"apiVersion": API, "kind": "Environment", "metadata": {"name": "test"}, "spec": spec})
    name = {"name": "access"}
    binding = {"policyName": "access", "validationActions": ["Deny"]}
    reference = {"selector": {}, "parameterNotFoundAction": "Deny"}
    cluster.apply({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": name, "spec": policy()})
    cluster.apply(
        {
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": name,
            "spec": {**binding, "paramRef": reference},
        }
    )
    environment = EnvironmentSpec.model_validate(spec)
    await_condition(
        lambda: "ValidatingAdmissionPolicy 'access'" in cluster.refusal(workspace("kube-system")),
        message="the policy is in force",
    )
    await_condition(lambda: not cluster.refusal(workspace("default", "team")), message="the others are off")
    cases: tuple[tuple[str, str, str, dict[str, str] | None], ...] = (
        ("default", "team", NC24, None),
        ("default", "", NC24, None),
        ("default", "other", NC24, None),
        ("default", "team", "p5.48xlarge", None),
        ("kube-public", "", "p5.48xlarge", None),
        ("kube-public", "team", NC24, None),
        ("kube-system", "", NC24, None),
        ("default", "", NC24, {}),
        ("default", "", NC24, {"kai.scheduler/queue": "team", "project": "other"}),
        ("default", "", NC24, {"kai.scheduler/queue": "other"}),
        ("default", "team", NC24, {"kai.scheduler/queue": "other"}),
        ("default", "", NC24, {"project": "team"}),
        ("default", "", NC24, {"project": "other"}),
        ("default", "", NC24, {"project": "team", "kai.scheduler/node-pool": "a"}),
    )
    for namespace, queue, instance_type, labels in cases:
        violation = tenancy_violation(
            environment,
            namespace,
            queue=queue,
            labels=labels or {},
            instance_types=(instance_type,) if instance_type else (),
        )
        answer = cluster.refusal(workspace(namespace, queue, instance_type, labels))
        assert bool(answer) is (violation is not None), answer
        assert violation is None or violation.message in answer


def test_the_clusters_roles_include_our_kinds(cluster: Kube) -> None:
    for role, rules in AGGREGATED.items():
        labels = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true"}
        metadata = {"name": f"plimsoll-{role}", "labels": labels}
        cluster.apply({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules})

    def verbs(role: str, resource: str) -> set[str]:
        found = cluster.get(RBAC, "ClusterRole", role) or {}
        ours = [each for each in found.get("rules") or () if "plimsoll.dev" in each.get("apiGroups", ())]
        return {verb for each in ours if resource in each["resources"] for verb in each["verbs"]}

    read, write = {"get", "list", "watch"}, {"create", "update", "patch", "delete", "deletecollection"}
    wanted = {
        ("view", "workspaces"): read,
        ("view", "environments"): read,
        ("edit", "workspaces"): read | write,
        ("admin", "workspaces"): read | write,
        ("admin", "environments"): read,
    }
    # A controller aggregates one role after the other.
    await_condition(lambda: {each: verbs(*each) for each in wanted} == wanted, message="the roles are aggregated")
