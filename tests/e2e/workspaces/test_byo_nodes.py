"""Existing nodes (BYO) on real components: stacks by `pulumi up`, verdicts of a running controller, a changed node,
policies, status."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from demo.stage import Stage
from plimsoll.kube import RequestError
from plimsoll.model.api import CAPACITY_GATE
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.kube import Kube
from tests.model_hub.hub import a_hub

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"


@pytest.fixture(scope="module")
def stage(workspaces_stage: Stage) -> Stage:
    return workspaces_stage


@pytest.fixture(scope="module")
def running(
    stage: Stage, workspaces_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Controller]:
    with controller(workspaces_sandbox, tmp_path_factory.mktemp("byo")) as running:
        yield running


@pytest.fixture
def cluster(kube: Callable[..., Kube], workspaces_sandbox: Sandbox, running: Controller) -> Kube:
    return kube(workspaces_sandbox)


def resource_ready(cluster: Kube, name: str) -> dict[str, Any]:
    return condition(cluster.get(API, "Workspace", name, "inference"), "ResourceReady")


def test_a_workspace_on_uniform_nodes_is_accepted(cluster: Kube) -> None:
    found = await_condition(lambda: resource_ready(cluster, "phi"), 120, "a verdict on phi")
    assert (found["status"], found["reason"]) == ("True", "Accepted")


def test_a_workspace_on_mixed_nodes_is_refused_with_names_and_values(cluster: Kube) -> None:
    found = await_condition(lambda: resource_ready(cluster, "mixed"), 120, "a verdict on mixed")
    assert (found["status"], found["reason"]) == ("False", "NonUniformNodes")
    for text in ("a100-0", "t4-0", "NVIDIA-A100-SXM4-80GB", "Tesla-T4"):
        assert text in found["message"]


def test_the_workload_runs_with_the_selector_as_node_affinity(cluster: Kube) -> None:
    def ready() -> dict[str, Any] | None:
        found = cluster.get("apps/v1", "Deployment", "phi", "inference")
        return found if found and found.get("status", {}).get("readyReplicas") == 1 else None

    deployment = await_condition(ready, 120, "the workload runs")
    assert deployment is not None
    affinity = deployment["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {
        "key": "nvidia.com/gpu.product",
        "operator": "In",
        "values": ["NVIDIA-A100-SXM4-80GB"],
    } in term["matchExpressions"]
    (pod,) = cluster.list("v1", "Pod", "inference", "plimsoll.dev/workspace=phi")
    assert pod["spec"]["nodeName"].startswith("a100-")


def test_a_relabelled_node_changes_the_verdict_within_one_round(cluster: Kube) -> None:
    await_condition(lambda: resource_ready(cluster, "phi").get("reason") == "Accepted", 120)
    label = {"nvidia.com/gpu.memory": "40960"}
    cluster.patch("v1", "Node", "a100-1", {"metadata": {"labels": label}})
    try:
        refused = await_condition(
            lambda: (found := resource_ready(cluster, "phi")).get("reason") == "NonUniformNodes" and found
        )
        assert "a100-1" in refused["message"]
        assert cluster.get("apps/v1", "Deployment", "phi", "inference"), "a refusal takes nothing away"
    finally:
        cluster.patch("v1", "Node", "a100-1", {"metadata": {"labels": {"nvidia.com/gpu.memory": "81920"}}})
    await_condition(lambda: resource_ready(cluster, "phi").get("reason") == "Accepted", 120)


def test_replicas_by_kubectl_scale_the_workload(stage: Stage, cluster: Kube) -> None:
    def replicas() -> int | None:
        found = cluster.get("apps/v1", "Deployment", "phi", "inference")
        return found["spec"]["replicas"] if found else None

    def scaled(count: int) -> bool:
        return replicas() == count

    await_condition(partial(scaled, 1), 120)
    for count in (2, 1):
        patch = orjson.dumps({"spec": {"inference": {"replicas": count}}}).decode()
        stage.run("kubectl", "patch", "workspace", "phi", "-n", "inference", "--type", "merge", "-p", patch)
        await_condition(partial(scaled, count), 120, f"{count} replicas")


def test_the_cluster_refuses_an_instance_type_with_existing_nodes(cluster: Kube) -> None:
    spec = {
        "resource": {"instanceType": "Standard_NC24ads_A100_v4"},
        "inference": {"preset": {"name": "phi-4-mini-instruct"}},
    }
    wrong = {"apiVersion": API, "kind": "Workspace", "metadata": {"name": "wrong", "namespace": "inference"}}
    with pytest.raises(RequestError, match="instanceType must be empty when node auto-provisioning is disabled"):
        cluster.apply({**wrong, "spec": spec})


def test_status_and_plan_show_the_verdicts(stage: Stage, cluster: Kube) -> None:
    await_condition(lambda: resource_ready(cluster, "mixed").get("reason") == "NonUniformNodes", 120)
    status = orjson.loads(stage.run("plimsoll", "status", "--output", "json"))
    assert {each["name"] for each in status["workspaces"]} >= {"phi", "mixed"}
    plan = orjson.loads(stage.run("plimsoll", "plan", "--output", "json", expect=2))
    assert {each["name"]: each["accepted"] for each in plan["verdicts"]} == {"phi": True, "mixed": False}
    assert not plan["create"] and not plan["delete"]


def test_a_workspace_with_an_unknown_field_is_refused_by_the_cluster(stage: Stage, tmp_path: Path) -> None:
    spec = {"resource": {"counts": 3}, "inference": {"preset": {"name": "phi-4"}}}
    metadata = {"name": "unknown", "namespace": "inference"}
    manifest = tmp_path / "unknown.json"
    manifest.write_bytes(orjson.dumps({"apiVersion": API, "kind": "Workspace", "metadata": metadata, "spec": spec}))
    text = stage.run("kubectl", "create", "-f", str(manifest), expect=1)
    assert 'unknown field "spec.resource.counts"' in text


def a_share(name: str) -> dict[str, Any]:
    """A share of more than half a GPU, so that each of the four T4 holds one."""
    metadata = {"name": name, "namespace": "research", "annotations": {"gpu-fraction": "0.6"}}
    spec = {
        "schedulerName": "kai-scheduler",
        "nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "example/notebook:1"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_share_pods_are_gated_at_admission_until_their_gpus_are_available(cluster: Kube) -> None:
    names = [f"share-{number}" for number in range(5)]

    def let_go() -> dict[str, bool]:
        pods = cluster.list("v1", "Pod", "research")
        return {pod["metadata"]["name"]: not pod["spec"].get("schedulingGates") for pod in pods}

    def add(name: str) -> None:
        made = cluster.apply(a_share(name))
        assert [each["name"] for each in made["spec"]["schedulingGates"]] == [CAPACITY_GATE]

    # The fifth comes last: nothing here binds those that were let go, and a plan may give a place of theirs to another.
    *first, held = names
    for name in first:
        add(name)
    await_condition(lambda: sum(let_go().values()) == 4, 120, "four shares may run, one on each GPU")
    add(held)
    reported = (API, "GPUDemand")
    await_condition(
        lambda: any(each.get("status", {}).get("podCount") == 5 for each in cluster.list(*reported)), 120, "it is known"
    )
    assert not let_go()[held]
    cluster.delete("v1", "Pod", first[0], "research")
    await_condition(lambda: let_go().get(held), 120, "the fifth may run once a GPU is free")
    for name in names:
        cluster.delete("v1", "Pod", name, "research")


def test_other_pods_are_not_gated(cluster: Kube) -> None:
    whole = a_share("whole")
    del whole["metadata"]["annotations"]
    elsewhere = a_share("elsewhere")
    elsewhere["metadata"]["namespace"] = "inference"
    for pod in (whole, elsewhere):
        assert "schedulingGates" not in cluster.apply(pod)["spec"]
        cluster.delete("v1", "Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])


def test_a_model_of_a_hub_is_read_once_and_stored(stage: Stage, cluster: Kube) -> None:
    (environment,) = cluster.list(API, "Environment")

    def set_hub(hub: dict[str, Any] | None) -> None:
        cluster.patch(API, "Environment", environment["metadata"]["name"], {"spec": {"modelHub": hub}})

    spec = {
        "queue": "inference",
        "resource": {"labelSelector": {"matchLabels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}},
        "inference": {"preset": {"name": "acme/law-8b"}},
    }
    law = {"apiVersion": API, "kind": "Workspace", "metadata": {"name": "law", "namespace": "inference"}, "spec": spec}
    try:
        with a_hub() as hub:
            hub.add("acme/law-8b")
            cluster.apply(law)
            await_condition(lambda: resource_ready(cluster, "law").get("reason") == "UnknownPreset", 120)
            set_hub({"endpoint": hub.url})
            await_condition(lambda: resource_ready(cluster, "law").get("reason") == "Accepted", 120, "law is read")

            def kept() -> list[str]:
                found = cluster.get("v1", "ConfigMap", "plimsoll-models", "plimsoll-system")
                return list(found["data"]) if found else []

            await_condition(lambda: kept() == ["acme--law-8b"], 120, "the cluster keeps it")
        # The hub is gone: what was read still counts.
        plan = orjson.loads(stage.run("plimsoll", "plan", "--output", "json", expect=2))
        assert {each["name"]: each["accepted"] for each in plan["verdicts"]}["law"]
    finally:
        cluster.delete(API, "Workspace", "law", "inference")
        await_condition(lambda: cluster.get(API, "Workspace", "law", "inference") is None, 120, "law is gone")
        set_hub(None)
