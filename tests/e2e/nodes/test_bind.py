"""`plimsoll bind` on a real control plane, with the permissions of its component: shares are bound and maintained.

KWOK nodes have no GPUs, so the test simulates the device plugin. The probe is the real one, with the account of
reservations.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.kube import RequestError
from plimsoll.labels import GPU_GROUP, GPU_PORTION, VISIBLE_DEVICES
from plimsoll.model.kai import NAMESPACE
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.components.declaring import GOLDEN
from tests.e2e.cluster.kube import Kube
from tests.e2e.nodes.device_plugin import PLAYED, DevicePlugin, reserved_gpu

pytestmark = pytest.mark.e2e

TEAM = "sharing"
NODE = "sharing-0"


@pytest.fixture(scope="module")
def cluster(byo_sandbox: Sandbox) -> Iterator[Kube]:
    """A node with two GPUs for this module's pods, and the permissions of the component."""
    cluster = Kube(byo_sandbox.kubeconfig)
    for name in (TEAM, "plimsoll-system"):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for resource in sorted(yaml.safe_load_all((GOLDEN / "share_binder.yaml").read_text()), key=_namespaces_first):
        cluster.apply(resource["inputs"])
    resources = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "2"}
    labels = {"sharing": "yes", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "2"}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": NODE,
                "labels": {**labels, "nvidia.com/gpu.memory": "81920"},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {"taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]},
        }
    )
    cluster.patch(
        "v1", "Node", NODE, {"status": {"capacity": resources, "allocatable": resources}}, subresource="status"
    )
    probe = share("probe", "0.5")
    await_condition(lambda: devices(cluster.apply(probe, dry_run=True)), message="the policy is in force")
    yield cluster
    for pod in cluster.list("v1", "Pod", TEAM):
        cluster.delete("v1", "Pod", pod["metadata"]["name"], TEAM)
    cluster.delete("v1", "Node", NODE)
    cluster.close()


@pytest.fixture(scope="module")
def plugin(byo_sandbox: Sandbox, cluster: Kube, tmp_path_factory: pytest.TempPathFactory) -> DevicePlugin:
    return DevicePlugin(byo_sandbox, cluster, tmp_path_factory.mktemp("gpus"), {NODE: 2})


@contextmanager
def binder(sandbox: Sandbox, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`plimsoll bind` with its own account. Its log is printed if the test fails."""
    settings = folder / "settings.yaml"
    reservation = {"image": "example/plimsoll:1", "graceSeconds": 1, "annotations": {PLAYED: "process"}}
    settings.write_text(yaml.safe_dump({"reservation": reservation}))
    command = [sys.executable, "-m", "plimsoll", "bind", "--settings", str(settings)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **sandbox.environ("binder")}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        print((folder / "log").read_text()[-6000:])  # noqa: T201 - pytest shows it where a test fails


@pytest.fixture(scope="module")
def binding(
    byo_sandbox: Sandbox, cluster: Kube, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["subprocess.Popen[bytes]"]:
    with binder(byo_sandbox, tmp_path_factory.mktemp("binder")) as process:
        yield process


def share(name: str, fraction: str, config_map: str = "") -> dict[str, Any]:
    """A pod with only its annotation, or one that takes its GPU from the ConfigMaps with this name prefix."""
    annotations = {"gpu-fraction": fraction} | ({"runai/shared-gpu-configmap": config_map} if config_map else {})
    source = {"configMapKeyRef": {"name": f"{config_map}-0", "key": "NVIDIA_VISIBLE_DEVICES"}}
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": source}] if config_map else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM, "annotations": annotations},
        "spec": {
            "schedulerName": "plimsoll",
            "nodeSelector": {"sharing": "yes"},
            "tolerations": [{"key": "sku", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example/model:1", "env": env}],
        },
    }


def devices(pod: dict[str, Any]) -> dict[str, list[Any]]:
    """The source of the visible devices of each container that has one: a value or a reference."""
    found = {}
    for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
        text = [each for each in container.get("env", []) if each["name"] == "NVIDIA_VISIBLE_DEVICES"]
        if text:
            found[container["name"]] = [each.get("value") or each["valueFrom"] for each in text]
    return found


def test_containers_get_their_visible_devices_at_admission(cluster: Kube) -> None:
    pod = share("told", "0.5")
    (main,) = pod["spec"]["containers"]
    variables = [{"name": "MODEL", "value": "phi"}, {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute"}]
    none = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
    own = {
        "name": "NVIDIA_VISIBLE_DEVICES",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{VISIBLE_DEVICES}']"}},
    }
    pod["spec"]["containers"] = [
        {**main, "env": variables},
        {"name": "proxy", "image": "example/proxy:1", "env": [none]},
        {"name": "old", "image": "example/model:1", "env": [own]},
    ]
    pod["spec"]["initContainers"] = [
        {"name": "warm", "image": "example/model:1"},
        {"name": "side", "image": "example/side:1", "restartPolicy": "Always", "env": [variables[0]]},
    ]
    made = cluster.create(pod)
    ref = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{VISIBLE_DEVICES}']"}}
    assert devices(made) == {"main": [ref], "proxy": ["void"], "old": [ref], "warm": [ref], "side": [ref]}
    assert made["spec"]["containers"][0]["env"][1:] == variables, "what was there stays as it was"
    assert [each["name"] for each in made["spec"]["containers"]] == ["main", "proxy", "old"]
    assert [each["image"] for each in made["spec"]["initContainers"]] == ["example/model:1", "example/side:1"]
    # Made again from what the cluster has, as a backup is: nothing comes twice.
    cluster.delete("v1", "Pod", "told", TEAM)
    await_condition(lambda: cluster.get("v1", "Pod", "told", TEAM) is None, message="it is gone")
    again = {**made, "metadata": pod["metadata"]}
    assert cluster.apply(again, dry_run=True)["spec"]["containers"] == made["spec"]["containers"]


@pytest.mark.parametrize("change", ["scheduler", "annotation", "prepared"])
def test_other_pods_are_not_changed(cluster: Kube, change: str) -> None:
    pod = share("other", "0.5")
    if change == "scheduler":
        pod["spec"]["schedulerName"] = "kai-scheduler"
    elif change == "annotation":
        pod["metadata"]["annotations"] = {"team": "a"}
    else:
        pod["metadata"]["annotations"]["runai/shared-gpu-configmap"] = "other-shared-gpu"
    assert devices(cluster.apply(pod, dry_run=True)) == {}


def gpu_of(cluster: Kube, name: str) -> str:
    """The GPU of a bound pod; empty while it is not bound."""
    pod = cluster.get("v1", "Pod", name, TEAM)
    if pod is None or pod["status"].get("phase") != "Running":
        return ""
    return str(pod["metadata"]["annotations"].get(VISIBLE_DEVICES, ""))


def reservations(cluster: Kube) -> list[dict[str, Any]]:
    return cluster.list("v1", "Pod", NAMESPACE)


def test_shares_are_bound_repaired_and_their_reservations_deleted(
    cluster: Kube, plugin: DevicePlugin, binding: "subprocess.Popen[bytes]"
) -> None:
    for name in ("a", "b"):
        cluster.apply(share(name, "0.5"))
    cluster.apply(share("c", "0.5", config_map="c-shared-gpu"))
    where = await_condition(
        lambda: plugin.play() and all(gpu := {n: gpu_of(cluster, n) for n in "abc"}.values()) and gpu,
        timeout=120,
        message="three shares run",
    )
    a, b, c = where
    assert sorted([a, b, c].count(gpu) for gpu in set(where)) == [1, 2]
    assert {a, b, c} == set(plugin.gpus[NODE])
    made = reservations(cluster)
    assert len(made) == 2
    assert all({"key": "sku", "operator": "Exists"} in pod["spec"]["tolerations"] for pod in made)
    config_map = cluster.get("v1", "ConfigMap", "c-shared-gpu-0", TEAM)
    assert config_map is not None
    assert (config_map["data"]["NVIDIA_VISIBLE_DEVICES"], config_map["data"]["GPU_PORTION"]) == (c, "0.5")

    # What running pods say about their GPUs cannot be changed, their other labels can.
    portion = {"annotations": {GPU_PORTION: "another"}}
    await_condition(lambda: _refusal(cluster, "a", portion), message="the policy is in force")
    for field, key in (("labels", GPU_GROUP), ("annotations", VISIBLE_DEVICES), ("annotations", "gpu-fraction")):
        assert f"Pod a runs on GPUs that {key} tells" in _refusal(cluster, "a", {field: {key: None}})
    assert "gpu-memory tells" in _refusal(cluster, "a", {"annotations": {"gpu-memory": "1"}})
    assert f"{GPU_GROUP}/x tells" in _refusal(cluster, "a", {"labels": {f"{GPU_GROUP}/x": "x"}})
    assert _refusal(cluster, "a", {"labels": {"team": "x"}, "annotations": {"note": "y"}}) == ""

    # A full cluster is reported in the pod's condition, so that an autoscaler sees it.
    cluster.apply(share("d", "0.9"))
    await_condition(lambda: _message(cluster, "d") == "Unschedulable", message="d fits nowhere")

    # A reservation that is lost is made again, for the same GPU.
    lost = next(pod for pod in made if reserved_gpu(pod) == a)
    cluster.delete("v1", "Pod", lost["metadata"]["name"], NAMESPACE)
    await_condition(
        lambda: plugin.play() and any(_again(pod, lost, a) for pod in reservations(cluster)),
        timeout=120,
        message="the GPU is reserved again",
    )
    assert gpu_of(cluster, "a") == a

    # Reservations that no pod needs are deleted, which frees GPUs.
    for name in "abc":
        cluster.delete("v1", "Pod", name, TEAM)
    await_condition(lambda: plugin.play() and gpu_of(cluster, "d"), timeout=120, message="d runs")
    cluster.delete("v1", "Pod", "d", TEAM)
    await_condition(lambda: not reservations(cluster), timeout=120, message="every reservation is collected")
    assert binding.poll() is None


def test_it_refuses_to_run_beside_kais_binder(byo_sandbox: Sandbox, cluster: Kube, tmp_path: Path) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kai-scheduler"}})
    labels = {"app": "binder"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "nodeSelector": {"nowhere": "yes"},
            "containers": [{"name": "binder", "image": "example/kai-scheduler/binder:v0.17.0"}],
        },
    }
    cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "binder", "namespace": "kai-scheduler"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )
    try:
        with binder(byo_sandbox, tmp_path) as process:
            assert process.wait(timeout=120) == 1
        assert "KAI's binder runs here (Deployment kai-scheduler/binder)" in (tmp_path / "log").read_text()
    finally:
        cluster.delete("apps/v1", "Deployment", "binder", "kai-scheduler")


def _namespaces_first(resource: dict[str, Any]) -> bool:
    return bool(resource["inputs"]["kind"] != "Namespace")


def _refusal(cluster: Kube, name: str, metadata: dict[str, Any]) -> str:
    """The message of the refused change; empty if it is allowed."""
    try:
        cluster.patch("v1", "Pod", name, {"metadata": metadata}, TEAM)
    except RequestError as error:
        return error.message
    return ""


def _message(cluster: Kube, name: str) -> str:
    pod = cluster.get("v1", "Pod", name, TEAM) or {}
    conditions = pod.get("status", {}).get("conditions", [])
    return next((str(each.get("reason")) for each in conditions if each["type"] == "PodScheduled"), "")


def _again(pod: dict[str, Any], lost: dict[str, Any], gpu: str) -> bool:
    return pod["metadata"]["uid"] != lost["metadata"]["uid"] and reserved_gpu(pod) == gpu
