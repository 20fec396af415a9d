"""The rules in CEL and in Python have the same results for the same objects, on a real apiserver."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.kube import RequestError
from plimsoll.model.api import Policies
from plimsoll.policy import RULES, Checker, PolicyContext
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.claims.objects import a_claim, a_template, asked
from tests.e2e.cluster.kube import Kube, acting_as
from tests.policy_rules.manifests import (
    GPU,
    IMAGE,
    TODAY,
    Manifest,
    a_deployment,
    a_kaito_workspace,
    a_node_pool,
    a_pod,
    a_reservation,
    a_trigger,
    an_environment,
    an_inference_set,
    with_path,
)

pytestmark = pytest.mark.e2e

IN_CLUSTER = {name for name, rule in RULES.items() if rule.cel is not None}
EXAMPLES = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
DENY: dict[str, Any] = {"admission": "deny"}


@pytest.fixture(scope="module")
def cluster(admission_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(admission_sandbox.kubeconfig)) as kube:
        for name in ("research", "kai-resource-reservation", "runai-reservation", "kai-scale-adjust"):
            kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield kube
        kube.delete("plimsoll.dev/v1alpha1", "Environment", "test")


def refused(cluster: Kube, manifest: Manifest) -> str:
    """The messages of the cluster's rules; empty if it accepts the object."""
    message = cluster.refusal(manifest)
    assert not message or "ValidatingAdmissionPolicy" in message, message
    return message


def declare(cluster: Kube, **spec: Any) -> dict[str, Any]:
    """Declares an Environment, and waits until the policies use it."""
    environment = an_environment(**spec)
    environment["metadata"]["name"] = "test"
    generation = cluster.apply(environment)["metadata"]["generation"]
    mark = {"rule": "gpu-share-devices", "name": f"mark-{generation}", "reason": "a mark", "until": "2100-01-01"}
    policies = spec.get("policies", {})
    marked = {**policies, "exemptions": [*policies.get("exemptions", []), mark]}
    cluster.apply(with_path(environment, spec__policies=marked))
    wrong = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "none"}
    probe = a_pod(wrong, image=f"a@sha256:{'0' * 64}", name=f"mark-{generation}")
    if policies.get("admission") == "deny":
        await_condition(lambda: _known(cluster, probe), message="the policies know the Environment")
    else:
        await_condition(lambda: not refused(cluster, with_path(probe, metadata__name="unmarked")), message="it is off")
    return spec


def _known(cluster: Kube, probe: Manifest) -> bool:
    """Whether the exemption of a marker object is in effect, and the same object without it is refused."""
    other = with_path(probe, metadata__name="unmarked")
    return not refused(cluster, probe) and bool(refused(cluster, other))


def agree(cluster: Kube, spec: dict[str, Any], manifest: Manifest) -> None:
    """The cluster refuses exactly the objects with findings in Python, for a reason that is among the findings."""
    policies = Policies.model_validate(spec.get("policies", {}))
    checker = Checker(PolicyContext.of(spec), policies, TODAY)
    found = {each.rule for each in checker.broken_by(manifest) if each.severity == "error"} & IN_CLUSTER
    message = refused(cluster, manifest)
    assert bool(message) == bool(found), (message, found)
    assert not found or any(f"({rule})" in message for rule in found), (message, found)


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Usually the valid value, so that an object rarely violates several rules at once."""
    return st.one_of(st.just(usual), st.just(usual), st.just(usual), st.sampled_from(others))


FRACTIONS = st.sampled_from(
    ["0.5", ".5", "1", "1.5", "0", "0.0", "-0.5", "", "a", "1e-1", "1e9", "0.999999999999999999999", "٠.٥", "+.5", "1e"]
)
WHOLE = st.sampled_from(["1", "2", "02", "0", "-1", "1.5", "2Gi", "", "1024", "1025", "99999", "1" * 16, "٢"])
IMAGES = mostly(
    IMAGE, "a", "a:latest", "a:latest-gpu", "r:5000/a", "r:5000/a:1", "a@sha256:" + "0a" * 32, "a:b@sha256:12", "a:1.2"
)
NAMESPACES = mostly("research", "kai-resource-reservation", "kai-scale-adjust", "runai-reservation")


@st.composite
def pods(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Manifest:
    annotations = {}
    for name, values in (("gpu-fraction", FRACTIONS), ("gpu-memory", WHOLE), ("gpu-fraction-num-devices", WHOLE)):
        if draw(mostly(False, True)):
            annotations[name] = draw(values)
    labels = {}
    for name, values in (
        ("kai.scheduler/queue", mostly("team", None, "")),
        ("project", mostly(None, "a")),
        ("app", mostly(None, "scaling-pod", "kai-resource-reservation")),
        ("tensor-fusion.ai/trigger-type", mostly(None, "a")),
    ):
        value = draw(values)
        if value is not None:
            labels[name] = value
    pod = a_pod(
        annotations,
        gpus=draw(mostly(None, "1", "0", "2")),
        labels=labels,
        scheduler=draw(mostly("kai-scheduler", None, "default-scheduler", "own", "plimsoll-trigger")),
        image=draw(IMAGES),
        namespace=draw(NAMESPACES),
    )
    if draw(st.booleans()):
        resource = draw(mostly(GPU, "amd.com/gpu", "nvidia.com/hostdev"))
        init = {"name": "init", "image": draw(IMAGES), "resources": {"limits": {resource: draw(mostly("0", "1"))}}}
        pod["spec"]["initContainers"] = [init]
    if draw(st.booleans()):
        pod["spec"]["volumes"] = [{"name": "a", "emptyDir": {}}, {"name": "b", "image": {"reference": draw(IMAGES)}}]
    if draw(mostly(True, False)):
        return pod
    labels = draw(st.sampled_from([{}, {"kai.scheduler/queue": "team"}, {"project": "a"}]))
    return a_workload(draw(st.sampled_from(sorted(WORKLOADS))), pod, labels)


WORKLOADS = {
    "CronJob": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
}


def a_workload(kind: str, pod: Manifest, labels: dict[str, str]) -> Manifest:
    made = with_path(a_deployment(pod, labels), metadata__namespace=pod["metadata"]["namespace"])
    made |= {"apiVersion": WORKLOADS[kind], "kind": kind}
    template = made["spec"]["template"]
    if kind in ("CronJob", "Job"):
        template["spec"] |= {"restartPolicy": "Never"}
        job = {"template": template}
        made["spec"] = {"schedule": "@daily", "jobTemplate": {"spec": job}} if kind == "CronJob" else job
    else:
        template["metadata"]["labels"] = {**template["metadata"]["labels"], "app": "serve"}
        matched = {"app": "serve"}
        made["spec"]["selector"] = matched if kind == "ReplicationController" else {"matchLabels": matched}
    return made


@st.composite
def capacity_pods(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Manifest:
    if draw(st.booleans()):
        return a_trigger(
            spec__activeDeadlineSeconds=draw(mostly(600, None)),
            spec__schedulerName=draw(mostly("plimsoll-trigger", None, "kai-scheduler", "own")),
            spec__nodeName=draw(mostly(None, "node")),
            metadata__name=draw(mostly("trigger", "a" * 63, "a" * 64, "a.b")),
            metadata__namespace=draw(NAMESPACES),
        )
    before = draw(mostly(False, True))
    return a_reservation(
        spec__nodeName=draw(mostly("node", None)),
        spec__containers__0__resources__limits=draw(mostly({GPU: "1"}, {}, {GPU: "2"}, {GPU: "1", "cpu": "1"})),
        metadata__annotations=draw(
            mostly({"karpenter.sh/do-not-disrupt": "true"}, {}, {"karpenter.sh/do-not-disrupt": "1h"})
        ),
        metadata__namespace="runai-reservation" if before else draw(mostly("kai-resource-reservation", "research")),
        metadata__name=draw(
            mostly(
                "gpu-reservation-0123456789abcdef",
                "gpu-reservation-0123456789abcde",
                "gpu-reservation-0123456789abcdeg",
                "gpu-reservation-node-bcd45",
                "gpu-reservation-another-bcd45",
                "runai-reservation-gpu-node-1-abc45",
            )
        ),
        metadata__labels=draw(
            mostly(
                {"app": "kai-resource-reservation", "runai-gpu-group": "g"},
                {"app": "runai-reservation"},
                {"app.runai.resource.reservation": "a", "runai-gpu-group": "g"},
                {"app": "kai-resource-reservation", "runai-gpu-group": ""},
            )
        ),
    )


TEXTS = st.one_of(
    st.sampled_from(
        [
            "2026-07-01T10-00-00Z", "1782900000", "1782900000000", "9f86d081884c7d65", "deadbeefdeadbeef", "research",
            "0123456789012345", "123e4567-e89b-12d3-a456-426614174000", "20260701-1000", "2026-07-01", "1.2.3",
        ]
    ),
    st.from_regex(r"[a-f0-9]{12,20}", fullmatch=True),
    st.from_regex(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}[T_.-]?[0-9]{1,3}", fullmatch=True),
)  # fmt: skip
KEYS = st.sampled_from(
    ["team", "example.org/timestamp", "time", "runtime", "git-sha", "sha1", "Restarted-At", "restartedAt", "updatedat",
     "nvidia.com/gpu.product", "nvidia.com/gfd.timestamp", "a.date", "candidate"]
)  # fmt: skip


@st.composite
def node_pools(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Manifest:
    types = draw(
        mostly(
            ["p4d.24xlarge"], ["g5.xlarge", "p4d.24xlarge"], ["m5.large"], ["Standard_NC24ads_A100_v4"], ["g4ad.xlarge"]
        )
    )
    pool = a_node_pool(*types, gpu_limit=draw(mostly("16", "4", "8", "0", "12", "1k", "4500m")))
    spec = pool["spec"]
    requirements = spec["template"]["spec"]["requirements"]
    more = draw(
        mostly(
            None,
            {"key": "nvidia.com/gpu.count", "operator": "In", "values": ["8"]},
            {"key": "nvidia.com/gpu.product", "operator": "Exists"},
            {"key": "nvidia.com/gpu.product", "operator": "DoesNotExist"},
            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["g"]},
            {"key": "karpenter.k8s.aws/instance-family", "operator": "NotIn", "values": ["p5"]},
            {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["7"]},
            {"key": "karpenter.k8s.gcp/instance-family", "operator": "In", "values": ["a3"]},
            {"key": "beta.amd.com/gpu.family.AI", "operator": "Exists"},
        )
    )
    if more is not None:
        requirements.append(more)
    if draw(mostly(False, True)):
        del spec["limits"]
    elif draw(mostly(False, True)):
        spec["limits"] = {"gpu.intel.com/xe": "8"}
    spec["disruption"]["consolidateAfter"] = draw(mostly("15m", "0s", "30s", "5m", "4m59s", "1h", "Never", "300s"))
    taint = draw(
        mostly(
            {"key": GPU, "effect": "NoSchedule"},
            None,
            {"key": "sku", "value": "gpu", "effect": "NoExecute"},
            {"key": "amd.com/gpu", "effect": "PreferNoSchedule"},
            {"key": "team", "effect": "PreferNoSchedule"},
        )
    )
    spec["template"]["spec"]["taints"] = [taint] if taint else []
    for part in ("labels", "annotations"):
        if draw(st.booleans()):
            spec["template"]["metadata"][part] = {draw(KEYS): draw(TEXTS)}
    if draw(mostly(False, True)):
        del spec["disruption"]
    return pool


@st.composite
def workspaces(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Manifest:
    instance_type = draw(st.sampled_from([None, "", "Standard_NC24ads_A100_v4"]))
    labels = draw(mostly({"apps": "phi"}, {}, {"kaito.sh/a": "b"}, {"karpenter.sh/a": "b", "c": "d"}))
    labels |= draw(mostly({}, {"nvidia.com/gpu.product": "a"}, {"own.example/a": "b", "sub.own.example/a": "b"}))
    key = draw(st.sampled_from(["plimsoll.dev/a", "sub.kubernetes.io/a", "topology.kubernetes.io/zone"]))
    expressions = [{"key": key, "operator": "Exists"}]
    selector = draw(mostly({"matchLabels": labels}, {}, {"matchExpressions": expressions}, {"matchExpressions": []}))
    partition = draw(mostly(None, {"mode": "mig", "profile": "1g.10gb"}))
    if draw(mostly(False, True)):
        inference_set = an_inference_set(instance_type)
        return with_path(inference_set, spec__labelSelector=selector, spec__template__resource__partition=partition)
    made = a_kaito_workspace(instance_type, resource__labelSelector=selector, resource__partition=partition)
    if draw(mostly(True, False)):
        return made
    spec = {key: made.pop(key) for key in ("resource", "inference")}
    return {**made, "apiVersion": "plimsoll.dev/v1alpha1", "spec": spec}


@pytest.fixture(scope="module")
def plain(cluster: Kube) -> dict[str, Any]:
    """The default rules, with existing nodes. The apiserver takes up each policy by itself."""
    found = declare(cluster, nodeAutoProvisioning="disabled", policies=DENY)
    selector = {"matchLabels": {"kaito.sh/a": "b"}}
    wrong = a_node_pool(spec__disruption__consolidateAfter="0s"), a_kaito_workspace(resource__labelSelector=selector)
    await_condition(lambda: all(refused(cluster, each) for each in wrong), 120, "policies of each kind are in effect")
    return found


@pytest.mark.parametrize("objects", [pods, capacity_pods, node_pools, workspaces])
def test_python_and_cel_agree(cluster: Kube, plain: dict[str, Any], objects: Any) -> None:
    @EXAMPLES
    @given(manifest=objects())
    def verdict_of(manifest: Manifest) -> None:
        agree(cluster, plain, manifest)

    verdict_of()


@pytest.mark.parametrize("kind", sorted(WORKLOADS.keys() - {"DaemonSet"}))
def test_each_kind_of_workload_needs_a_queue(cluster: Kube, plain: dict[str, Any], kind: str) -> None:
    pod = a_pod(gpus="1", labels={})
    assert "gpu-workload-names-queue" in refused(cluster, a_workload(kind, pod, {}))
    assert not refused(cluster, a_workload(kind, pod, {"kai.scheduler/queue": "team"}))


def test_an_owner_exempts_only_what_a_controller_creates(
    cluster: Kube, plain: dict[str, Any], admission_sandbox: Sandbox, tmp_path: Path
) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1", "controller": True}
    pod = with_path(a_pod(gpus="1", labels={}), metadata__ownerReferences=[owner])
    assert "gpu-workload-names-queue" in refused(cluster, pod), "people set owners, too"
    accounts = [(namespace, "creator") for namespace in ("research", "kai-scale-adjust", "kube-system")]
    subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": name} for namespace, name in accounts]
    for subject in subjects:
        cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(list(subject.items())[1:])})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    rbac = "rbac.authorization.k8s.io/v1"
    cluster.apply(
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "creators"},
            "subjects": subjects,
            "roleRef": role,
        }
    )

    def as_user(token: str, namespace: str = "research") -> str:
        with closing(acting_as(admission_sandbox.kubeconfig, token, tmp_path)) as user:
            return refused(user, with_path(pod, metadata__namespace=namespace))

    controllers = yaml.safe_load(admission_sandbox.folder.kubeconfig("controller-manager").read_text())
    assert not as_user(controllers["users"][0]["user"]["token"])
    tokens = {namespace: cluster.token(namespace, name) for namespace, name in accounts}
    with closing(acting_as(admission_sandbox.kubeconfig, tokens["research"], tmp_path)) as user:
        # Until the roles are in force, they are what refuses.
        workloads = "workloads of the namespace are judged"
        await_condition(lambda: "gpu-workload-names-queue" in user.refusal(pod), message=workloads)
    assert not as_user(tokens["kai-scale-adjust"]), "a controller in a namespace of its own"
    assert not as_user(tokens["kube-system"])
    assert not as_user(tokens["kube-system"], "kube-system")
    cluster.delete(rbac, "ClusterRoleBinding", "creators")


SETTINGS: dict[str, Any] = {
    "nodeAutoProvisioning": "enabled",
    "provisioner": "static-nodepool",
    "queueScheduler": "own",
    "reservedLabelPrefixes": ["kaito.sh/"],
    "nodeLabelPrefixes": ["", "own.example"],
    "policies": {
        "admission": "deny",
        "rules": {
            "image-digest": {"options": {"required": True, "namespaces": ["research"]}},
            "node-pool-consolidation": {"options": {"minimumSeconds": 30}},
            "image-tag-pinned": {},
            "node-pool-gpu-taint": {"options": {"keys": [GPU]}},
            "queue-scheduler": {"options": {"schedulers": ["default-scheduler"]}},
            "gpu-share-fraction": {"severity": "off"},
            "node-pool-limits-fit": {"severity": "warning"},
        },
        "exemptions": [
            {"rule": "gpu-share-memory", "namespace": "res*", "kind": "Pod", "reason": "a", "until": "2100-01-01"},
            {"rule": "node-pool-template-lasting", "name": "gpu", "reason": "a", "until": "2020-01-01"},
        ],
    },
}


@pytest.fixture(scope="module")
def set_otherwise(cluster: Kube, plain: dict[str, Any]) -> dict[str, Any]:
    """The other mode, with options, severities and exemptions."""
    return declare(cluster, **SETTINGS)


@pytest.mark.parametrize("objects", [pods, capacity_pods, node_pools, workspaces])
def test_python_and_cel_agree_with_other_settings(cluster: Kube, set_otherwise: dict[str, Any], objects: Any) -> None:
    @settings(EXAMPLES, max_examples=60)
    @given(manifest=objects())
    def verdict_of(manifest: Manifest) -> None:
        agree(cluster, set_otherwise, manifest)

    verdict_of()


def test_a_manual_node_claim_is_refused_with_another_provisioner(cluster: Kube, set_otherwise: dict[str, Any]) -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "claim"},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "a.b", "kind": "C", "name": "d"},
        },
    }
    agree(cluster, set_otherwise, claim)
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "a", "uid": "1"}
    agree(cluster, set_otherwise, with_path(claim, metadata__ownerReferences=[owner]))


@pytest.mark.parametrize(("key", "allowed"), [("example.com/pool", True), ("kai.scheduler/node-pool", False)])
def test_the_queue_of_a_project_and_a_node_pool(cluster: Kube, key: str, allowed: bool) -> None:
    access = [{"namespaces": ["research"], "queues": ["shared-a"]}]
    spec = declare(cluster, nodeAutoProvisioning="enabled", access=access, nodePoolLabelKey=key, policies=DENY)
    labels = {"project": "shared", "example.com/pool": "a", "kai.scheduler/node-pool": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    workspace = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "of-a-project", "namespace": "research"},
        "spec": {"resource": {"instanceType": "Standard_NC24ads_A100_v4"}, "inference": {"template": template}},
    }
    agree(cluster, spec, workspace)
    assert ("workspace-access" not in refused(cluster, workspace)) is allowed


def test_selectors_of_claims(cluster: Kube) -> None:
    strict = {**DENY, "rules": {"claim-selects-any-node": {"severity": "error"}}}
    spec = declare(cluster, nodeAutoProvisioning="disabled", policies=strict)

    def selecting(attribute: str) -> Manifest:
        return asked(1, f"device.attributes['gpu.nvidia.com'].{attribute}")

    broken = a_claim("c", selecting("uuid == 'GPU-1'"), namespace="research")
    await_condition(lambda: refused(cluster, broken), message="the policy for claims knows the Environment")
    for attribute in ("uuid == 'GPU-1'", "productName == 'NVIDIA L4'", "driverVersion.major() > 5"):
        wanted = selecting(attribute)
        for request in (wanted, {"firstAvailable": [{"name": "a", **asked(1)}, {"name": "b", **wanted}]}):
            agree(cluster, spec, a_claim("c", request, namespace="research"))
            agree(cluster, spec, a_template("t", request, namespace="research"))


def test_other_fields_of_an_existing_violation_may_be_changed(cluster: Kube, plain: dict[str, Any]) -> None:
    declare(cluster, policies={"admission": "off"})
    pod = with_path(a_pod({"gpu-fraction": "1.5"}, name="before"), spec__schedulerName="kai-scheduler")
    cluster.apply(pod)
    declare(cluster, nodeAutoProvisioning="disabled", policies=DENY)
    try:
        cluster.patch("v1", "Pod", "before", {"metadata": {"labels": {"a": "b"}}}, "research")
        with pytest.raises(RequestError, match="gpu-share-memory"):
            wrong = {"metadata": {"annotations": {"gpu-memory": "2Gi"}}}
            cluster.patch("v1", "Pod", "before", wrong, "research")
    finally:
        cluster.delete("v1", "Pod", "before", "research")


@pytest.fixture(scope="module")
def controller(cluster: Kube, admission_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """Acts as kube-controller-manager."""
    users = yaml.safe_load(admission_sandbox.folder.kubeconfig("controller-manager").read_text())["users"]
    folder = tmp_path_factory.mktemp("controller")
    with closing(acting_as(admission_sandbox.kubeconfig, users[0]["user"]["token"], folder)) as kube:
        yield kube


def owned_by(kind: str, manifest: Manifest, api_version: str = "apps/v1") -> Manifest:
    owner = {"apiVersion": api_version, "kind": kind, "name": "a", "uid": "1", "controller": True}
    return with_path(manifest, metadata__ownerReferences=[owner])


def test_what_controllers_make_of_a_checked_workload_is_not_denied(cluster: Kube, controller: Kube) -> None:
    legacy = {"rule": "image-tag-pinned", "kind": "Deployment", "reason": "a", "until": "2100-01-01"}
    declare(cluster, policies={"admission": "deny", "rules": {"image-tag-pinned": {}}, "exemptions": [legacy]})
    pod = a_pod(image="a", labels={"kai.scheduler/queue": "team"})
    replica_set = a_workload("ReplicaSet", pod, {})
    assert not refused(cluster, a_workload("Deployment", pod, {})), "it is exempted"
    for owner, made in (("Deployment", replica_set), ("ReplicaSet", pod)):
        assert not refused(controller, owned_by(owner, made))
        assert "image-tag-pinned" in refused(cluster, owned_by(owner, made)), "people set owners, too"
        assert "image-tag-pinned" in refused(controller, made), "no owner was checked"
    assert "image-tag-pinned" in refused(controller, owned_by("ReplicaSet", pod, "example.org/v1"))
    foreign = with_path(pod, metadata__namespace="kai-scale-adjust")
    assert "kai-namespace" in refused(controller, owned_by("ReplicaSet", foreign)), "no template is checked for it"


def test_containers_that_are_added_to_a_pod_are_checked(cluster: Kube) -> None:
    policies = {"admission": "deny", "rules": {"image-digest": {"options": {"required": True}}}}
    declare(cluster, policies=policies)
    pinned = f"a@sha256:{'0' * 64}"
    cluster.apply(a_pod(image=pinned, name="debugged"))

    def debug(image: str) -> None:
        added = {"ephemeralContainers": [{"name": "debug", "image": image}]}
        cluster.patch("v1", "Pod", "debugged", {"spec": added}, "research", "ephemeralcontainers")

    try:
        with pytest.raises(RequestError, match="image-digest"):
            debug("busybox:1")
        debug(pinned)
    finally:
        cluster.delete("v1", "Pod", "debugged", "research")


def test_an_option_of_a_wrong_type_refuses_nothing(cluster: Kube) -> None:
    rules = {
        "image-digest": {"options": {"required": "true", "namespaces": "research"}},
        "node-pool-consolidation": {"options": {"minimumSeconds": "x"}},
        "queue-scheduler": {"options": {"schedulers": 5}},
    }
    declare(cluster, policies={"admission": "deny", "rules": rules})
    assert not refused(cluster, a_pod(image="a:1"))
    assert not refused(cluster, a_node_pool("p4d.24xlarge", gpu_limit="16"))
