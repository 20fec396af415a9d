"""The stacks on a real apiserver, with the pulumi command."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.working_copy import CHECKOUT
from plimsoll.components import GATE_NAME, gate_policies
from plimsoll.kube import APPLY_PATCH, Connection, RequestError
from plimsoll.model.api import (
    CAPACITY_GATE,
    LABEL_SELECTOR_IMMUTABLE,
    NEEDS_PRESET_OR_TEMPLATE,
    PRESET_IMMUTABLE,
    PRESET_XOR_TEMPLATE,
    CapacityGateSpec,
)
from plimsoll.sandbox import Sandbox
from plimsoll.stacks import until_effective
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.sandboxes import up_sandbox
from tests.e2e.programs.stacks import Project

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
TIME = "2026-01-01T00:00:00Z"
FOUNDATION, ENVIRONMENT = "sandbox-foundation", "sandbox"

Connect = Callable[..., Kube]


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    yield from up_sandbox("stacks", karpenter=False)


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The deployed foundation and environment."""
    made = Project(sandbox, tmp_path_factory.mktemp("project"))
    made.apply(FOUNDATION)
    made.apply(ENVIRONMENT)
    return made


@pytest.fixture
def admin(sandbox: Sandbox, project: Project, kube: Connect) -> Kube:
    return kube(sandbox)


def a_workspace(name: str = "w", **spec: Any) -> dict[str, Any]:
    given = {"inference": {"preset": {"name": "phi-4"}}, **spec}
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": "inference"},
        "spec": given,
    }


def refusal(call: Callable[[], Any]) -> RequestError:
    with pytest.raises(RequestError) as caught:
        call()
    return caught.value


@pytest.fixture
def made(admin: Kube) -> Iterator[Callable[..., dict[str, Any]]]:
    """Creates a Workspace and deletes it after the test."""
    names: list[str] = []

    def make(name: str = "w", **spec: Any) -> dict[str, Any]:
        names.append(name)
        return admin.apply(a_workspace(name, **spec))

    yield make
    for name in names:
        admin.delete(API, "Workspace", name, "inference")


def test_the_configuration_changes_objects_and_pods_are_gated_at_once(project: Project, admin: Kube) -> None:
    """A namespace is added to the gate later; the cluster takes up to a second to use a changed policy."""
    project.set(
        ENVIRONMENT,
        {
            "plimsoll:namespaces[2]": "late",
            "plimsoll:capacityGate.namespaces[1]": "late",
            "plimsoll:workspaces.phi.inference.replicas": "2",
        },
    )
    before = admin.get(API, "Workspace", "phi", "inference")
    assert before is not None
    assert before["spec"]["inference"]["replicas"] == 1
    project.up(ENVIRONMENT, "--skip-preview")
    container = {"name": "main", "image": "example/model:1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    metadata = {"name": "share", "namespace": "late", "annotations": {"gpu-fraction": "0.5"}}
    made = admin.apply({**pod, "metadata": metadata}, dry_run=True)
    assert [each["name"] for each in made["spec"]["schedulingGates"]] == [CAPACITY_GATE]
    workspace = admin.get(API, "Workspace", "phi", "inference")
    assert workspace is not None
    assert workspace["spec"]["inference"]["replicas"] == 2


def test_a_missing_mutating_policy_has_no_effect(sandbox: Sandbox) -> None:
    connection = Connection.open(sandbox.kubeconfig)
    absent = gate_policies(CapacityGateSpec(namespaces=("kube-public",)))[f"{GATE_NAME}-namespaces"]
    assert not until_effective(connection, absent, seconds=0.5)
    connection.close()


def test_the_objects_of_the_stack_file_exist(admin: Kube) -> None:
    assert {item["metadata"]["name"] for item in admin.list(API, "Workspace")} >= {"phi", "mixed"}
    environment = admin.get(API, "Environment", ENVIRONMENT)
    assert environment is not None
    assert environment["spec"]["nodeAutoProvisioning"] == "disabled"
    queue = admin.get("scheduling.run.ai/v2", "Queue", "inference")
    assert queue is not None
    assert queue["spec"]["parentQueue"] == "research"


def test_a_second_update_changes_nothing(project: Project) -> None:
    output = project.preview(ENVIRONMENT, "--expect-no-changes") + project.preview(FOUNDATION, "--expect-no-changes")
    assert "unchanged" in output


def test_trying_the_stacks_does_not_change_the_checkout(project: Project) -> None:
    for stack in (FOUNDATION, ENVIRONMENT):
        assert "encryptionsalt" not in (CHECKOUT / "stacks" / f"Pulumi.{stack}.yaml").read_text()
        assert "encryptionsalt" in (project.folder / "stacks" / f"Pulumi.{stack}.yaml").read_text()


def test_a_wrong_configuration_names_its_file_and_field_and_changes_nothing(project: Project) -> None:
    before = (project.folder / "stacks" / f"Pulumi.{ENVIRONMENT}.yaml").read_text()
    project.set(ENVIRONMENT, {"plimsoll:workspaces.phi.inference.replica": "3"})
    try:
        output = project.up(ENVIRONMENT, "--skip-preview", fails=True)
    finally:
        (project.folder / "stacks" / f"Pulumi.{ENVIRONMENT}.yaml").write_text(before)
    assert "stacks/Pulumi.sandbox.yaml: workspaces.phi.inference.replica: unknown field" in output
    assert "Traceback" not in output


def test_the_controller_has_only_the_permissions_that_it_needs(
    sandbox: Sandbox, project: Project, kube: Connect, admin: Kube
) -> None:
    controller = kube(sandbox, "controller")
    assert controller.list(API, "Workspace")
    assert isinstance(controller.list("v1", "Node"), list)
    status = {"status": {"targetNodeCount": 1}}
    controller.patch(API, "Workspace", "phi", status, "inference", "status")
    assert refusal(lambda: controller.delete(API, "Workspace", "phi", "inference")).code == 403
    assert refusal(lambda: controller.list("v1", "Secret")).code == 403
    new = {"apiVersion": API, "kind": "Workspace", "metadata": {"name": "new", "namespace": "inference"}, "spec": {}}
    assert refusal(lambda: controller.apply(new)).code == 403
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "test"}}
    assert refusal(lambda: controller.apply({**lease, "metadata": {"name": "a", "namespace": "default"}})).code == 403
    controller.create({**lease, "metadata": {"name": "a", "namespace": "plimsoll-system"}})
    admin.delete("coordination.k8s.io/v1", "Lease", "a", "plimsoll-system")


def test_the_clusters_roles_include_workspaces(admin: Kube) -> None:
    def verbs(role: str) -> set[str]:
        found = admin.get("rbac.authorization.k8s.io/v1", "ClusterRole", role) or {}
        rules = [rule for rule in found.get("rules") or () if "workspaces" in rule.get("resources", ())]
        return {verb for rule in rules for verb in rule["verbs"]}

    read, write = {"get", "list", "watch"}, {"create", "update", "patch", "delete", "deletecollection"}
    wanted = {"view": read, "edit": read | write, "admin": read | write}
    # A controller aggregates one role after the other.
    await_condition(lambda: {role: verbs(role) for role in wanted} == wanted, message="the roles are aggregated")


TEMPLATE = {"spec": {"containers": [{"name": "main"}]}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"inference": {"preset": {"name": "a"}, "template": TEMPLATE}}, PRESET_XOR_TEMPLATE),
        ({"inference": {}}, NEEDS_PRESET_OR_TEMPLATE),
        ({"inference": {"preset": {"name": "a"}, "replicas": -1}}, "spec.inference.replicas"),
        ({"inference": {"preset": {"name": "a"}, "gpuMemoryGiB": 0}}, "spec.inference.gpuMemoryGiB"),
        ({"inference": {"preset": {"name": "a"}, "perReplicaNodeCount": 0}}, "perReplicaNodeCount"),
        ({"inference": {"preset": {"name": ""}}}, "spec.inference.preset.name"),
        ({"resource": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}, "operator"),
        ({"queue": "q" * 64}, "spec.queue"),
    ],
)
def test_the_cluster_refuses_a_wrong_workspace(admin: Kube, spec: dict[str, Any], words: str) -> None:
    error = refusal(lambda: admin.apply(a_workspace(**spec)))
    assert error.code == 422
    assert words in error.message


def test_the_cluster_refuses_unknown_fields(admin: Kube) -> None:
    assert "replica" in refusal(lambda: admin.apply(a_workspace(inference={"replica": 1}))).message


def test_a_template_is_stored_completely(made: Callable[..., dict[str, Any]]) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "own:1", "futureField": {"a": [1]}}]}}
    assert made(inference={"template": template})["spec"]["inference"]["template"] == template


SELECTED = {"labelSelector": {"matchLabels": {"pool": "a"}}}
OTHERS = {"labelSelector": {"matchLabels": {"pool": "b"}}}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            {"resource": SELECTED},
            {"resource": {"labelSelector": {"matchLabels": {"pool": "b"}}}},
            LABEL_SELECTOR_IMMUTABLE,
        ),
        ({"resource": SELECTED}, {}, LABEL_SELECTOR_IMMUTABLE),
        ({}, {"resource": SELECTED}, LABEL_SELECTOR_IMMUTABLE),
        ({}, {"inference": {"preset": {"name": "other"}}}, PRESET_IMMUTABLE),
        ({}, {"inference": {"template": TEMPLATE}}, PRESET_IMMUTABLE),
        ({}, {"inference": {"preset": {"name": "phi-4"}, "replicas": 4}}, None),
        ({"resource": SELECTED}, {"resource": SELECTED, "queue": "inference"}, None),
    ],
)
def test_immutable_and_mutable_fields(
    made: Callable[..., dict[str, Any]], before: dict[str, Any], after: dict[str, Any], message: str | None
) -> None:
    made(**before)
    if message is None:
        made(**after)
    else:
        assert message in refusal(lambda: made(**after)).message


def test_the_cluster_refuses_an_environment_whose_mode_does_not_fit(admin: Kube) -> None:
    spec = {"nodeAutoProvisioning": "disabled", "provisioner": "nodeclaim"}
    manifest = {"apiVersion": API, "kind": "Environment", "metadata": {"name": "other"}, "spec": spec}
    words = "provisioner 'nodeclaim' does not fit nodeAutoProvisioning 'disabled'"
    assert words in refusal(lambda: admin.apply(manifest)).message


def test_conditions_are_merged_by_type(made: Callable[..., dict[str, Any]], sandbox: Sandbox, admin: Kube) -> None:
    made()
    path = f"/apis/{API}/namespaces/inference/workspaces/w/status"
    identity = {"apiVersion": API, "kind": "Workspace", "metadata": {"name": "w", "namespace": "inference"}}
    connection = Connection.open(sandbox.controller_kubeconfig)
    for manager, kind in (("a", "ResourceReady"), ("b", "NodesReady")):
        condition = {"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": TIME}
        body = {**identity, "status": {"conditions": [condition]}}
        connection.request("PATCH", path, body, query={"fieldManager": manager}, content_type=APPLY_PATCH)
    connection.close()
    workspace = admin.get(API, "Workspace", "w", "inference")
    assert workspace is not None
    assert {each["type"] for each in workspace["status"]["conditions"]} == {"ResourceReady", "NodesReady"}


class TestGuards:
    """Deletion protection: objects in use cannot be deleted, the reason is reported, and other objects can be
    deleted."""

    def test_the_foundation_stays_while_an_environment_exists(self, project: Project, admin: Kube) -> None:
        controller = {"image": "a:1", "backend": "s3://states", "passphrase.name": "plimsoll"}
        project.set(FOUNDATION, {f"plimsoll:controller.{field}": value for field, value in controller.items()})
        project.up(FOUNDATION, "--skip-preview")
        before = project.resources(FOUNDATION)
        output = project.destroy(FOUNDATION, fails=True)
        assert "Environment sandbox still exists: run `plimsoll destroy`" in output
        assert project.resources(FOUNDATION) == before
        assert admin.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "workspaces.plimsoll.dev")
        assert admin.get("apps/v1", "Deployment", "plimsoll-controller", "plimsoll-system")

    def test_a_controller_can_be_removed_while_an_environment_exists(self, project: Project, admin: Kube) -> None:
        project.pulumi("config", "rm", "--stack", FOUNDATION, "plimsoll:controller")
        project.up(FOUNDATION, "--skip-preview")
        assert admin.list("apps/v1", "Deployment", "plimsoll-system") == []

    def test_kubectl_cannot_delete_the_crds_either(self, admin: Kube) -> None:
        error = refusal(
            lambda: admin.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "environments.plimsoll.dev")
        )
        assert (error.code, "Environment sandbox still exists" in error.message) == (403, True)

    @pytest.mark.parametrize("living", [{"nodeClaims": 3}, {"workloads": 1}])
    def test_the_environment_stays_while_it_has_capacity(
        self, project: Project, admin: Kube, living: dict[str, int]
    ) -> None:
        before = project.resources(ENVIRONMENT)
        admin.patch(API, "Environment", ENVIRONMENT, {"status": living}, subresource="status")
        try:
            output = project.destroy(ENVIRONMENT, fails=True)
            claims, workloads = living.get("nodeClaims", 0), living.get("workloads", 0)
            words = f"still has {claims} NodeClaims, 0 NodePools and {workloads} workloads"
            assert f"Environment sandbox {words}: run `plimsoll destroy`" in output
            assert project.resources(ENVIRONMENT) == before
            assert admin.get(API, "Workspace", "phi", "inference")
            assert words in refusal(lambda: admin.delete(API, "Environment", ENVIRONMENT)).message
        finally:
            free = {"status": {"nodeClaims": 0, "workloads": 0}}
            admin.patch(API, "Environment", ENVIRONMENT, free, subresource="status")

    def test_a_new_name_of_an_environment_with_capacity_can_be_given_up(self, project: Project, admin: Kube) -> None:
        admin.patch(API, "Environment", ENVIRONMENT, {"status": {"nodeClaims": 3}}, subresource="status")
        field = {"plimsoll:environment.name": "renamed"}
        project.set(ENVIRONMENT, field)
        try:
            output = project.up(ENVIRONMENT, "--skip-preview", fails=True)
            assert "Environment sandbox still has 3 NodeClaims" in output
            project.pulumi("config", "rm", "--stack", ENVIRONMENT, "--path", *field)
            project.up(ENVIRONMENT, "--skip-preview")
            assert [each["metadata"]["name"] for each in admin.list(API, "Environment")] == [ENVIRONMENT]
        finally:
            admin.patch(API, "Environment", ENVIRONMENT, {"status": {"nodeClaims": 0}}, subresource="status")

    def test_unused_objects_can_be_deleted_and_created_again(self, project: Project, admin: Kube) -> None:
        project.destroy(ENVIRONMENT)
        assert admin.list("v1", "ConfigMap", "plimsoll-system", "plimsoll.dev/guard=environment") == []
        project.destroy(FOUNDATION)
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
            names = [each["metadata"]["name"] for each in admin.list("admissionregistration.k8s.io/v1", kind)]
            assert not any(name.startswith("plimsoll") for name in names)
        project.up(FOUNDATION, "--skip-preview")
        project.up(ENVIRONMENT, "--skip-preview")
