"""Workloads on real components: groups of LeaderWorkerSet's own controller, replicas of a HorizontalPodAutoscaler."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from demo.stage import Stage
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.conditions import condition, is_ready
from tests.e2e.cluster.controller import Controller, controller
from tests.e2e.cluster.environments import change_environment
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.cluster.nodes import bring_nodes
from tests.e2e.cluster.serving import READY_AFTER, serving_since

pytestmark = pytest.mark.e2e

API = "plimsoll.dev/v1alpha1"
NAMESPACE = "inference"
GROUPS = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
POOL = "workloads"
NODES = tuple(f"v100-{number},96000,786432,8,V100M32" for number in range(3))


@pytest.fixture(scope="module")
def running(
    workspaces_stage: Stage, workspaces_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Controller]:
    """The controller, on an environment with a pool of three nodes."""
    folder = tmp_path_factory.mktemp("workloads")
    bring_nodes(workspaces_stage, folder, *NODES, pool=POOL)
    with controller(workspaces_sandbox, folder) as running:
        yield running


@pytest.fixture
def cluster(kube: Callable[..., Kube], workspaces_sandbox: Sandbox, running: Controller) -> Kube:
    return kube(workspaces_sandbox)


def workspace(name: str, **inference: Any) -> Manifest:
    return {
        "apiVersion": API,
        "kind": "Workspace",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"resource": {"labelSelector": {"matchLabels": {"pool": POOL}}}, "inference": inference},
    }


TOKEN = {"presetOptions": {"modelAccessSecret": "token"}}
"""Llama is gated."""


def spanning(name: str) -> Manifest:
    return workspace(
        name,
        preset={"name": "llama-3.3-70b-instruct", **TOKEN},
        perReplicaNodeCount=2,
    )


def pods_of(cluster: Kube, name: str) -> list[Manifest]:
    return cluster.list("v1", "Pod", NAMESPACE, f"plimsoll.dev/workspace={name}")


def workload_ready(cluster: Kube, name: str) -> dict[str, Any]:
    return condition(cluster.get(API, "Workspace", name, NAMESPACE), "WorkloadReady")


def both_ready(cluster: Kube, name: str) -> bool:
    """Not that one was, before the Workspace was scaled."""
    found = _true(workload_ready(cluster, name)) or {}
    return found.get("message") == f"Deployment {name}: 2 of 2 pods ready"


def remove(cluster: Kube, name: str) -> None:
    cluster.delete(API, "Workspace", name, NAMESPACE)
    await_condition(lambda: not pods_of(cluster, name), 120, f"the pods of {name} are gone")


def test_a_replica_on_two_nodes_starts_as_a_whole_group_while_another_waits(cluster: Kube) -> None:
    cluster.apply(spanning("first"))
    ready = await_condition(lambda: _true(workload_ready(cluster, "first")), 120, "the first group is ready")
    assert ready["message"] == "LeaderWorkerSet first: 1 of 1 replica ready"
    leader, worker = sorted(pods_of(cluster, "first"), key=lambda pod: str(pod["metadata"]["name"]))
    assert leader["spec"]["nodeName"] != worker["spec"]["nodeName"]
    for index, pod in enumerate((leader, worker)):
        container = pod["spec"]["containers"][0]
        text = {each["name"]: each.get("value") for each in container["env"]}
        assert (text["LWS_GROUP_SIZE"], text["LWS_WORKER_INDEX"]) == ("2", str(index))
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"
        # The group's own Service makes the leader known before it is ready; the preset's Service has the other name.
        assert text["LWS_LEADER_ADDRESS"].split(".")[:2] == ["first-0", "first-0"]
    headless, served = (cluster.get("v1", "Service", name, NAMESPACE) or {} for name in ("first-0", "first"))
    assert (headless["spec"]["clusterIP"], headless["spec"]["publishNotReadyAddresses"]) == ("None", True)
    assert {each["name"] for each in served["spec"]["ports"]} == {"http", "metrics"}
    cluster.apply(spanning("second"))
    await_condition(lambda: workload_ready(cluster, "second").get("status") == "False", 120, "the second one waits")
    assert cluster.get(*GROUPS, "second", NAMESPACE) is None
    assert pods_of(cluster, "second") == []
    remove(cluster, "first")
    await_condition(lambda: _true(workload_ready(cluster, "second")), 120, "the second group is ready")
    assert len(pods_of(cluster, "second")) == 2
    remove(cluster, "second")


def test_the_replicas_of_an_autoscaler_are_not_changed(cluster: Kube) -> None:
    container = {"name": "server", "image": "registry.k8s.io/pause:3.10"}
    cluster.apply(workspace("scaled", template={"spec": {"containers": [container]}}))

    def deployment() -> Manifest:
        return cluster.get("apps/v1", "Deployment", "scaled", NAMESPACE) or {}

    await_condition(lambda: (deployment().get("status") or {}).get("readyReplicas") == 1, 120, "one replica")
    cluster.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "scaled", "namespace": NAMESPACE},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
                "minReplicas": 2,
                "maxReplicas": 3,
            },
        }
    )
    await_condition(lambda: deployment()["spec"]["replicas"] == 2, 120, "the autoscaler scales to its least")
    changed = workspace("scaled", template={"spec": {"containers": [{**container, "args": ["changed"]}]}})
    cluster.apply(changed)

    def arguments() -> list[str]:
        found: list[str] = deployment()["spec"]["template"]["spec"]["containers"][0].get("args") or []
        return found

    await_condition(lambda: arguments() == ["changed"], 120, "the template is changed")
    assert deployment()["spec"]["replicas"] == 2
    await_condition(lambda: both_ready(cluster, "scaled"), 120, "both replicas are ready")
    remove(cluster, "scaled")


def test_on_existing_nodes_replicas_always_serve_during_rollouts(cluster: Kube) -> None:
    """Each pod takes a second on its node until it is Ready. With a free node, a rollout begins at once; without one,
    it is held until one is free."""
    since = cluster.revision()

    def rolled(argument: str, replicas: int) -> Manifest:
        container = {"name": "server", "image": "registry.k8s.io/pause:3.10", "args": [argument]}
        template = {"metadata": {"annotations": {READY_AFTER: "1s"}}, "spec": {"containers": [container]}}
        return workspace("rolled", template=template, rollout={"strategy": "Surge"}, replicas=replicas)

    def serving() -> list[str]:
        return [pod["spec"]["containers"][0]["args"][0] for pod in pods_of(cluster, "rolled") if _ready(pod)]

    cluster.apply(rolled("one", 2))
    await_condition(lambda: serving() == ["one", "one"], 120, "both replicas serve")
    cluster.apply(rolled("two", 2))
    await_condition(lambda: serving() == ["two", "two"], 120, "both are replaced, one after the other on a free node")
    cluster.apply(rolled("two", 3))
    await_condition(lambda: serving() == ["two"] * 3, 120, "no node is free")
    cluster.apply(rolled("three", 3))

    def held() -> bool:
        return bool((cluster.get("apps/v1", "Deployment", "rolled", NAMESPACE) or {})["spec"].get("paused"))

    await_condition(held, 120, "the rollout is held")
    assert serving() == ["two"] * 3
    cluster.apply(rolled("three", 2))
    await_condition(lambda: serving() == ["three", "three"], 120, "it goes on when a node is free")
    assert min(serving_since(cluster, since, NAMESPACE, "rolled", least=2)) == 2, "both served at every moment"
    remove(cluster, "rolled")


MIRROR = "https://hf-mirror.internal"
AIR_GAPPED = {
    "inferenceImage": "registry.internal/vllm-openai:v0.32.0",
    "modelHub": {"endpoint": MIRROR},
    "presetPods": {"imagePullSecrets": ["registry"]},
}


@pytest.fixture
def air_gapped(cluster: Kube) -> Iterator[None]:
    """The Environment has a private registry and a mirror of the hub."""
    (environment,) = cluster.list(API, "Environment")
    name = environment["metadata"]["name"]
    change_environment(cluster, name, **AIR_GAPPED)
    yield
    change_environment(cluster, name, **dict.fromkeys(AIR_GAPPED))


def test_the_pods_of_a_preset_have_its_settings(cluster: Kube, air_gapped: None) -> None:
    """As in a cluster without the internet, whose runtime for GPUs is not the default one. Without its RuntimeClass no
    pod is created, which is told."""
    cluster.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "serving"},
            "value": 1000,
        }
    )
    pods = {
        "imagePullSecrets": ["of-the-team"],
        "runtimeClassName": "gpu-runtime",
        "priorityClassName": "serving",
        "env": [{"name": "NO_PROXY", "value": ".internal"}],
        "labels": {"tier": "serving"},
        "annotations": {"example.com/scrape": "false"},
        "resources": {"requests": {"cpu": 0.5}, "limits": {"memory": "64Gi"}},
        "options": {"max-num-seqs": "32"},
    }
    cluster.apply(workspace("settled", preset={"name": "phi-4-mini-instruct"}, pods=pods))
    told = 'RuntimeClass "gpu-runtime" not found'
    await_condition(lambda: told in workload_ready(cluster, "settled").get("message", ""), 120, "it is told")
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gpu-runtime"}}
    cluster.apply({**runtime, "handler": "nvidia"})
    await_condition(lambda: any(map(_ready, pods_of(cluster, "settled"))), 120, "the server is ready")
    [pod] = pods_of(cluster, "settled")
    spec = pod["spec"]
    [server] = spec["containers"]
    assert (spec["runtimeClassName"], spec["priorityClassName"], spec["priority"]) == ("gpu-runtime", "serving", 1000)
    assert spec["imagePullSecrets"] == [{"name": "registry"}, {"name": "of-the-team"}]
    assert {"name": "HF_ENDPOINT", "value": MIRROR} in server["env"]
    assert server["image"] == AIR_GAPPED["inferenceImage"] and "huggingface.co" not in str(spec)
    assert (pod["metadata"]["labels"]["tier"], server["resources"]["requests"]["cpu"]) == ("serving", "500m")
    assert "--max-num-seqs=32" in server["args"]
    await_condition(lambda: _true(workload_ready(cluster, "settled")), 120, "its replica is ready")
    remove(cluster, "settled")


def test_a_served_preset_goes_through_a_rollout_and_is_scaled_by_an_autoscaler(cluster: Kube) -> None:
    """KWOK runs the pods; they become Ready as by the server's readiness probe."""
    preset = {"preset": {"name": "phi-4-mini-instruct"}, "contextLength": 4096}
    cluster.apply(workspace("served", **preset))

    def contexts() -> list[str]:
        args = [pod["spec"]["containers"][0]["args"] for pod in pods_of(cluster, "served") if _ready(pod)]
        return [each[each.index("--max-model-len") + 1] for each in args]

    await_condition(lambda: contexts() == ["4096"], 120, "the server is ready")

    def status() -> dict[str, Any]:
        found: dict[str, Any] = (cluster.get(API, "Workspace", "served", NAMESPACE) or {}).get("status", {})
        return found

    await_condition(lambda: (status().get("contextLength"), status().get("replicas")) == (4096, 1), 120, "the status")
    service = cluster.get("v1", "Service", "served", NAMESPACE) or {}
    [pod] = pods_of(cluster, "served")
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    cluster.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "served", "namespace": NAMESPACE},
            "spec": {
                "scaleTargetRef": {"apiVersion": API, "kind": "Workspace", "name": "served"},
                "minReplicas": 2,
                "maxReplicas": 3,
            },
        }
    )
    await_condition(lambda: contexts() == ["4096", "4096"], 120, "the autoscaler scales the Workspace to its least")
    cluster.apply(workspace("served", **preset | {"contextLength": 8192}, replicas=2))
    await_condition(lambda: contexts() == ["8192", "8192"], 120, "the rollout has replaced both servers")
    await_condition(lambda: both_ready(cluster, "served"), 120, "both replicas are ready")
    remove(cluster, "served")
    await_condition(lambda: cluster.get("v1", "Service", "served", NAMESPACE) is None, 120, "its Service is gone")


def _ready(pod: Manifest) -> bool:
    return is_ready(pod) and not pod["metadata"].get("deletionTimestamp")


def _true(found: dict[str, Any]) -> dict[str, Any] | None:
    return found if found.get("status") == "True" else None
