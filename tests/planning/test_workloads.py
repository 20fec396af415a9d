"""Workloads of Workspaces: when they are created and changed, and what their pods request."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from plimsoll import labels
from plimsoll.model import Plan, RefusedOperation, Snapshot
from plimsoll.plan import plan, validate
from tests.builders import (
    A100,
    A100_MIB,
    NC24,
    a_claim,
    a_node,
    a_pod,
    a_snapshot,
    a_template,
    a_workload,
    a_workspace,
    an_environment,
)
from tests.planning.cluster import after, launched

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def of(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), NOW)


def workload_of(snapshot: Snapshot) -> dict[str, Any]:
    [creation] = [each for each in of(snapshot).creations if each.key.kind not in ("NodeClaim", "Service")]
    return creation.manifest


def pod_spec(*objects: Any, **environment: Any) -> dict[str, Any]:
    manifest = workload_of(a_snapshot(*objects, environment=an_environment(**environment)))
    spec: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return spec


def terms(spec: dict[str, Any]) -> list[list[tuple[str, str, tuple[str, ...]]]]:
    return [
        [(each["key"], each["operator"], tuple(each.get("values", ()))) for each in term["matchExpressions"]]
        for term in spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    ]


def test_existing_nodes_get_a_deployment_with_one_pod_for_each_replica() -> None:
    manifest = workload_of(a_snapshot(a_workspace(replicas=2, uid="u"), a_node()))
    assert (manifest["kind"], manifest["metadata"]["name"], manifest["metadata"]["namespace"]) == (
        "Deployment",
        "ws",
        "default",
    )
    assert manifest["spec"]["replicas"] == 2
    assert manifest["metadata"]["labels"][labels.WORKSPACE_UID] == "u"
    selected = manifest["spec"]["selector"]["matchLabels"]
    assert selected.items() <= manifest["spec"]["template"]["metadata"]["labels"].items()


VALIDATED = [
    (labels.GPU_PRODUCT, "In", (A100,)),
    (labels.GPU_COUNT, "In", ("1",)),
    (labels.GPU_MEMORY, "In", (str(A100_MIB),)),
]
"""Pods require the validated labels, so that a rescheduled pod runs only on such GPUs."""


def test_every_requirement_of_the_selector_becomes_node_affinity() -> None:
    expressions: list[dict[str, Any]] = [
        {"key": "zone", "operator": "NotIn", "values": ["z"]},
        {"key": "pool", "operator": "Exists"},
    ]
    spec = pod_spec(a_workspace(expressions=expressions), a_node())
    assert terms(spec) == [[("pool", "In", ("a",)), ("zone", "NotIn", ("z",)), ("pool", "Exists", ()), *VALIDATED]]


def test_provisioned_nodes_are_required_by_ownership_labels() -> None:
    workspace = a_workspace(instance_type=NC24.lower(), selector={})
    snapshot = launched(a_snapshot(workspace, a_claim("c"), nap=True))
    spec = workload_of(snapshot)["spec"]["template"]["spec"]
    assert terms(spec) == [[(labels.WORKSPACE, "In", ("ws",)), (labels.WORKSPACE_NAMESPACE, "In", ("default",))]]


def test_with_a_selector_existing_nodes_of_the_type_are_allowed_too() -> None:
    snapshot = a_snapshot(a_workspace(instance_type=NC24), a_node(instance_type=NC24), nap=True)
    spec = workload_of(snapshot)["spec"]["template"]["spec"]
    assert (terms(spec)[1][:3]) == [
        ("pool", "In", ("a",)),
        (labels.NODEPOOL, "DoesNotExist", ()),
        (labels.WORKSPACE, "DoesNotExist", ()),
    ]


def test_spellings_of_the_instance_type_on_nodes_do_not_change_the_pods() -> None:
    workspace = a_workspace(instance_type=NC24, replicas=2)
    one, other = a_node("one", instance_type=NC24), a_node("other", instance_type=NC24.lower())
    both = a_snapshot(workspace, one, other, nap=True)
    assert not [each for each in of(both).creations if each.key.kind == "NodeClaim"], "either spelling counts"
    running = after(both, of(both))
    assert not of(running).updates
    for left in (one, other):
        assert not of(running.model_copy(update={"nodes": (left,)})).updates


def test_pods_require_the_node_pools_and_instance_types_of_their_namespace() -> None:
    pool = labels.NODEPOOL
    nodes = [a_node("mine", instance_type=NC24, more_labels={pool: "mine"})]
    nodes.append(
        a_node("other", product="NVIDIA-L4", instance_type="g6.xlarge", more_labels={labels.NODEPOOL: "other"})
    )
    access = [{"namespaces": ["*"], "nodePools": ["mine"], "instanceTypes": [NC24.lower()]}]
    typed = (labels.INSTANCE_TYPE, "In", (NC24, NC24.lower()))
    for selector in ({}, {"pool": "a"}):
        selected = [(key, "In", (value,)) for key, value in selector.items()]
        objects = nodes if not selector else nodes[:1]
        assert terms(pod_spec(a_workspace(selector=selector), *objects, access=access)) == [
            [*selected, *VALIDATED, (pool, "In", ("mine",)), typed],
            [*selected, *VALIDATED, (pool, "DoesNotExist", ()), typed],
        ]


def test_a_templates_own_affinity_stays_required() -> None:
    template = a_template()
    own = [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}, {"matchFields": [{"key": "metadata.name"}]}]
    template["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}}
    assert terms(pod_spec(a_workspace(template=template), a_node())) == [
        [("x", "Exists", ()), ("pool", "In", ("a",)), *VALIDATED],
        [("pool", "In", ("a",)), *VALIDATED],
    ]


def test_a_preset_requests_all_gpus_of_a_node() -> None:
    [container] = pod_spec(a_workspace(preset="phi-4"), a_node(count=4))["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert container["resources"]["requests"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "4"}
    assert container["command"] + container["args"][:1] == ["vllm", "serve", "microsoft/phi-4"]
    assert container["args"][container["args"].index("--data-parallel-size") + 1] == "4"


def test_shared_gpus_are_requested_as_devices() -> None:
    node = a_node(count=2, more_labels={"nvidia.com/gpu.replicas": "4"})
    [container] = pod_spec(a_workspace(), node)["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_a_template_that_requests_gpus_is_not_changed() -> None:
    asked = {"limits": {"nvidia.com/gpu": 1}}
    [container] = pod_spec(a_workspace(template=a_template(resources=asked)), a_node(count=4))["containers"]
    assert container["resources"] == asked


def test_the_gpu_resource_of_the_environment_is_requested() -> None:
    [container] = pod_spec(a_workspace(), a_node(count=2), gpuResource="example.com/gpu")["containers"]
    assert container["resources"]["requests"] == {"example.com/gpu": "2"}


def test_taints_of_gpu_nodes_and_of_the_environment_are_tolerated() -> None:
    own = {"key": "own", "operator": "Exists"}
    template = a_template()
    template["spec"]["tolerations"] = [own]
    spec = pod_spec(a_workspace(template=template), a_node(), nodeClaims={"taints": [{"key": "team", "value": "red"}]})
    assert spec["tolerations"] == [
        own,
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "red", "effect": "NoSchedule"},
    ]


def test_a_queue_labels_the_pods_and_sets_the_scheduler() -> None:
    manifest = workload_of(a_snapshot(a_workspace(queue="team"), a_node()))
    template = manifest["spec"]["template"]
    assert template["metadata"]["labels"][labels.QUEUE] == "team"
    assert template["spec"]["schedulerName"] == "kai-scheduler"
    assert "schedulerName" not in pod_spec(a_workspace(), a_node())


def test_two_pods_of_workspaces_never_share_a_node() -> None:
    [rule] = pod_spec(a_workspace(), a_node())["affinity"]["podAntiAffinity"][REQUIRED]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"] == {"matchExpressions": [{"key": labels.WORKSPACE, "operator": "Exists"}]}
    assert rule["namespaceSelector"] == {}, "of every namespace"


def test_replicas_that_span_nodes_become_groups_with_one_pod_for_each_node() -> None:
    nodes = [a_node(f"n-{n}", memory=16384) for n in range(6)]
    manifest = workload_of(a_snapshot(a_workspace(gpu_memory_gib=32, per_replica=2, replicas=3), *nodes))
    assert (manifest["apiVersion"], manifest["kind"]) == ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    group = manifest["spec"]["leaderWorkerTemplate"]
    assert (manifest["spec"]["replicas"], group["size"]) == (3, 2)
    assert manifest["spec"]["startupPolicy"] == "LeaderCreated"
    assert "leaderTemplate" not in group, "a template of one's own tells leader from worker itself"
    pods = group["workerTemplate"]
    assert pods["metadata"]["labels"][labels.WORKSPACE] == "ws"
    assert pods["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}


def test_a_preset_that_spans_nodes_is_served_by_a_leader_that_its_workers_join() -> None:
    nodes = [a_node(f"n-{n}", count=4) for n in range(2)]
    manifest = workload_of(a_snapshot(a_workspace(preset="llama-3.3-70b-instruct", per_replica=2), *nodes))
    group = manifest["spec"]["leaderWorkerTemplate"]
    leader, worker = (group[part]["spec"]["containers"][0] for part in ("leaderTemplate", "workerTemplate"))
    options = dict(pairwise(leader["args"]))
    assert (options["--pipeline-parallel-size"], options["--tensor-parallel-size"]) == ("2", "4")
    assert worker["args"] == [*leader["args"], "--headless"]
    assert leader["resources"] == worker["resources"]
    assert leader["ports"][0]["containerPort"] == 8000
    assert "ports" not in worker


def test_a_stable_identity_leads_to_a_stateful_set() -> None:
    workspace = a_workspace()
    inference = workspace.spec.inference
    assert inference is not None
    stable = workspace.spec.model_copy(update={"inference": inference.model_copy(update={"stable_identity": True})})
    manifest = workload_of(a_snapshot(workspace.model_copy(update={"spec": stable}), a_node()))
    assert (manifest["kind"], manifest["spec"]["podManagementPolicy"]) == ("StatefulSet", "Parallel")


def test_without_leader_worker_sets_a_workspace_that_needs_them_is_refused_by_name() -> None:
    nodes = [a_node(f"n-{n}") for n in range(2)]
    for workspace, accepted in ((a_workspace(per_replica=2), False), (a_workspace(), True)):
        snapshot = a_snapshot(workspace, *nodes).model_copy(update={"missing_kinds": ("LeaderWorkerSet",)})
        [verdict] = validate(snapshot)
        assert verdict.accepted is accepted
        assert ("multi-node replicas need LeaderWorkerSet" in verdict.message) is not accepted


def test_a_workload_waits_for_all_its_provisioned_nodes() -> None:
    snapshot = a_snapshot(a_workspace(instance_type=NC24, replicas=2), a_claim("a"), a_claim("b"), nap=True)
    assert of(snapshot).empty
    ready = launched(snapshot)
    assert workload_of(ready)["spec"]["replicas"] == 2
    one_late = ready.model_copy(update={"nodes": ready.nodes[:1]})
    assert of(one_late).empty


def test_a_workload_waits_until_its_nodes_show_their_gpus() -> None:
    def with_gpus(allocatable: int | None) -> Plan:
        node = a_node("n", None, allocatable=allocatable)
        claim = a_claim("c", node="n", ready=True)
        return of(a_snapshot(a_workspace(instance_type=NC24), claim, node, nap=True))

    assert with_gpus(None).empty
    assert with_gpus(0).empty
    assert not with_gpus(1).empty


def test_a_refused_workspace_gets_no_workload_and_keeps_the_one_it_has() -> None:
    workspace, node = a_workspace(), a_node()
    manifest = workload_of(a_snapshot(workspace, node))
    assert of(a_snapshot(workspace, a_node(product=None))).empty
    assert of(a_snapshot(workspace, a_node(product=None), a_workload(manifest))).empty


def test_without_replicas_there_is_no_workload() -> None:
    assert of(a_snapshot(a_workspace(replicas=0), a_node())).empty


def test_the_workload_is_scaled_down_in_the_plan_that_deletes_claims() -> None:
    before = launched(
        a_snapshot(
            a_workspace(instance_type=NC24, replicas=3), *(a_claim(f"c-{n}", ready=True) for n in range(3)), nap=True
        )
    )
    running = after(before, of(before))
    assert of(running).empty
    lowered = running.model_copy(update={"workspaces": (a_workspace(instance_type=NC24, replicas=1),)})
    found = of(lowered)
    [update] = found.updates
    assert update.manifest["spec"]["replicas"] == 1
    assert update.reason == "replicas 3 -> 1"
    assert [deletion.key.kind for deletion in found.deletions] == ["NodeClaim", "NodeClaim"]
    assert of(after(lowered, found)).empty

    refused = {update.key: RefusedOperation(update, NOW + timedelta(seconds=2))}
    waiting = plan(lowered, validate(lowered), NOW, refused=refused)
    assert waiting.empty, "the pods would lose their nodes"
    assert waiting.waiting == (update.key,)


def test_pods_on_deleted_nodes_get_a_lower_deletion_cost() -> None:
    workspace = a_workspace(instance_type=NC24, replicas=3)
    claims = [a_claim(f"c-{n}", ready=True, created=f"2026-01-0{n + 1}T00:00:00Z") for n in range(3)]
    before = launched(a_snapshot(workspace, *claims, nap=True))
    running = after(before, of(before))
    pods = [a_pod(f"p-{n}", workspace, f"node-of-c-{n}") for n in range(3)]
    lowered = running.model_copy(
        update={
            "workspaces": (a_workspace(instance_type=NC24, replicas=2),),
            "pods": (*pods, a_pod("foreign", node="node-of-c-2")),
        }
    )
    found = of(lowered)
    assert [deletion.key.name for deletion in found.deletions] == ["c-2"]
    assert [pod.name for pod in found.preferred_deletions] == ["p-2"]
    assert of(running.model_copy(update={"pods": tuple(pods)})).preferred_deletions == ()


def test_a_node_without_a_pod_is_deleted_before_those_that_serve() -> None:
    workspace = a_workspace(instance_type=NC24, replicas=2)
    claims = [a_claim(f"c-{n}", ready=True, node=f"n-{n}", created=f"2026-01-0{n + 1}T00:00:00Z") for n in range(3)]
    nodes = [a_node(f"n-{n}", None, allocatable=1, instance_type=NC24) for n in range(3)]
    left = [a_pod("p-1", workspace, "n-1"), a_pod("p-2", workspace, "n-2")]
    ending = a_pod("p-0", workspace, "n-0").model_copy(update={"deletion_timestamp": "2026-01-04T00:00:00Z"})
    found = of(a_snapshot(workspace, *claims, *nodes, *left, ending, nap=True))
    [deletion] = found.deletions
    assert deletion.key.name == "c-0"
    assert "without a pod" in deletion.reason


@pytest.mark.parametrize("label", ["apps.kubernetes.io/pod-index", "leaderworkerset.sigs.k8s.io/group-index"])
def test_the_nodes_of_the_pods_with_the_highest_ordinals_are_deleted(label: str) -> None:
    workspace = a_workspace(instance_type=NC24, replicas=2)
    claims = [a_claim(f"c-{n}", ready=True, node=f"n-{n}", created=f"2026-01-0{n + 1}T00:00:00Z") for n in range(3)]
    nodes = [a_node(f"n-{n}", None, allocatable=1, instance_type=NC24) for n in range(3)]
    pods = [a_pod(f"p-{n}", workspace, f"n-{n}") for n in range(3)]
    numbered = [
        pod.model_copy(update={"labels": {**pod.labels, label: number}})
        for pod, number in zip(pods, ("1", "2", "0"), strict=True)
    ]
    assert [each.key.name for each in of(a_snapshot(workspace, *claims, *nodes, *numbered, nap=True)).deletions] == [
        "c-1"
    ]


def test_more_replicas_change_the_workload_at_once() -> None:
    before = launched(a_snapshot(a_workspace(instance_type=NC24), a_claim("c"), nap=True))
    running = after(before, of(before))
    raised = running.model_copy(update={"workspaces": (a_workspace(instance_type=NC24, replicas=2),)})
    found = of(raised)
    assert [each.manifest["spec"]["replicas"] for each in found.updates] == [2]
    assert len(found.creations) == 1


def test_only_a_changed_template_changes_the_workload() -> None:
    before = a_snapshot(a_workspace(), a_node())
    running = after(before, of(before))
    assert of(running).empty
    changed = a_workspace(template=a_template(image="example/server:2"))
    [update] = of(running.model_copy(update={"workspaces": (changed,)})).updates
    assert update.manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "example/server:2"


def test_a_workload_of_another_kind_is_created_after_the_old_one_is_deleted() -> None:
    nodes = [a_node(f"n-{n}") for n in range(2)]
    before = a_snapshot(a_workspace(), *nodes)
    running = after(before, of(before))
    spanning = running.model_copy(update={"workspaces": (a_workspace(per_replica=2),)})
    first = of(spanning)
    assert [each.key.kind for each in first.deletions] == ["Deployment"]
    assert first.creations == ()
    [creation] = of(after(spanning, first)).creations
    assert creation.key.kind == "LeaderWorkerSet"


def test_the_workload_of_a_deleted_workspace_or_one_without_inference_is_deleted() -> None:
    manifest = workload_of(a_snapshot(a_workspace(), a_node()))
    for workspaces in ([], [a_workspace(deleting=True)], [a_workspace(inference=False)]):
        found = of(a_snapshot(*workspaces, a_node(), a_workload(manifest)))
        assert [each.key.kind for each in found.deletions] == ["Deployment"]
        assert of(a_snapshot(*workspaces, a_node(), a_workload(manifest, deleting=True))).empty


def test_a_workload_is_kept_while_one_of_its_nodes_is_missing() -> None:
    before = launched(a_snapshot(a_workspace(instance_type=NC24), a_claim("c"), nap=True))
    running = after(before, of(before))
    away = running.model_copy(
        update={"nodes": tuple(node.model_copy(update={"unschedulable": True}) for node in running.nodes)}
    )
    assert of(away).empty


def test_a_template_is_not_changed_by_planning() -> None:
    template = a_template()
    of(a_snapshot(a_workspace(template=template, queue="q"), a_node()))
    assert template == a_template()


def test_an_existing_node_with_another_spelling_of_its_type_is_used() -> None:
    snapshot = a_snapshot(a_workspace(instance_type=NC24), a_node(instance_type=NC24.lower()), nap=True)
    spec = workload_of(snapshot)["spec"]["template"]["spec"]
    assert terms(spec)[1][-1] == (labels.INSTANCE_TYPE, "In", (NC24, NC24.lower()))
