"""Pods with features that the binder does not support are refused by name."""

from typing import Any

import pytest

from plimsoll.bind import pods_of
from plimsoll.labels import GPU_GROUP, VISIBLE_DEVICES
from plimsoll.model.cluster import SharePod, obstacle_of
from plimsoll.model.kai import NAMESPACE
from tests.binding.cluster import SETTINGS

FROM_ANNOTATION = {
    "name": "NVIDIA_VISIBLE_DEVICES",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{VISIBLE_DEVICES}']"}},
}


def a_manifest(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "env": [FROM_ANNOTATION]} if container is None else {"name": "main", **container}]
    return {
        "metadata": {"name": "a", "namespace": "team", "annotations": {"runai/shared-gpu-configmap": "a-shared-gpu"}},
        "spec": {"schedulerName": "plimsoll", "containers": containers, **spec},
        "status": {"phase": "Pending"},
    }


def from_config_map(name: str) -> dict[str, Any]:
    source = {"configMapKeyRef": {"name": name, "key": "NVIDIA_VISIBLE_DEVICES"}}
    return {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": source}]}


@pytest.mark.parametrize(
    "container",
    [
        None,
        from_config_map("a-shared-gpu-0"),
        {"envFrom": [{"configMapRef": {"name": "a-shared-gpu-0-evar", "optional": False}}]},
    ],
)
def test_each_supported_source_of_the_visible_devices_is_accepted(container: dict[str, Any] | None) -> None:
    assert obstacle_of(a_manifest(container)) == ""


@pytest.mark.parametrize(
    "container",
    [
        {},
        from_config_map("another"),
        {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]},
        {"env": [{**FROM_ANNOTATION, "name": "CUDA_VISIBLE_DEVICES"}]},
        {"envFrom": [{"configMapRef": {"name": "another"}}]},
    ],
)
def test_a_pod_without_a_source_of_its_visible_devices_is_refused(container: dict[str, Any]) -> None:
    assert "no container takes NVIDIA_VISIBLE_DEVICES" in obstacle_of(a_manifest(container))


REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"affinity": {"podAffinity": REQUIRED}}, "spec.affinity.podAffinity"),
        ({"affinity": {"podAntiAffinity": REQUIRED}}, "spec.affinity.podAntiAffinity"),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "spec.topologySpreadConstraints"),
        ({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}]}, "volume data"),
        ({"volumes": [{"name": "data", "ephemeral": {}}]}, "volume data"),
        ({"resourceClaims": [{"name": "x"}]}, "spec.resourceClaims"),
    ],
)
def test_features_that_need_a_full_scheduler_are_refused(spec: dict[str, Any], message: str) -> None:
    assert message in obstacle_of(a_manifest(**spec))


def test_preferences_are_accepted() -> None:
    preferred: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}
    spread = [{"whenUnsatisfiable": "ScheduleAnyway"}]
    manifest = a_manifest(affinity={"podAntiAffinity": preferred}, topologySpreadConstraints=spread)
    assert obstacle_of(manifest) == ""


def test_a_host_port_is_refused() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    assert "hostPort" in obstacle_of(a_manifest({"env": [FROM_ANNOTATION], "ports": ports}))
    sidecar = {"name": "proxy", "restartPolicy": "Always", "ports": ports}
    assert "hostPort" in obstacle_of(a_manifest(initContainers=[sidecar]))


def test_pods_are_read_with_their_reason_and_finished_ones_only_as_reservations() -> None:
    read = pods_of(SETTINGS).read
    waiting = read(a_manifest({}))
    assert isinstance(waiting, SharePod)
    assert waiting.obstacle
    other = read({"metadata": {"name": "web", "namespace": "team"}, "spec": {"nodeName": "n", "containers": []}})
    assert other is not None
    assert not isinstance(other, SharePod)
    failed = {"spec": {"nodeName": "n", "containers": []}, "status": {"phase": "Failed"}}
    assert read({"metadata": {"name": "web", "namespace": "team"}, **failed}) is None
    metadata = {"name": "r", "namespace": NAMESPACE, "labels": {GPU_GROUP: "g"}}
    assert read({"metadata": metadata, **failed}) is not None
